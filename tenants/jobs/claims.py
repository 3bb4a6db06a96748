"""Claiming jobs by turns between tenants, and waking workers for jobs that are due.

A Celery task in the broker makes a worker claim some job of a kind. It does not name the job: a
tenant with ten thousand jobs has no more turns than a tenant with one.
"""

import logging
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from celery import current_app

from tenants import transaction
from tenants.context import connection, execute, fetch_all, fetch_row, server_scope
from tenants.jobs.kind import GRACE, KINDS, MAX_GRACE, JobKind
from tenants.models import Tenant
from tenants.postgresql.exceptions import ServerDown
from tenants.schemas.migration_state import fits
from tenants.servers import MAIN, cache_server, servers

logger = logging.getLogger(__name__)

# Tasks that one sweep sends to a queue at most, less those that are in it already. Each that finds
# a job sends another one, so that all workers are busy soon, and few are woken for jobs of tenants
# that have their share already.
MAX_SWEPT_JOBS = 50
# Tenants' ids are between these.
FIRST_ID, LAST_ID = UUID(int=0), UUID(int=2**128 - 1)
# A job of a tenant that is not served is not claimed again for this time. `resume_tenant` wakes it.
SUSPENDED_DELAY = timedelta(hours=1)

# States of the tenants that are served.
SERVED = [Tenant.State.ACTIVE]
SERVED_OR_SUSPENDED = [Tenant.State.ACTIVE, Tenant.State.SUSPENDED]

# One job, in one statement, by the index on kind, tenant and time: of the first tenant that has one
# in the ranges of ids, which are read one after the other. Rows that others are claiming are
# skipped. The row is updated by its key: in a join, a table that was almost empty at its last
# vacuum is read whole.
_CLAIM = """
WITH next AS (
    SELECT waiting.* FROM unnest(%(after)s::uuid[], %(before)s::uuid[]) AS range (after, before)
    CROSS JOIN LATERAL (
        SELECT tenant_id, kind, key FROM tenants_job
        WHERE kind = %(kind)s AND failed_at IS NULL AND sweep_at <= statement_timestamp()
          AND tenant_id > range.after AND tenant_id < range.before
        ORDER BY tenant_id, sweep_at LIMIT 1 FOR UPDATE SKIP LOCKED
    ) AS waiting
    LIMIT 1
)
UPDATE tenants_job AS job
SET sweep_at = statement_timestamp()
    + greatest(%(grace)s, least(statement_timestamp() - due_at, %(longest)s))
WHERE (job.tenant_id, job.kind, job.key) = (SELECT tenant_id, kind, key FROM next)
RETURNING job.tenant_id, job.key, job.traceparent
"""
# Make Postgres plan a claim by the index on kind, tenant and time, and by the primary key. It then
# reads only the rows that it returns. With statistics of an almost empty table the planner would
# sort all jobs of a tenant, or read the whole table.
_BY_INDEXES = {
    "enable_sort": "off",
    "enable_incremental_sort": "off",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
}
# Delays a claimed job of a tenant that is not served.
_DELAY = """
UPDATE tenants_job SET sweep_at = statement_timestamp() + %(delay)s
WHERE tenant_id = %(tenant_id)s AND kind = %(kind)s AND key = %(key)s
"""
# Jobs of each kind that can be claimed, counted up to the limit of a sweep.
_DUE = """
SELECT kind, (
    SELECT count(*) FROM (
        SELECT FROM tenants_job AS job
        WHERE job.kind = known.kind AND failed_at IS NULL AND sweep_at <= statement_timestamp()
        LIMIT %(limit)s
    ) AS due
) FROM unnest(%(kinds)s::text[]) AS known (kind)
"""

# The tenant of this process' last claim, by server and kind.
_last: dict[tuple[str, str], UUID] = {}


@dataclass(frozen=True, slots=True)
class Claim:
    """A job that other workers cannot claim for a while."""

    tenant_id: UUID
    key: UUID
    traceparent: str = ""
    """The span that enqueued the job."""


