"""What tests ask of jobs."""

from uuid import UUID

from django.db.models.functions import Now

from tenants import jobs, tasks
from tenants.models import Job
from tenants.servers import servers


def expire_leases() -> int:
    """End all leases of the current tenant as those of dead workers end; return their number."""
    leased = Job.objects.filter(leased_until__isnull=False)
    return leased.update(leased_until=Now(), sweep_at=Now())


def claimed(kind: jobs.JobKind) -> list[UUID]:
    """Claim all that is due of the kind, as workers do; the keys, server by server, by turns."""
    return [claim.key for claim in jobs.claim_of_all_servers(kind)]


def work(kind: str) -> None:
    """Let a worker of each server do what has its turn there."""
    for server in servers():
        tasks.work(kind, server)
