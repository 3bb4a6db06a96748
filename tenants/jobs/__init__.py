"""Jobs: work that waits for a worker is a row of one table, claimed by turns between tenants."""

from tenants.jobs.claims import Claim, claim, claim_of_all_servers, sweep
from tenants.jobs.kind import (
    GRACE,
    INTERRUPTED,
    KINDS,
    MAX_GRACE,
    WORK,
    JobKind,
    TookTooLong,
    WorkerLost,
    enqueue_task,
    failure_of,
    owner_kind,
)

__all__ = [
    "GRACE",
    "INTERRUPTED",
    "KINDS",
    "MAX_GRACE",
    "WORK",
    "Claim",
    "JobKind",
    "TookTooLong",
    "WorkerLost",
    "claim",
    "claim_of_all_servers",
    "enqueue_task",
    "failure_of",
    "owner_kind",
    "sweep",
]
