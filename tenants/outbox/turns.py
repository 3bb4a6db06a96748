"""Whose turn it is: claiming what is due in the outbox, tenant after tenant, and waking workers.

Tasks in the broker say that a worker is to claim something, and not what: a tenant with ten
thousand of them has no more turns than one with a single message.
"""

import logging
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from celery import current_app
from django.db import connection

from tenants.context import public_scope
from tenants.models import Tenant
from tenants.outbox.kind import GRACE, KINDS, LONGEST_GRACE, Kind

logger = logging.getLogger(__name__)

# Tasks that one sweep puts into a queue at most, less what stands in it already.
SWEEP_LIMIT = 200
# How long the work of a tenant that is not served is left alone. To resume the tenant wakes it.
PARKED = timedelta(hours=1)

# Of which tenants work is done.
SERVED = [Tenant.State.ACTIVE]
SERVED_OR_SUSPENDED = [Tenant.State.ACTIVE, Tenant.State.SUSPENDED]

# From the tenant after the one that had its turn last, and around: one entry, in one statement,
# by the index on kind, tenant and time. What others have just claimed is passed over.
_CLAIM = """
WITH next AS (
    SELECT * FROM (
        SELECT tenant_id, kind, key FROM tenants_outboxentry
        WHERE kind = %(kind)s AND failed_at IS NULL AND sweep_at <= statement_timestamp()
          AND tenant_id > %(after)s
        ORDER BY tenant_id, sweep_at LIMIT 1 FOR UPDATE SKIP LOCKED
    ) AS further
    UNION ALL
    SELECT * FROM (
        SELECT tenant_id, kind, key FROM tenants_outboxentry
        WHERE kind = %(kind)s AND failed_at IS NULL AND sweep_at <= statement_timestamp()
          AND tenant_id <= %(after)s
        ORDER BY tenant_id, sweep_at LIMIT 1 FOR UPDATE SKIP LOCKED
    ) AS around
    LIMIT 1
)
UPDATE tenants_outboxentry AS entry
SET sweep_at = statement_timestamp() + CASE
    WHEN tenant.state = ANY (%(states)s)
    THEN greatest(%(grace)s, least(statement_timestamp() - due_at, %(longest)s))
    ELSE %(parked)s
END
FROM next LEFT JOIN tenants_tenant AS tenant ON tenant.id = next.tenant_id
WHERE entry.tenant_id = next.tenant_id AND entry.kind = next.kind AND entry.key = next.key
RETURNING entry.tenant_id, entry.key, coalesce(tenant.state = ANY (%(states)s), false)
"""
# What can be claimed of each kind, counted no further than a sweep goes.
_DUE = """
SELECT kind, (
    SELECT count(*) FROM (
        SELECT FROM tenants_outboxentry AS entry
        WHERE entry.kind = known.kind AND failed_at IS NULL AND sweep_at <= statement_timestamp()
        LIMIT %(limit)s
    ) AS due
) FROM unnest(%(kinds)s::text[]) AS known (kind)
"""

# The tenant that each kind's last turn of this process was of.
_last: dict[str, UUID] = {}


@dataclass(frozen=True, slots=True)
class Claim:
    """An entry that other workers leave alone for a while."""

    tenant_id: UUID
    key: UUID


def claim(kind: Kind) -> Claim | None:
    """Claim the entry that is due longest of the tenant whose turn it is; None if none is due.

    Each worker process goes round the tenants that have something due, and takes one entry of each.
    What belongs to tenants that are not served is put aside on the way.
    """
    with public_scope(), connection.cursor() as cursor:
        while True:
            values = {
                "kind": kind.name,
                "after": _last.get(kind.name, UUID(int=0)),
                "grace": GRACE,
                "longest": LONGEST_GRACE,
                "parked": PARKED,
                "states": SERVED_OR_SUSPENDED if kind.of_suspended_too else SERVED,
            }
            cursor.execute(_CLAIM, values)  # type: ignore[arg-type]  # psycopg takes what Django's stubs do not know
            row = cursor.fetchone()
            if row is None:
                return None
            tenant_id, key, is_served = row
            _last[kind.name] = tenant_id
            if is_served:
                return Claim(tenant_id, key)


def sweep() -> int:
    """Wake workers for what is due and has no task in its queue; how many tasks that made.

    One statement, however many tenants there are: what it finds is what is due.
    """
    with public_scope(), connection.cursor() as cursor:
        kinds = [kind.name for kind in KINDS.values() if kind.queue]
        cursor.execute(_DUE, {"kinds": kinds, "limit": SWEEP_LIMIT})
        due = dict(cursor.fetchall())
    woken = 0
    for name, count in due.items():
        kind = KINDS[name]
        # One at least: what stands in the queue may be of another kind.
        missing = max(count - _standing_in(kind.queue), 1) if count else 0
        for _ in range(missing):
            kind.wake()
        woken += missing
    return woken


def _standing_in(queue: str) -> int:
    """How many tasks wait in the queue; none where the broker knows of no such queue."""
    with current_app.connection_or_acquire() as broker:
        try:
            declared = broker.default_channel.queue_declare(queue=queue, passive=True)
        except broker.channel_errors + broker.connection_errors:
            return 0
        return int(declared.message_count)
