"""Leases: the right of one worker to do a job and to write what comes of it.

A lease ends when its job is done, when the worker gives it back, when its worker process dies or
hangs (`tenants.jobs.worker`), and after the time limit of a job. Whoever leases the job next gets a
new token. A worker that goes on without knowing this writes nothing: each of its transactions first
locks the job's row and compares the token.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from tenants import transaction
from tenants.context import connection, required_tenant_id
from tenants.exceptions import KonstructError

_CHECK = """
SELECT FROM tenants_job
WHERE tenant_id = %(tenant_id)s AND kind = %(kind)s AND key = %(key)s AND lease = %(token)s
  AND leased_until IS NOT NULL
FOR UPDATE
"""


class LeaseLost(KonstructError):
    """Another worker may do the job by now, or the job is gone: nothing was written."""

    code = "lease_lost"


class WorkerLost(KonstructError):
    """The worker that had begun this job has died."""

    code = "worker_lost"


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease of a job of the current tenant."""

    kind: str
    key: UUID
    token: int
    """Greater for each later lease of the job."""
    is_lost: bool
    """Whether a worker died over the job, in its last attempt or not for the first time."""

    def refuse_lost(self) -> None:
        """Do not try the job again at once where `is_lost`: record the error as any failure.

        Raises:
            WorkerLost: the worker before died over the job.
        """
        if self.is_lost:
            raise WorkerLost("The worker was killed, or lost its connection, while it was at work.")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Do the block in a transaction, in which nobody else leases the job.

        Raises:
            LeaseLost: the lease has ended. The block was not begun.
        """
        with transaction.atomic():
            self.check()
            yield

    def check(self) -> None:
        """Lock the job until the transaction ends.

        Raises:
            LeaseLost: the lease has ended.
        """
        names = {"kind": self.kind, "key": self.key, "token": self.token}
        with connection.cursor() as cursor:
            cursor.execute(_CHECK, {"tenant_id": required_tenant_id(), **names})
            if cursor.fetchone() is None:
                raise LeaseLost(f"The {self.kind} of {self.key} is another worker's by now.")
