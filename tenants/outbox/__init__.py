"""The outbox: work that waits for a worker stands in one table, and is claimed by turns."""

from tenants.outbox.kind import GRACE, LONGEST_GRACE, WORK, Kind, kind_of_owner
from tenants.outbox.turns import Claim, claim, claim_of_all_servers, sweep

__all__ = [
    "GRACE",
    "LONGEST_GRACE",
    "WORK",
    "Claim",
    "Kind",
    "claim",
    "claim_of_all_servers",
    "kind_of_owner",
    "sweep",
]
