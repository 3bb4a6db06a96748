"""Jobs: work that waits for a worker is a row of one table, claimed by turns between tenants.

A job is identified by its tenant, its kind and its key, the id of the row that it is about: a
message, a delivery, a request. A claim is a lease: one statement counts an attempt, gives the job a
new token and names the worker. Only the worker with this token writes results: each of its
transactions first locks the job's row and compares the token. A lease ends with its job, with its
worker process, and after the time limit of a job. Jobs of one lane, such as those of a
conversation, are leased one at a time, the longest due first.

A Celery task in the broker makes a worker claim some job of a kind. It does not name the job: a
tenant with ten thousand jobs has no more turns than a tenant with one.
"""

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import partial
from typing import Any, Final
from uuid import UUID, uuid4

from celery import Task, current_app
from django.conf import settings
from django.db import DatabaseError, IntegrityError, InterfaceError, connections
from django.db.models import F
from django.db.models.functions import Greatest, Least, Now
from django.utils.module_loading import import_string
from structlog.contextvars import bound_contextvars

from tenants import context, exceptions, metrics, traces, transaction
from tenants.limits.fair_shares import FairShares, Once
from tenants.models import Job, JobQuerySet, Tenant
from tenants.outages import OUTAGES, ServerDown, is_outage, outage_reason
from tenants.schemas.migrating import fits
from tenants.servers import MAIN, cache_server, servers

logger = logging.getLogger(__name__)

# The Celery task that calls `work`. It is given by name: tenants.tasks imports this module.
WORK = "tenants.tasks.work"
# Interrupted attempts after which a job is retried immediately: the first worker may have been
# killed for another reason.
FREE_RETRIES = 1
# 2 ** 30 seconds are longer than every maximum.
MAX_EXPONENT = 30

_kind_names: set[str] = set()
JOBS: Final = metrics.counter(
    "konstruct_jobs_total",
    "Attempts of jobs, by outcome.",
    kind=_kind_names,
    outcome=("done", "failed", "given_up"),
)


def _count(kind: str, outcome: str, number: int = 1) -> None:
    JOBS.of(kind=kind, outcome=outcome).inc(number)


# --- Leases -----------------------------------------------------------------------------------

# Locks the row before it takes the further locks; without a row it takes none.
_CHECK = """
SELECT (SELECT bool_and(public.try_tenant_lock(key)) FROM unnest(%(locks)s::text[]) AS key)
FROM tenants_job
WHERE tenant_id = %(tenant_id)s AND kind = %(kind)s AND key = %(key)s AND lease = %(token)s
  AND leased_until IS NOT NULL
FOR UPDATE
"""
# One statement, so that a job that is enqueued again, or leased by another worker, meanwhile stays.
_FINISH = """
DELETE FROM tenants_job
WHERE tenant_id = %(tenant_id)s AND kind = %(kind)s AND key = ANY (%(keys)s::uuid[])
"""
_FINISH_BEGUN = _FINISH + "AND begun_at IS NOT NULL"
_FINISH_LEASED = _FINISH + "AND lease = %(token)s AND leased_until IS NOT NULL"

# Leases of this process that could not be ended. Its heartbeat ends them.
_abandoned: list["Lease"] = []


class LeaseLost(exceptions.KonstructError):
    """The lease has ended: another worker may have the job. Nothing was written."""

    code = "lease_lost"


