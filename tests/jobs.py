"""Job helpers for tests."""

from uuid import UUID

from django.db.models import F
from django.db.models.functions import Least, Now

from tenants import jobs, tasks, transaction
from tenants.context import server_scope
from tenants.models import Job
from tenants.servers import servers


def expire_leases() -> int:
    """Expire all leases of the current tenant as if workers died. Return their number."""
    leased = Job.objects.filter(leased_until__isnull=False)
    return leased.update(leased_until=Now(), sweep_at=Least(F("due_at"), Now()))


def claimed(kind: jobs.JobKind) -> list[UUID]:
    """Claim all due jobs of the kind as workers do. Return the keys, server by server."""
    found = []
    for server in servers():
        while (lease := jobs.claim(kind, server)) is not None:
            found.append(lease.key)
    return found


def claimable(kind: jobs.JobKind) -> list[UUID]:
    """Return the keys of the jobs that workers would claim."""
    keys = []
    for server in servers():
        with server_scope(server), transaction.atomic():
            while (lease := jobs.claim(kind, server)) is not None:
                keys.append(lease.key)
            transaction.set_rollback(True)
    return keys


def work(kind: str) -> None:
    """Run the due jobs of each server with one worker."""
    for server in servers():
        tasks.work(kind, server)
