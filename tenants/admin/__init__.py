"""The admin sites, and the operators' pages of tenants."""

from tenants.admin import tenants as tenants