class WorkerLost(exceptions.KonstructError):
    """The worker that had begun this job has died."""

    code = "worker_lost"


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease of a job."""

    tenant_id: UUID
    kind: str
    key: UUID
    token: int
    """Greater for each later lease of the job."""
    is_lost: bool
    """Whether a worker died during this job, in its last attempt or more than once."""
    attempt: int
    """The number of the attempt, from 1."""
    traceparent: str
    """The span that enqueued the job."""
    held_for: str
    """Why the job was held, if the maximum time of the hold has passed."""

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
        row = context.fetch_row(_CHECK, {**self._values(), "locks": list(locks)})
        if row is None:
            raise self.lost_error()
        return row[0] is not False

    def finish(self) -> None:
        """Delete the row of a done job. Call it in the transaction that does the job.

        Raises:
            LeaseLost: the lease has ended. Let it end the transaction.
        """
        if not context.execute(_FINISH_LEASED, self._values()):
            raise self.lost_error()
        transaction.on_commit(partial(_count, self.kind, "done"))

    def abandon(self) -> None:
        """End the lease after an error interrupted the worker, unless it has ended already.

        The attempt counts, and the job is due immediately, before later ones of its lane. If
        Postgres is down, `end_abandoned` ends the lease later.
        """
        try:
            self.end()
        except OUTAGES as error:
            logger.warning("A lease will be ended later: %s", outage_reason(error))
            _abandoned.append(self)

    def end(self) -> None:
        """End the lease, as `abandon` does; raises one of OUTAGES if it cannot."""
        context.connection.close_if_broken()
        jobs = Job.objects.filter(tenant_id=self.tenant_id, kind=self.kind, key=self.key)
        leased = jobs.filter(lease=self.token, leased_until__isnull=False)
        leased.update(worker=None, leased_until=None, sweep_at=Least(F("due_at"), Now()))

    def lost_error(self) -> LeaseLost:
        """Return the error to raise when the lease has ended."""
        return LeaseLost(f"The {self.kind} of {self.key} is another worker's by now.")

    def _values(self) -> dict[str, Any]:
        key = {"tenant_id": self.tenant_id, "kind": self.kind, "key": self.key}
        return {**key, "keys": [self.key], "token": self.token}


def key_of(job: UUID | Lease) -> UUID:
    """Return the key of a job or of its lease."""
    return job.key if isinstance(job, Lease) else job


def end_abandoned() -> None:
    """End the leases that `Lease.abandon` could not end; raises one of OUTAGES if it cannot."""
    while _abandoned:
        lease = _abandoned.pop()
        try:
            with context.tenant_scope(lease.tenant_id):
                lease.end()
        except BaseException:
            _abandoned.append(lease)
            raise


# --- Kinds ----------------------------------------------------------------------------------------

_ENQUEUE = """
INSERT INTO tenants_job AS job (tenant_id, kind, key, lane, due_at, sweep_at, traceparent)
SELECT %(tenant_id)s, %(kind)s, key, %(lane)s, statement_timestamp(), statement_timestamp(),
       %(traceparent)s::text
FROM unnest(%(keys)s::uuid[]) AS key
ON CONFLICT (tenant_id, kind, key)
"""
_UNLESS_QUEUED = _ENQUEUE + "DO NOTHING"
# A job that a service asked to delay (it is due later, and no attempt has failed) stays delayed.
_OR_RESET = (
    _ENQUEUE
    + """DO UPDATE SET
    attempts = 0, begun_at = NULL, failed_at = NULL,
    traceparent = coalesce(nullif(EXCLUDED.traceparent, ''), job.traceparent),
    due_at = CASE WHEN job.attempts = 0 THEN greatest(job.due_at, EXCLUDED.due_at)
                  ELSE EXCLUDED.due_at END,
    sweep_at = CASE WHEN job.attempts = 0 THEN greatest(job.due_at, EXCLUDED.due_at)
                    ELSE EXCLUDED.due_at END
"""
)

# An attempt after which the job is given up is not counted again. An overdue lease keeps its lane
# until the job itself is leased again.
_LEASE = """
WITH next AS (
    {}
)
UPDATE tenants_job AS job
SET attempts = job.attempts + (NOT next.is_lost)::int, begun_at = statement_timestamp(),
    lease = job.lease + 1, worker = %(worker)s,
    leased_until = statement_timestamp() + %(time_limit)s,
    sweep_at = statement_timestamp() + %(time_limit)s
FROM next
WHERE job.tenant_id = next.tenant_id AND job.kind = next.kind AND job.key = next.key
RETURNING job.tenant_id, job.kind, job.key, job.lease, next.is_lost, job.attempts, job.traceparent,
          job.held_for
"""
_FREE = """
    SELECT job.tenant_id, job.kind, job.key,
           begun_at IS NOT NULL AND attempts >= %(lost_at)s AS is_lost
    FROM tenants_job AS job
    WHERE job.kind = %(kind)s AND failed_at IS NULL
      AND (leased_until IS NULL OR leased_until <= statement_timestamp())
      AND NOT EXISTS (
          SELECT FROM tenants_job AS other
          WHERE other.tenant_id = job.tenant_id AND other.kind = job.kind
            AND other.lane = job.lane AND other.leased_until IS NOT NULL AND other.key <> job.key
      )
