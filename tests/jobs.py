"""Job helpers for tests."""

from uuid import UUID

from django.db.models.functions import Now

from tenants import jobs, tasks
from tenants.models import Job
from tenants.servers import servers


def expire_leases() -> int:
    """Expire all leases of the current tenant as if workers died. Return their number."""
    leased = Job.objects.filter(leased_until__isnull=False)
    return leased.update(leased_until=Now(), sweep_at=Now())


def claimed(kind: jobs.JobKind) -> list[UUID]:
    """Claim all due jobs of the kind as workers do. Return the keys, server by server."""
    return [claim.key for claim in jobs.claim_of_all_servers(kind)]


def work(kind: str) -> None:
    """Run the due jobs of each server with one worker."""
    for server in servers():
        tasks.work(kind, server)
