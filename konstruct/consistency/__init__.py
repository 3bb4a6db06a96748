"""Verification of a tenant: every accepted message is stored, indexed and answered once."""

from konstruct.consistency.records import Finding, Report
from konstruct.consistency.verifying import verify

__all__ = ["Finding", "Report", "verify"]