"""
# Of the first tenant that has a due job in the ranges of ids, which are read one after the other,
# by the index on kind, tenant and time. Rows that others are claiming are skipped.
_CLAIM = _LEASE.format(
    f"""
    SELECT waiting.* FROM unnest(%(after)s::uuid[], %(before)s::uuid[]) AS range (after, before)
    CROSS JOIN LATERAL (
        {_FREE}
          AND sweep_at <= statement_timestamp()
          AND tenant_id > range.after AND tenant_id < range.before
        ORDER BY tenant_id, sweep_at LIMIT 1 FOR UPDATE SKIP LOCKED
    ) AS waiting
    LIMIT 1
    """  # noqa: S608 (a constant)
)
# Jobs of the current tenant: these, also if they are not due yet; or the one of a lane that is due
# longest.
_LEASE_OF_TENANT = _LEASE.format(
    f"""
    {_FREE}
      AND tenant_id = %(tenant_id)s AND held_for = ''
      AND (key = ANY (%(keys)s::uuid[]) OR lane = %(lane)s)
      AND (%(lane)s::uuid IS NULL OR due_at <= statement_timestamp())
    ORDER BY due_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
    """
)
KINDS: Final[dict[str, "JobKind"]] = {}


# Called with the key of a job that failed for good, in the transaction that records it.
_watchers: list[Callable[[UUID], None]] = []


def on_given_up(watcher: Callable[[UUID], None]) -> None:
    """Call a function with the key of each job that fails for good. An app registers it once."""
    _watchers.append(watcher)


class Outcome(StrEnum):
    """Results of an attempt."""

    DONE = "done"
    FAILED = "failed"
    """It will be tried again."""
    GIVEN_UP = "given_up"


@dataclass(frozen=True)
class JobKind:
    """One kind of job. Creating it registers it, so that workers find it by its name.

    The methods work on jobs of the current tenant.
    """

    name: str
    do: str | Callable[[Lease], object]
    """The function that does a claimed job, inside its tenant; or its dotted path."""
    queue: str
    """Celery queue of the workers. Empty: no worker is woken, another process claims."""
    max_attempts: int = 1
    first_backoff: float = 1.0
    """Seconds until the second attempt. Each further pause is twice as long."""
    max_backoff: float = 300.0
    """Seconds of the longest pause."""
    is_final: Callable[[Exception], bool] = lambda error: False
    """Whether another attempt is of no use after this error."""
    is_busy: Callable[[Exception], bool] = lambda error: False
    """Whether the error only asks to wait for its `retry_after`: the attempt does not count."""
    includes_suspended: bool = False
    """Whether jobs of suspended tenants are done."""
    time_limit: timedelta | None = None
    """After this time another worker may have the job. By default settings.TASK_TIME_LIMIT."""

    def __post_init__(self) -> None:
        KINDS[self.name] = self
        _kind_names.add(self.name)

    # --- Enqueue ---------------------------------------------------------------------------------

    def enqueue(self, key: UUID, *, lane: UUID | None = None) -> bool:
        """Enqueue a job and wake a worker on commit; return False if it is queued, held or failed.

        Call it in the transaction that writes the row that the job is about.

        Args:
            key: of the job.
            lane: jobs of one lane are done one at a time, such as those of a conversation.
        """
        is_new = bool(self.enqueue_many([key], lane=lane))
        if is_new:
            self.wake_on_commit()
        return is_new

    def enqueue_many(self, keys: Collection[UUID], *, lane: UUID | None = None) -> int:
        """Enqueue jobs that are not queued yet, without waking a worker; return their number.

        Args:
            keys: of the jobs.
            lane: of the jobs, as in `enqueue`.
        """
        if not keys:
            return 0
        return context.execute(_UNLESS_QUEUED, self._values(keys, lane=lane))

    def enqueue_again(self, key: UUID) -> None:
        """Enqueue a job, or reset it: a failed job is retried, a leased job is done once more."""
        context.execute(_OR_RESET, self._values([key]))
        self.wake_on_commit()

    # --- Attempts --------------------------------------------------------------------------------

    def lease(self, key: UUID, *, lane: UUID | None = None) -> Lease | None:
        """Lease a job of the current tenant and count an attempt, before the work.

        Call it outside of a transaction. Each write of the work goes into a transaction of the
        lease, which ends with the time limit of a job or with its worker.

        Args:
            key: of the job.
            lane: lease the job that is due longest, of this lane and this key.

        Returns:
            None if the job is gone, given up or held, or if it, or a job of its lane, is leased.
        """
        values = {**self._values([key], lane=lane), **self.lease_values(), "limit": 1}
        try:
            with transaction.atomic():
                row = context.fetch_row(_LEASE_OF_TENANT, values)
        except IntegrityError:
            return None  # another worker has just leased another job of the lane
        return None if row is None else Lease(*row)

    def lease_many(self, keys: Collection[UUID]) -> list[Lease]:
        """Lease the jobs with these keys that `lease` would lease, and that have no lanes."""
        values = {**self._values(keys), **self.lease_values(), "limit": len(keys)}
        return [Lease(*row) for row in context.fetch_all(_LEASE_OF_TENANT, values)] if keys else []

    def lease_values(self) -> dict[str, Any]:
        """Return the values of a statement that leases jobs of this kind."""
        return {
            "kind": self.name,
            "worker": this_worker(),
            "time_limit": self.time_limit or timedelta(seconds=settings.TASK_TIME_LIMIT),
            "lost_at": min(FREE_RETRIES + 1, self.max_attempts),
        }

    @contextmanager
    def attempt(self, lease: Lease) -> Iterator[None]:
        """Do the block as an attempt. An error that leaves the block ends the lease.

        The attempt is a span of the trace in which the job was enqueued.
        """
        with traces.span(
            f"job {self.name}",
            traces.CONSUMER,
            parent=lease.traceparent,
            tenant_id=lease.tenant_id,
            job_kind=self.name,
            job_key=lease.key,
            attempt=lease.attempt,
        ):
            try:
                yield
            except BaseException:
                lease.abandon()
                raise

    def run(
        self,
        job: UUID | Lease,
        work: Callable[[Lease], object],
        *,
        on_failure: Callable[[Exception], bool] | None = None,
    ) -> Outcome | None:
        """Do a job, and record an error. Call it outside of a transaction.

        Args:
            job: the lease of the worker, inside of `attempt`; or the key of a job to lease.
            work: does the job with its lease, and finishes or postpones it.
            on_failure: records the error in a transaction of the lease, and returns whether the job
                was given up. By default it is `record_failure`, unless the job was requeued.

        Returns:
            None if another worker has the job or its lane, or the job is gone: nothing was written.

        Raises:
            DatabaseError: the failure could not be recorded. The lease has ended.
        """
        if isinstance(job, UUID):
            lease = self.lease(job)
            if lease is None:
                return None
            with self.attempt(lease):
                return self.run(lease, work, on_failure=on_failure)
        try:
            try:
                job.refuse_lost()
                work(job)
            except LeaseLost:
                raise
            except Exception as error:  # any error is for people to read, at the job
                record = on_failure or partial(self.record_failure, job.key, unless_requeued=True)
                with job.transaction():
                    is_given_up = record(error)
                return Outcome.GIVEN_UP if is_given_up else Outcome.FAILED
        except LeaseLost as error:
            logger.warning("%s", error)
            return None
        return Outcome.DONE

    def cancel_attempts(self, keys: Collection[UUID] | None = None) -> int:
        """End the leases of these jobs, or of all, and return their number. No attempt counts.

        The jobs were neither done nor did they fail, and are due again. The workers that had the
        leases write nothing more.
        """
        leased = self.jobs(keys).filter(leased_until__isnull=False)
        return leased.update(
            **NOT_BEGUN, attempts=Greatest(F("attempts") - 1, 0), sweep_at=Least(F("due_at"), Now())
        )

    def finish(self, key: UUID, *, unless_requeued: bool = False) -> bool:
        """Remove the job, which is done; return whether it was there.

        Call it in the transaction that does the job, if there is one.

        Args:
            unless_requeued: keep a job that `enqueue_again` reset after it was begun, without its
                lease.
        """
        statement = _FINISH_BEGUN if unless_requeued else _FINISH
        is_finished = bool(context.execute(statement, self._values([key])))
        if is_finished:
            transaction.on_commit(partial(_count, self.name, "done"))
        elif unless_requeued:
            self.jobs([key]).update(**NOT_BEGUN)
        return is_finished

    def finish_many(self, keys: Collection[UUID]) -> None:
        """Remove jobs that are done."""
        if keys and context.execute(_FINISH, self._values(keys)):
            transaction.on_commit(partial(_count, self.name, "done", len(keys)))

    def record_failure(self, key: UUID, error: Exception, *, unless_requeued: bool = False) -> bool:
        """Record why the attempt failed, and when the next one is due.

        A final error, and the failure of the last attempt, end the attempts: the row stays with its
        reason. The pause is `first_backoff * 2 ** (attempt - 1)` seconds, at least the error's
        `retry_after`, and at most `max_backoff`. An error that comes before `begin` counts as an
        attempt.

        Args:
            key: of the job.
            error: why the attempt failed.
            unless_requeued: change nothing if `enqueue_again` reset the job after it was begun.

        Returns:
            Whether the job was given up.
        """
        traces.record_error(error)
        with transaction.atomic():
            jobs = self.jobs([key])
            job = jobs.select_for_update().first()
            if job is None:
                return False
            if unless_requeued and job.begun_at is None:
                jobs.update(**NOT_BEGUN)
                return False
            attempt = job.attempts + (job.begun_at is None)
            is_busy = self.is_busy(error)
            is_given_up = not is_busy and (self.is_final(error) or attempt >= self.max_attempts)
            later = Now() + self._pause(attempt, error)
            when = {"failed_at": Now()} if is_given_up else {"due_at": later, "sweep_at": later}
            jobs.update(
                **NOT_BEGUN,
                attempts=attempt - is_busy,
                error_code=exceptions.code_of(error),
                last_error=exceptions.reason_of(error),
                **when,
            )
            outcome = Outcome.GIVEN_UP if is_given_up else Outcome.FAILED
            transaction.on_commit(partial(_count, self.name, outcome))
            if is_given_up:
                for watcher in _watchers:
                    watcher(key)
        level, what = logging.WARNING, f"failed (attempt {attempt}) and will be tried again"
        if is_given_up:
            level, what = logging.ERROR, "was given up"
        is_known = isinstance(error, exceptions.KonstructError) or is_outage(error)
        values = (self.name, key, what, exceptions.detail_of(error))
        logger.log(level, "The %s of %s %s: %s", *values, exc_info=not is_known)
        return is_given_up

    # --- Scheduling ---------------------------------------------------------------------

    def postpone(self, key: UUID, pause: timedelta, *, note: str = "") -> None:
        """Make the job due later, end its lease and reset its attempts.

        Args:
            key: of the job.
            pause: time until it is due.
            note: the reason, which people read, such as a reached daily limit of tokens.
        """
        later = Now() + pause
        when = {"failed_at": None, "due_at": later, "sweep_at": later}
        self.jobs([key]).update(**NOT_BEGUN, attempts=0, error_code="", last_error=note, **when)

    def requeue(self, key: UUID) -> None:
        """Let another worker claim the job immediately."""
        self.jobs([key]).update(sweep_at=Now())
        self.wake_on_commit()

    def hold(self, key: UUID, held_for: str, *, max_time: timedelta | None = None) -> bool:
        """Let no worker claim the job; return False if it is gone or was given up.

        Args:
            key: of the job.
            held_for: who has to act first, such as "person".
            max_time: time after which a worker is given the job again. None: it stays held.
        """
        sweep_at = None if max_time is None else Now() + max_time
        waiting = self.jobs([key]).filter(failed_at__isnull=True)
        return bool(waiting.update(**NOT_BEGUN, held_for=held_for, sweep_at=sweep_at))

    def release(self, key: UUID) -> bool:
        """Enqueue a held job as new; return False if it is not held."""
        return self._retry(self.jobs([key]).held())

    def retry(self, key: UUID) -> bool:
        """Enqueue a job that was given up as new; return False if it was not given up."""
        return self._retry(self.jobs([key]).failed())

    def give_up(self, key: UUID, *, code: str, reason: str) -> None:
        """End the attempts, or the holding, and keep the reason."""
        end = {"held_for": "", "failed_at": Now(), "error_code": code, "last_error": reason}
        self.jobs([key]).update(**NOT_BEGUN, attempts=0, **end)

    # --- Workers ---------------------------------------------------------------------------------

    def wake(self, server: str = MAIN, *, is_swept: bool = False) -> None:
        """Wake a worker, which claims jobs of this kind that are due on the server.

        Args:
            server: of the jobs.
            is_swept: let the worker wake another one if it finds a job.
        """
        if self.queue:
            where = (server, is_swept) if is_swept else () if server == MAIN else (server,)
            expires = SWEPT_SECONDS if is_swept else None
            send = partial(
                current_app.send_task, WORK, queue=self.queue, retry=False, expires=expires
            )
            _enqueue(send, WORK, (self.name, *where))

    def wake_on_commit(self) -> None:
        """Wake a worker for the current server when the current transaction is committed."""
        transaction.on_commit(partial(self.wake, context.current_server()))

    def jobs(self, keys: Collection[UUID] | None = None) -> JobQuerySet:
        """Return jobs of this kind of the current tenant: those with these keys, or all."""
        jobs = Job.objects.filter(tenant_id=context.required_tenant_id(), kind=self.name)
        if keys is None:
            return jobs
        return jobs.filter(key=next(iter(keys))) if len(keys) == 1 else jobs.filter(key__in=keys)

    def _retry(self, jobs: JobQuerySet) -> bool:
        now = {"due_at": Now(), "sweep_at": Now(), "failed_at": None, "held_for": ""}
        if not jobs.update(**_RESET, **NOT_BEGUN, **now):
            return False
        self.wake_on_commit()
        return True

    def _pause(self, attempt: int, error: Exception) -> timedelta:
        retry_after = getattr(error, "retry_after", None) or 0.0
        if self.is_busy(error):
            return timedelta(seconds=retry_after)
        seconds = self.first_backoff * 2.0 ** min(attempt - 1, MAX_EXPONENT)
        return timedelta(seconds=min(max(seconds, retry_after), self.max_backoff))

    def _values(self, keys: Collection[UUID], *, lane: UUID | None = None) -> dict[str, Any]:
        return {
            "tenant_id": context.required_tenant_id(),
            "kind": self.name,
            "keys": list(keys),
            "lane": lane,
            "traceparent": traces.traceparent(),
        }


# Of a job that no worker does.
NOT_BEGUN: Final[dict[str, Any]] = {"begun_at": None, "worker": None, "leased_until": None}
_RESET: Final[dict[str, Any]] = {"attempts": 0, "error_code": "", "last_error": ""}


def owner_kind(name: str) -> JobKind:
    """Return a kind of job that only the owner's role does, and that is tried until it succeeds."""
    return JobKind(
        name=name,
        do="",
        queue="",
        max_attempts=sys.maxsize,
        first_backoff=10.0,
        max_backoff=3600.0,
        includes_suspended=True,
        time_limit=timedelta(days=1),
    )


