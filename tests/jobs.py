"""What tests ask of the outbox."""

from uuid import UUID

from tenants import jobs, tasks
from tenants.servers import servers


def claimed(kind: jobs.JobKind) -> list[UUID]:
    """Claim all that is due of the kind, as workers do; the keys, server by server, by turns."""
    return [claim.key for claim in jobs.claim_of_all_servers(kind)]


def work(kind: str) -> None:
    """Let a worker of each server do what has its turn there."""
    for server in servers():
        tasks.work(kind, server)