def claim(
    kind: JobKind, server: str = MAIN, exclude: Collection[UUID] = frozenset()
) -> Claim | None:
    """Claim the next tenant's job that is due longest; return None if no job is due.

    Each worker process goes round the tenants of the server that have due jobs, and takes one job
    of each. Jobs of tenants that are not served are delayed on the way.

    Args:
        kind: of the job.
        server: of the tenant.
        exclude: tenants to leave out. However many jobs they have, they are not read.
    """
    states = SERVED_OR_SUSPENDED if kind.includes_suspended else SERVED
    rotation = (server, kind.name)
    with server_scope(server):
        # Ends: each iteration returns a job, or delays one by SUSPENDED_DELAY.
        while True:
            after, before = _ranges(_last.get(rotation, FIRST_ID), exclude)
            values = {
                "kind": kind.name,
                "after": after,
                "before": before,
                "grace": GRACE,
                "longest": MAX_GRACE,
            }
            with transaction.atomic():
                connection.set_local(_BY_INDEXES)
                row = fetch_row(_CLAIM, values)
                if row is None:
                    return None
                tenant_id, key, traceparent = row
                _last[rotation] = tenant_id
                delay = _delay(tenant_id, server, states)
                if delay is not None:
                    values |= {"tenant_id": tenant_id, "key": key, "delay": delay}
                    execute(_DELAY, values)
                    continue
            cache_server(tenant_id, server)
            return Claim(tenant_id, key, traceparent)


def _ranges(last: UUID, exclude: Collection[UUID]) -> tuple[list[UUID], list[UUID]]:
    """Return the ranges of tenant ids of a claim: from the last turn on, then from the first.

    Ranges exclude both of their bounds. No tenant has the first or the last id.
    """
    skipped = sorted(exclude)
    later = [tenant_id for tenant_id in skipped if tenant_id > last]
    earlier = [tenant_id for tenant_id in skipped if tenant_id <= last]
    end = UUID(int=last.int + 1)
    return [last, *later, FIRST_ID, *earlier], [*later, LAST_ID, *earlier, end]


def claim_of_all_servers(kind: JobKind) -> Iterator[Claim]:
    """Claim jobs on each server in turn, until none is due; a server that is down is skipped."""
    for server in servers():
        try:
            # Ends: a claimed job is not due again before GRACE.
            while (claimed := claim(kind, server)) is not None:
                yield claimed
        except ServerDown as error:
            logger.warning("The %s of its tenants wait: %s", kind.name, error)


def _delay(tenant_id: UUID, server: str, states: list[Tenant.State]) -> timedelta | None:
    """Return for how long the tenant's jobs are not done on this server; None if they are done."""
    tenants = Tenant.objects.filter(id=tenant_id, server=server, moving_to="", state__in=states)
    migrated_to = tenants.values_list("migrated_to", flat=True).first()
    if migrated_to is None:
        return SUSPENDED_DELAY
    return None if fits(migrated_to) else MAX_GRACE


def sweep() -> int:
    """Wake workers for due jobs that have no task in their queue; return the number of tasks sent.

    One statement for each server, however many tenants there are.
    """
    kinds = [kind.name for kind in KINDS.values() if kind.queue]
    queued: dict[str, int] = {}
    woken = 0
    for server in servers():
        try:
            with server_scope(server), transaction.atomic():
                connection.set_local(_BY_INDEXES)
                due = dict(fetch_all(_DUE, {"kinds": kinds, "limit": MAX_SWEPT_JOBS}))
        except ServerDown as error:
            logger.warning("Its jobs are swept later: %s", error)
            continue
        for name, count in due.items():
            if not count:
                continue
            queue = KINDS[name].queue
            if queue not in queued:
                queued[queue] = _queue_length(queue)
            # One at least: the tasks in the queue may be of another kind.
            missing = max(count - queued[queue], 1)
            for _ in range(missing):
                KINDS[name].wake(server, is_swept=True)
            woken += missing
    return woken


def _queue_length(queue: str) -> int:
    """Return the number of tasks in the queue; 0 where the broker does not know the queue."""
    with current_app.connection_or_acquire() as broker:
        try:
            declared = broker.default_channel.queue_declare(queue=queue, passive=True)
        except broker.channel_errors + broker.connection_errors:
            return 0
        return int(declared.message_count)