def enqueue_task(task: Task, *args: Any) -> None:
    """Send a Celery task. If the broker is down, log a warning: the sweep wakes a worker later.

    Call it after the commit of the rows that the task is about.
    """
    _enqueue(partial(task.apply_async, retry=False), task.name, args)


def _enqueue(send: Callable[[tuple[Any, ...]], object], name: str, args: tuple[Any, ...]) -> None:
    try:
        send(args)
    except Exception as error:  # for any error of the broker, the row is committed and swept
        logger.warning(
            "%s%r was not enqueued (%s: %s). The sweeper will find it; is the broker running?",
            *(name, args, type(error).__name__, error),
        )


# --- Claims ---------------------------------------------------------------------------------------

# Tenants' ids are between these.
FIRST_ID, LAST_ID = UUID(int=0), UUID(int=2**128 - 1)
# A job of a tenant that is not served is not claimed again for this time. `resume_tenant` wakes it.
SUSPENDED_DELAY = timedelta(hours=1)
# The same for a tenant that is behind its migrations.
BEHIND_DELAY = timedelta(minutes=5)
# States of the tenants that are served.
SERVED = [Tenant.State.ACTIVE]
SERVED_OR_SUSPENDED = [Tenant.State.ACTIVE, Tenant.State.SUSPENDED]

