"""Leases: the right of one worker to do a job and to write its results.

A lease ends when its job is done, when the worker gives it back, when its worker process dies or
hangs (`tenants.jobs.worker`), and after the time limit of a job. The next lease of the job has a
new token. A worker that goes on without knowing this writes nothing: each of its transactions first
locks the job's row and compares the token.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from tenants import transaction
from tenants.context import connection, execute, fetch_row, required_tenant_id, tenant_scope
from tenants.exceptions import KonstructError
from tenants.jobs import metrics
from tenants.outages import OUTAGES, outage_reason

logger = logging.getLogger(__name__)

# Locks the row before it takes the further locks; without a row it takes none.
_CHECK = """
SELECT (SELECT bool_and(public.try_tenant_lock(key)) FROM unnest(%(locks)s::text[]) AS key)
FROM tenants_job
WHERE tenant_id = %(tenant_id)s AND kind = %(kind)s AND key = %(key)s AND lease = %(token)s
  AND leased_until IS NOT NULL
FOR UPDATE
"""
# An interrupted attempt: it counts, and the job is due immediately.
_ABANDON = """
UPDATE tenants_job SET worker = NULL, leased_until = NULL, lane = NULL, sweep_at = now()
WHERE tenant_id = %(tenant_id)s AND kind = %(kind)s AND key = %(key)s AND lease = %(token)s
  AND leased_until IS NOT NULL
"""
_FINISH = """
DELETE FROM tenants_job
WHERE tenant_id = %(tenant_id)s AND kind = %(kind)s AND key = %(key)s AND lease = %(token)s
  AND leased_until IS NOT NULL
"""


# Leases of this process that could not be ended. Its heartbeat ends them.
_abandoned: list[dict[str, Any]] = []


class LeaseLost(KonstructError):
    """The lease has ended: another worker may have the job. Nothing was written."""

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
    """Whether a worker died during this job, in its last attempt or more than once."""
    attempt: int
    """The number of the attempt, from 1."""
    is_takeover: bool
    """Whether the worker of the previous attempt died during the job."""
    traceparent: str
    """The span that enqueued the job."""
    attempt_traceparent: str
    """The span of the previous attempt."""

    def refuse_lost(self) -> None:
        """Raise an error if `is_lost`, which `JobKind.run` records like any failure.

        Raises:
            WorkerLost: the previous worker died during the job.
        """
        if self.is_lost:
            raise WorkerLost("The worker was killed, or lost its connection, during the attempt.")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Do the block in a transaction, in which no other worker leases the job.

        Raises:
            LeaseLost: the lease has ended. The block was not begun.
        """
        with transaction.atomic():
            self.check()
            yield

    def check(self, locks: Sequence[str] = ()) -> bool:
        """Lock the job until the transaction ends.

        Args:
            locks: names of further locks of the tenant that are to be taken.

        Returns:
            Whether all of them were taken.

        Raises:
            LeaseLost: the lease has ended.
        """
        row = fetch_row(_CHECK, {**self._key_values(), "locks": list(locks)})
        if row is None:
            raise self.lost_error()
        return row[0] is not False

    def finish(self) -> None:
        """Delete the row of a done job. Call it in the transaction that does the job.

        Raises:
            LeaseLost: the lease has ended. Let it end the transaction.
        """
        if not execute(_FINISH, self._key_values()):
            raise self.lost_error()
        transaction.on_commit(partial(metrics.count, self.kind, "done"))

    def abandon(self) -> None:
        """End the lease after an error interrupted the worker, unless it has ended already.

        If Postgres is down, `end_abandoned` ends it later.
        """
        values = self._key_values()
        try:
            _abandon(values)
        except OUTAGES as error:
            logger.warning("A lease will be ended later: %s", outage_reason(error))
            _abandoned.append(values)

    def lost_error(self) -> LeaseLost:
        """Return the error to raise when the lease has ended."""
        return LeaseLost(f"The {self.kind} of {self.key} is another worker's by now.")

    def _key_values(self) -> dict[str, Any]:
        return {
            "tenant_id": required_tenant_id(),
            "kind": self.kind,
            "key": self.key,
            "token": self.token,
        }


def end_abandoned() -> None:
    """End the leases that `Lease.abandon` could not end; raises one of OUTAGES if it cannot."""
    while _abandoned:
        values = _abandoned.pop()
        try:
            with tenant_scope(values["tenant_id"]):
                _abandon(values)
        except BaseException:
            _abandoned.append(values)
            raise


def _abandon(values: dict[str, Any]) -> None:
    connection.close_if_broken()
    execute(_ABANDON, values)
