"""The ledger: checks that everything that was accepted is where it belongs, once."""

from konstruct.trust.ledger.records import Finding, Ledger
from konstruct.trust.ledger.verifying import verify

__all__ = ["Finding", "Ledger", "verify"]