# Make Postgres plan a claim by the index on kind, tenant and time, and by the primary key. It then
# reads only the rows that it returns. With statistics of an almost empty table the planner would
# sort all jobs of a tenant, or read the whole table.
_BY_INDEXES = dict.fromkeys(
    (
        "enable_sort", "enable_incremental_sort", "enable_seqscan", "enable_bitmapscan",
        "enable_hashjoin", "enable_mergejoin",
    ),
    "off",
)  # fmt: skip
# The tenant of this process' last claim, by server and kind.
_last: dict[tuple[str, str], UUID] = {}


def claim(
    kind: JobKind, server: str = MAIN, exclude: Collection[UUID] = frozenset()
) -> Lease | None:
    """Lease the next tenant's job that is due longest; return None if no job is due.

    Each worker process goes round the tenants of the server that have due jobs, and takes one job
    of each. Jobs of tenants that are not served are delayed on the way.

    Args:
        kind: of the job.
        server: of the tenant.
        exclude: tenants to leave out. However many jobs they have, they are not read.
    """
    states = SERVED_OR_SUSPENDED if kind.includes_suspended else SERVED
    rotation = (server, kind.name)
    with context.server_scope(server):
        # Ends: each iteration returns a job, or delays one, or another worker has leased one.
        while True:
            after, before = _ranges(_last.get(rotation, FIRST_ID), exclude)
            values = {**kind.lease_values(), "after": after, "before": before}
            try:
                with transaction.atomic():
                    context.connection.set_local(_BY_INDEXES)
                    row = context.fetch_row(_CLAIM, values)
                    if row is None:
                        return None
                    lease = Lease(*row)
                    _last[rotation] = lease.tenant_id
                    delay = _delay(lease.tenant_id, server, states)
                    if delay is not None:
                        transaction.set_rollback(True)
            except IntegrityError:
                continue  # another worker has just leased another job of the lane
            if delay is None:
                cache_server(lease.tenant_id, server)
                return lease
            jobs = Job.objects.filter(tenant_id=lease.tenant_id, kind=kind.name, key=lease.key)
            jobs.update(sweep_at=Now() + delay)


