"""The name under which django-tenants calls migrate, for example from Tenant.create_schema."""

from tenants.management.commands.migrate import Command

__all__ = ["Command"]
