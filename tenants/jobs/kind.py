"""Kinds of jobs, and the life of a job: enqueued, begun, finished or failed, retried.

A job is a row of `tenants_job`, identified by its tenant, its kind and its key. The row has the due
time, the number of attempts and the last error. The key is the id of the row that the job is about:
a message, a delivery, a request.

An attempt is counted before the work, with a lease (`tenants.jobs.lease`): only the worker that has
the lease does the job. A worker that leases a job and finds `begun_at` set knows that the worker
before it has died. A job that kills its workers is therefore given up like any job that fails.
"""

import logging
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import partial
from typing import Any, Final
from uuid import UUID

from celery import Task, current_app
from django.conf import settings
from django.db import IntegrityError
from django.db.models import F
from django.db.models.functions import Greatest, Now

from tenants import traces, transaction
from tenants.context import (
    current_server,
    execute,
    fetch_row,
    required_tenant_id,
)
from tenants.exceptions import KonstructError, code_of, detail_of, reason_of
from tenants.jobs import metrics
from tenants.jobs.lease import Lease, LeaseLost, WorkerLost
from tenants.jobs.worker import this_worker
from tenants.models import Job, JobQuerySet
from tenants.outages import is_outage
from tenants.servers import MAIN

logger = logging.getLogger(__name__)

# The Celery task that claims a job and does it. It is given by name: tenants.tasks imports this.
WORK = "tenants.tasks.work"
# A job that was begun can be claimed again after this time: it is done by then, or its worker died.
GRACE = timedelta(seconds=5)
# A job that is claimed over and over, such as while its thread is locked, is claimed more rarely.
MAX_GRACE = timedelta(minutes=5)
# Interrupted attempts after which a job is retried immediately: the first worker may have been
# killed for another reason.
FREE_RETRIES = 1
# 2 ** 30 seconds are longer than every maximum.
MAX_EXPONENT = 30

_ENQUEUE = """
INSERT INTO tenants_job AS job (tenant_id, kind, key, due_at, sweep_at, traceparent)
SELECT %(tenant_id)s, %(kind)s, key, statement_timestamp() + %(delay)s,
       statement_timestamp() + %(delay)s, %(traceparent)s::text
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

_FINISH = """
DELETE FROM tenants_job
WHERE tenant_id = %(tenant_id)s AND kind = %(kind)s AND key = ANY (%(keys)s::uuid[])
"""
_FINISH_BEGUN = _FINISH + "AND begun_at IS NOT NULL"
# The next statement of the transaction leases another job of the lane.
_END_OVERDUE = """
UPDATE tenants_job SET worker = NULL, leased_until = NULL, lane = NULL
WHERE tenant_id = %(tenant_id)s AND kind = %(kind)s AND lane = %(lane)s AND key <> %(key)s
  AND leased_until <= statement_timestamp()
"""
# An attempt after which the job is given up is not counted again.
_BEGIN = """
WITH free AS (
    SELECT job.attempts, job.begun_at IS NOT NULL AS is_takeover,
           job.begun_at IS NOT NULL AND job.attempts >= %(lost_at)s AS is_lost
    FROM tenants_job AS job
    WHERE tenant_id = %(tenant_id)s AND kind = %(kind)s AND key = %(key)s
      AND failed_at IS NULL AND held_for = ''
      AND (leased_until IS NULL OR leased_until <= statement_timestamp())
      AND NOT EXISTS (
          SELECT FROM tenants_job AS other
          WHERE other.tenant_id = job.tenant_id AND other.kind = job.kind
            AND other.lane = %(lane)s AND other.key <> job.key
      )
    FOR UPDATE SKIP LOCKED
)
UPDATE tenants_job AS job
SET attempts = free.attempts + (NOT free.is_lost)::int, begun_at = statement_timestamp(),
    lease = lease + 1, worker = %(worker)s, lane = %(lane)s,
    leased_until = statement_timestamp() + make_interval(secs => %(seconds)s),
    sweep_at = statement_timestamp() + make_interval(secs => %(seconds)s)
FROM free WHERE tenant_id = %(tenant_id)s AND kind = %(kind)s AND key = %(key)s
RETURNING job.lease, free.is_lost, job.attempts, free.is_takeover, job.traceparent,
          job.attempt_traceparent