def _ranges(last: UUID, exclude: Collection[UUID]) -> tuple[list[UUID], list[UUID]]:
    """Return the ranges of tenant ids of a claim: from the last turn on, then from the first.

    Ranges exclude both of their bounds. No tenant has the first or the last id.
    """
    skipped = sorted(exclude)
    later = [tenant_id for tenant_id in skipped if tenant_id > last]
    earlier = [tenant_id for tenant_id in skipped if tenant_id <= last]
    end = UUID(int=last.int + 1)
    return [last, *later, FIRST_ID, *earlier], [*later, LAST_ID, *earlier, end]


def _delay(tenant_id: UUID, server: str, states: list[Tenant.State]) -> timedelta | None:
    """Return for how long the tenant's jobs are not done on this server; None if they are done."""
    tenants = Tenant.objects.filter(id=tenant_id, server=server, moving_to="", state__in=states)
    migrated_to = tenants.values_list("migrated_to", flat=True).first()
    if migrated_to is None:
        return SUSPENDED_DELAY
    return None if fits(migrated_to) else BEHIND_DELAY


# --- Work -----------------------------------------------------------------------------------------

# Set when this process is about to stop: its threads claim no further job.
_is_stopping = threading.Event()
# The start of each thread's job, by time.monotonic().
_begun: dict[int, float] = {}


