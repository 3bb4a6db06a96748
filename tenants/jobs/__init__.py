"""Jobs: work that waits for a worker is a row of one table, claimed by turns between tenants."""

from tenants.jobs.claims import Claim, claim, claim_of_all_servers, sweep
from tenants.jobs.kind import (
    GRACE,
    INTERRUPTED,
    KINDS,
    MAX_GRACE,
    WORK,
    JobKind,
    Outcome,
    enqueue_task,
    on_given_up,
    owner_kind,
)
from tenants.jobs.lease import Lease, LeaseLost, WorkerLost
