"""The ledger: checks that everything that was accepted is where it belongs, once."""

from konstruct.consistency.records import Finding, Ledger
from konstruct.consistency.verifying import verify

__all__ = ["Finding", "Ledger", "verify"]