# Of kinds without a queue: each thread of the owner's worker does one kind.
OTHER_SLOTS: Final = 1000


class Slots:
    """The running jobs of one queue in this process."""

    def __init__(self, queue: str) -> None:
        self.shares = FairShares(*settings.JOB_SLOTS.get(queue, (OTHER_SLOTS, 0)))
        self._claiming = threading.Lock()

    def claim(self, kind: JobKind, server: str) -> Lease | None:
        """Claim a job, and take a slot for its tenant; return None if there is no job or no slot.

        One thread at a time, so that a claim sees the slots that the one before has taken. No
        thread waits for its turn with a database connection: the thread before may wait for that
        connection.
        """
        with context.release_connections(), self._claiming:
            if _is_stopping.is_set() or self.shares.is_full():
                return None
            claimed = claim(kind, server, exclude=self.shares.tenants_at_limit())
            if claimed is not None:
                self.shares.enter(claimed.tenant_id)
            return claimed


@Once
def slots(queue: str) -> Slots:
    """Return the slots of this process for jobs of a queue."""
    return Slots(queue)


def work(
    kind: JobKind,
    server: str = MAIN,
    *,
    is_swept: bool = False,
    do: Callable[[Lease], object] | None = None,
) -> int:
    """Do jobs of this kind on a server, one after the other, until none can be claimed.

    A tenant that has used its share of slots is skipped. The thread that finishes a job of the
    tenant claims the next one, so that a free slot is filled without a message.

    Args:
        kind: of the jobs.
        server: of the tenants.
        is_swept: wake another worker for each claimed job.
        do: does a job; by default `kind.do`.

    Returns:
        The number of claimed jobs.
    """
    if do is None:
        do = import_string(kind.do) if isinstance(kind.do, str) else kind.do
    of_queue = slots(kind.queue)
    until, done = time.monotonic() + settings.TASK_TIME_LIMIT, 0
    # Ends: when no job can be claimed; after TASK_TIME_LIMIT another worker continues.
    while (lease := of_queue.claim(kind, server)) is not None:
        _begun[threading.get_ident()] = time.monotonic()
        try:
            if is_swept:
                kind.wake(server, is_swept=True)
            with (
                bound_contextvars(task_name=kind.name),
                context.tenant_scope(lease.tenant_id),
                kind.attempt(lease),
            ):
                do(lease)
        finally:
            del _begun[threading.get_ident()]
            of_queue.shares.leave(lease.tenant_id)
        done += 1
        if time.monotonic() > until:
            kind.wake(server)
            break
    return done


def stop_claiming() -> None:
    """Keep the threads of this process from claiming further jobs."""
    _is_stopping.set()


def overdue_jobs(seconds: float) -> int:
    """Return the number of this process's threads whose job runs for longer than this."""
    since = time.monotonic() - seconds
    return sum(begun < since for begun in list(_begun.values()))


# Kinds with a job that can be claimed.
_DUE = """
SELECT kind FROM unnest(%s::text[]) AS known (kind) WHERE EXISTS (
    SELECT FROM tenants_job AS job
    WHERE job.kind = known.kind AND failed_at IS NULL AND sweep_at <= statement_timestamp()
)
"""
# A task of a sweep that no worker takes within this time is dropped: the next sweep sends another.
SWEPT_SECONDS = 10.0