"""
# Sent only while the attempt is traced.
_NOTE_ATTEMPT = """
UPDATE tenants_job SET attempt_traceparent = %(traceparent)s::text
WHERE tenant_id = %(tenant_id)s AND kind = %(kind)s AND key = ANY (%(keys)s::uuid[])
"""

KINDS: Final[dict[str, "JobKind"]] = {}


# Called with the key of a job that failed for good, in the transaction that records it.
_watchers: list[Callable[[UUID], None]] = []


def on_given_up(watcher: Callable[[UUID], None]) -> None:
    """Call a function with the key of each job that fails for good. An app registers it once."""
    _watchers.append(watcher)


# Codes of failures after which a part of the work may be done.
INTERRUPTED = frozenset({WorkerLost.code})


class Outcome(StrEnum):
    """Results of an attempt."""

    DONE = "done"
    FAILED = "failed"
    """It will be tried again."""
    GIVEN_UP = "given_up"


def _never(error: Exception) -> bool:
    return False


@dataclass(frozen=True)
class JobKind:
    """One kind of job. Creating it registers it, so that workers find it by its name.

    The methods work on jobs of the current tenant.
    """

    name: str
    task: str
    """Name of the TenantTask that does the job, given the tenant's id and the job's key."""
    queue: str
    """Celery queue of the workers. Empty: no worker is woken, another process claims."""
    max_attempts: int = 1
    first_backoff: float = 1.0
    """Seconds until the second attempt. Each further pause is twice as long."""
    max_backoff: float = 300.0
    """Seconds of the longest pause."""
    is_final: Callable[[Exception], bool] = _never
    """Whether another attempt is of no use after this error."""
    is_busy: Callable[[Exception], bool] = _never
    """Whether the error only asks to wait for its `retry_after`: the attempt does not count."""
    includes_suspended: bool = False
    """Whether jobs of suspended tenants are done."""

    def __post_init__(self) -> None:
        KINDS[self.name] = self
        metrics.kinds.add(self.name)

    # --- Enqueue ---------------------------------------------------------------------------------

    def enqueue(self, key: UUID) -> None:
        """Enqueue a job, unless it is queued already, and wake a worker on commit.

        Call it in the transaction that writes the row that the job is about.
        """
        self.enqueue_many([key])
        self.wake_on_commit()

    def enqueue_many(self, keys: Collection[UUID], *, delay: timedelta = timedelta(0)) -> None:
        """Enqueue jobs that are not queued yet, without waking a worker.

        Args:
            keys: of the jobs.
            delay: time until workers may claim them.
        """
        if keys:
            execute(_UNLESS_QUEUED, self._values(keys, delay))

    def enqueue_if_missing(self, key: UUID) -> bool:
        """Enqueue a job; return False if it is queued, held or failed already."""
        is_new = self._execute(_UNLESS_QUEUED, [key])
        if is_new:
            self.wake_on_commit()
        return is_new

    def enqueue_again(self, key: UUID) -> None:
        """Enqueue a job, or reset it: a failed job is retried, a leased job is done once more."""
        self._execute(_OR_RESET, [key])
        self.wake_on_commit()

    # --- Attempts --------------------------------------------------------------------------------

    @contextmanager
    def lease_job(self, key: UUID, lane: UUID | None = None) -> Iterator[Lease | None]:
        """Lease a job for the block, as `begin` does. An error that leaves the block ends it."""
        lease = self.begin(key, lane)
        if lease is None:
            yield None
            return
        with self._attempt(lease):
            try:
                yield lease
            except BaseException:
                lease.abandon()
                raise

    def run(
        self,
        key: UUID,
        work: Callable[[Lease], object],
        *,
        lane: UUID | None = None,
        on_failure: Callable[[Exception], bool] | None = None,
    ) -> Outcome | None:
        """Lease a job, do it, and record an error. Call it outside of a transaction.

        Args:
            key: of the job.
            work: does the job with its lease, and finishes or postpones it.
            lane: as in `begin`.
            on_failure: records the error in a transaction of the lease, and returns whether the job
                was given up. By default it is `record_failure`, unless the job was requeued.

        Returns:
            None if another worker has the job or its lane, or the job is gone: nothing was written.

        Raises:
            DatabaseError: the failure could not be recorded. The lease has ended.
        """
        try:
            with self.lease_job(key, lane) as lease:
                if lease is None:
                    return None
                try:
                    lease.refuse_lost()
                    work(lease)
                except LeaseLost:
                    raise
                except Exception as error:  # any error is for people to read, at the job
                    record = on_failure or partial(self.record_failure, key, unless_requeued=True)
                    with lease.transaction():
                        is_given_up = record(error)
                    return Outcome.GIVEN_UP if is_given_up else Outcome.FAILED
        except LeaseLost as error:
            logger.warning("%s", error)
            return None
        return Outcome.DONE

    def begin(self, key: UUID, lane: UUID | None = None) -> Lease | None:
        """Lease a job and count an attempt, before the work.

        Call it outside of a transaction. Each write of the work goes into a transaction of the
        lease, which ends with the time limit of a job (TASK_TIME_LIMIT) or with its worker.

        Args:
            key: of the job.
            lane: jobs of one lane are done one at a time, such as those of a conversation.

        Returns:
            None if the job is gone, given up or held, or if it, or a job of its lane, is leased.
        """
        values = {
            **self._values([key]),
            "key": key,
            "lane": lane,
            "worker": this_worker(),
            "seconds": settings.TASK_TIME_LIMIT,
            "lost_at": min(FREE_RETRIES + 1, self.max_attempts),
        }
        try:
            with transaction.atomic():
                if lane is not None:
                    execute(_END_OVERDUE, values)
                row = fetch_row(_BEGIN, values)
        except IntegrityError:
            return None  # another worker has just leased another job of the lane
        return None if row is None else Lease(self.name, key, *row)

    def cancel_attempt(self, key: UUID) -> None:
        """End the attempt without counting it: the job was neither done nor did it fail."""
        self.jobs([key]).filter(begun_at__isnull=False).update(
            **NOT_BEGUN, attempts=Greatest(F("attempts") - 1, 0), sweep_at=Now()
        )

    def cancel_all_attempts(self) -> int:
        """End all leases of this kind in the current tenant, and return their number.

        The jobs are due immediately. The workers that had the leases write nothing more.
        """
        leased = self.jobs().filter(leased_until__isnull=False)
        now = {"due_at": Now(), "sweep_at": Now()}
        return leased.update(**NOT_BEGUN, **now, attempts=Greatest(F("attempts") - 1, 0))

    def finish(self, key: UUID, *, unless_requeued: bool = False) -> bool:
        """Remove the job, which is done; return whether it was there.

        Call it in the transaction that does the job, if there is one.

        Args:
            unless_requeued: keep a job that `enqueue_again` reset after it was begun, without its
                lease.
        """
        is_finished = self._execute(_FINISH_BEGUN if unless_requeued else _FINISH, [key])
        if is_finished:
            transaction.on_commit(partial(metrics.count, self.name, "done"))
        elif unless_requeued:
            self.jobs([key]).update(**NOT_BEGUN)
        return is_finished

    def finish_many(self, keys: Collection[UUID]) -> None:
        """Remove jobs that are done."""
        if keys and self._execute(_FINISH, keys):
            transaction.on_commit(partial(metrics.count, self.name, "done", len(keys)))

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
                error_code=code_of(error),
                last_error=reason_of(error),
                **when,
            )
            outcome = Outcome.GIVEN_UP if is_given_up else Outcome.FAILED
            transaction.on_commit(partial(metrics.count, self.name, outcome))
            if is_given_up:
                for watcher in _watchers:
                    watcher(key)
        logger.log(
            logging.ERROR if is_given_up else logging.WARNING,
            "The %s of %s %s: %s",
            self.name,
            key,
            "was given up"
            if is_given_up
            else f"failed (attempt {attempt}) and will be tried again",
            detail_of(error),
            exc_info=not (isinstance(error, KonstructError) or is_outage(error)),
        )
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
            send = partial(current_app.send_task, WORK, queue=self.queue, retry=False)
            _enqueue(send, WORK, (self.name, *where))

    def wake_on_commit(self) -> None:
        """Wake a worker for the current server when the current transaction is committed."""
        transaction.on_commit(partial(self.wake, current_server()))

    def jobs(self, keys: Collection[UUID] | None = None) -> JobQuerySet:
        """Return jobs of this kind of the current tenant: those with these keys, or all."""
        jobs = Job.objects.filter(tenant_id=required_tenant_id(), kind=self.name)
        if keys is None:
            return jobs
        return jobs.filter(key=next(iter(keys))) if len(keys) == 1 else jobs.filter(key__in=keys)

    @contextmanager
    def _attempt(self, lease: Lease) -> Iterator[None]:
        """Trace an attempt: a span of the trace in which the job was enqueued."""
        with traces.span(
            f"job {self.name}",
            traces.CONSUMER,
            parent=lease.traceparent,
            link=lease.attempt_traceparent,
            tenant_id=required_tenant_id(),
            job_kind=self.name,
            job_key=lease.key,
            attempt=lease.attempt,
            is_takeover=lease.is_takeover,
        ):
            if traces.is_recording():
                values = self._values([lease.key])
                execute(_NOTE_ATTEMPT, values)
            yield

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

    def _values(self, keys: Collection[UUID], delay: timedelta = timedelta(0)) -> dict[str, Any]:
        return {
            "tenant_id": required_tenant_id(),
            "kind": self.name,
            "keys": list(keys),
            "delay": delay,
            "traceparent": traces.traceparent(),
        }

    def _execute(self, statement: str, keys: Collection[UUID]) -> bool:
        return bool(execute(statement, self._values(keys)))


# Of a job that no worker does.
NOT_BEGUN: Final[dict[str, Any]] = {
    "begun_at": None,
    "worker": None,
    "leased_until": None,
    "lane": None,
}
_RESET: Final[dict[str, Any]] = {"attempts": 0, "error_code": "", "last_error": ""}


def owner_kind(name: str) -> JobKind:
    """Return a kind of job that only the owner's role does, and that is tried until it succeeds."""
    return JobKind(
        name=name,
        task="",
        queue="",
        max_attempts=sys.maxsize,
        first_backoff=10.0,
        max_backoff=3600.0,
        includes_suspended=True,
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
            name,
            args,
            type(error).__name__,
            error,
        )