def sweep() -> int:
    """Wake a worker for each kind with due jobs; return the number of tasks sent.

    A worker that finds a job wakes another one, so that all are busy soon, and few are woken for
    jobs of tenants that have their share already. It is one statement for each server, however many
    tenants there are.
    """
    kinds = [kind.name for kind in KINDS.values() if kind.queue]
    woken = 0
    for server in servers():
        try:
            with context.server_scope(server), transaction.atomic():
                context.connection.set_local(_BY_INDEXES)
                due = context.fetch_column(_DUE, [kinds])
        except ServerDown as error:
            logger.warning("Its jobs are swept later: %s", error)
            continue
        for name in due:
            KINDS[name].wake(server, is_swept=True)
        woken += len(due)
    return woken


# --- Worker processes -----------------------------------------------------------------------------
#
# A process has one row on each server (`tenants_worker`), and one thread that renews it. However
# many jobs the process leases, that is one statement every RENEW_SECONDS. The same thread ends the
# leases of processes with an expired row, by the clock of Postgres; their jobs are due at once. A
# process that was stopped meanwhile finds its row gone, and begins anew with another id.
#
# The thread has its own connections. One that waited for a connection of the pool could wait as
# long as a lease is valid. A process without `start`, such as a command, leases jobs until the time
# limit of a job.

RENEW_SECONDS: Final = 2.0
# A process that has renewed nothing for so long counts as dead.
VALID_SECONDS: Final = 6.0

_RENEW = "SELECT public.renew_worker(%s, make_interval(secs => %s), %s)"
_RETURN = "SELECT public.return_expired_jobs()"
_GIVE_BACK = "SELECT public.give_back_jobs(%s)"


class _Process:
    """This process: its id, and on which servers the id is known."""

    def __init__(self) -> None:
        self.id = uuid4()
        self.pid = os.getpid()
        self.known: set[str] = set()
        self.renewed_at = time.monotonic()
        self.ended = threading.Event()

    def run(self) -> None:
        """Renew until `ended`."""
        with _separate_connections():
            while not self.ended.wait(RENEW_SECONDS):
                renew_worker()
                with suppress(DatabaseError, InterfaceError):  # it is tried again
                    end_abandoned()


@contextmanager
def _separate_connections() -> Iterator[None]:
    """Run the block with separate connections of this thread to the servers, not of a pool."""
    shared = {server: connections[server] for server in servers()}
    for server, wrapper in shared.items():
        connections[server] = wrapper.copy()
    try:
        yield
    finally:
        for server, wrapper in shared.items():
            connections[server].close()
            connections[server] = wrapper


_process: _Process | None = None


def start_worker() -> None:
    """Register this process, and keep it registered by a thread. Once for each process.

    Raises:
        OperationalError: a server cannot be reached.
    """
    global _process
    if _process is None or _process.pid != os.getpid():
        _process = _Process()
        renew_worker()
        threading.Thread(target=_process.run, name="leases", daemon=True).start()


def this_worker() -> UUID | None:
    """Return the id of this process; None if it was not started as a worker."""
    return None if _process is None or _process.pid != os.getpid() else _process.id


def renew_worker() -> None:
    """Renew this process on each server, and end the leases of processes that have expired.

    A process that finds itself expired or late, or a server that was away, waits for one turn
    before it ends those of others: they may be late for the same reason.
    """
    process = _process
    if process is None:
        return
    renewed_at = process.renewed_at
    for server in servers():
        try:
            with context.server_scope(server):
                context.connection.close_if_broken()
            with context.server_scope(server), context.connection.cursor() as cursor:
                is_new = server not in process.known
                cursor.execute(_RENEW, [process.id, VALID_SECONDS, is_new])
                if not cursor.fetchone()[0]:
                    logger.warning("Leases of this process have expired: it was stopped for long")
                    process.id, process.known = uuid4(), set()
                    renew_worker()
                    return
                process.known.add(server)
                is_late = time.monotonic() - renewed_at > 2 * RENEW_SECONDS
                process.renewed_at = time.monotonic()
                if is_new or is_late:
                    continue
                cursor.execute(_RETURN)
                if count := cursor.fetchone()[0]:
                    logger.warning("%s jobs of workers that died are due again", count)
        except (DatabaseError, InterfaceError) as error:  # the process must go on to renew
            logger.warning("Leases are not renewed: %s", outage_reason(error))
            process.known.discard(server)


def give_back_all() -> int:
    """End this process as a worker: its jobs are due at once, their attempts do not count.

    For a process that stops. Later writes of its threads are refused. Returns the
    number of jobs.
    """
    process, count = _process, 0
    if process is None:
        return 0
    process.ended.set()
    with _separate_connections():
        for server in process.known:
            try:
                with context.server_scope(server):
                    count += context.fetch_value(_GIVE_BACK, [process.id])
            except (DatabaseError, InterfaceError) as error:
                logger.warning("Jobs are due when the leases expire: %s", outage_reason(error))
    return count
