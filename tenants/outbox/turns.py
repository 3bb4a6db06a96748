"""Whose turn it is: claiming what is due in the outbox, tenant after tenant, and waking workers.

Tasks in the broker say that a worker is to claim something, and not what: a tenant with ten
thousand of them has no more turns than one with a single message.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from celery import current_app

from tenants.context import connection, server_scope
from tenants.models import Tenant
from tenants.outbox.kind import GRACE, KINDS, LONGEST_GRACE, Kind
from tenants.postgresql.exceptions import ServerDown
from tenants.servers import MAIN, note_server, servers

logger = logging.getLogger(__name__)

# Tasks that one sweep puts into a queue at most, less what stands in it already.
SWEEP_LIMIT = 200
# How long the work of a tenant that is not served is left alone. To resume the tenant wakes it.
PARKED = timedelta(hours=1)

# Of which tenants work is done.
SERVED = [Tenant.State.ACTIVE]
SERVED_OR_SUSPENDED = [Tenant.State.ACTIVE, Tenant.State.SUSPENDED]

# Whether work of a tenant is done, and from the outbox of this server.
_SERVED = """EXISTS (
    SELECT FROM tenants_tenant AS tenant WHERE tenant.id = entry.tenant_id
        AND tenant.state = ANY (%(states)s) AND tenant.moving_to = '' AND tenant.server = %(server)s
)"""
# From the tenant after the one that had its turn last, and around: one entry, in one statement,
# by the index on kind, tenant and time. What others have just claimed is passed over. The entry is
# looked up by its key: joined, a table that was almost empty when it was vacuumed is read whole.
_CLAIM = f"""
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
    WHEN {_SERVED} OR NOT %(has_list)s
    THEN greatest(%(grace)s, least(statement_timestamp() - due_at, %(longest)s))
    ELSE %(parked)s
END
WHERE (entry.tenant_id, entry.kind, entry.key) = (SELECT tenant_id, kind, key FROM next)
RETURNING entry.tenant_id, entry.key, {_SERVED}
"""  # noqa: S608
# Make Postgres plan a claim by the index on kind, tenant and time, and by the primary key. It then
# reads only the rows that it returns. With statistics of an almost empty table the planner would
# sort all entries of a tenant, or read the whole table.
_BY_INDEXES = {
    "enable_sort": "off",
    "enable_incremental_sort": "off",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
}
# Puts aside what was claimed of a tenant that is not served.
_PARK = """
UPDATE tenants_outboxentry SET sweep_at = statement_timestamp() + %(parked)s
WHERE tenant_id = %(tenant_id)s AND kind = %(kind)s AND key = %(key)s
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

# The tenant that each kind's last turn of this process was of, by server.
_last: dict[tuple[str, str], UUID] = {}


@dataclass(frozen=True, slots=True)
class Claim:
    """An entry that other workers leave alone for a while."""

    tenant_id: UUID
    key: UUID


def claim(kind: Kind, server: str = MAIN) -> Claim | None:
    """Claim the entry that is due longest of the tenant whose turn it is; None if none is due.

    Each worker process goes round the tenants of the server that have something due, and takes one
    entry of each. What belongs to tenants that are not served is put aside on the way.
    """
    states = SERVED_OR_SUSPENDED if kind.of_suspended_too else SERVED
    turn = (server, kind.name)
    with server_scope(server), connection.cursor() as cursor:
        # Ends: each turn returns an entry, or puts one aside for PARKED.
        while True:
            values = {
                "kind": kind.name,
                "after": _last.get(turn, UUID(int=0)),
                "grace": GRACE,
                "longest": LONGEST_GRACE,
                "parked": PARKED,
                "states": states,
                "has_list": server == MAIN,
                "server": server,
            }
            connection.set_local(_BY_INDEXES, with_next=True)
            cursor.execute(_CLAIM, values)
            row = cursor.fetchone()
            if row is None:
                return None
            tenant_id, key, is_served = row
            _last[turn] = tenant_id
            if server != MAIN:
                is_served = _is_served(tenant_id, server, states)
                if not is_served:
                    cursor.execute(_PARK, {**values, "tenant_id": tenant_id, "key": key})
            if is_served:
                note_server(tenant_id, server)
                return Claim(tenant_id, key)


def claim_of_all_servers(kind: Kind) -> Iterator[Claim]:
    """Claim what is due on each server in turn, until nothing is; one that is down is left out."""
    for server in servers():
        try:
            # Ends: a claimed entry is not due again before GRACE.
            while (claimed := claim(kind, server)) is not None:
                yield claimed
        except ServerDown as error:
            logger.warning("The %s of its tenants wait: %s", kind.name, error)


def _is_served(tenant_id: UUID, server: str, states: list[Tenant.State]) -> bool:
    """Whether work of a tenant is done, as the list says, and from this server's outbox."""
    of_here = Tenant.objects.filter(id=tenant_id, server=server, moving_to="")
    return of_here.filter(state__in=states).exists()


def sweep() -> int:
    """Wake workers for what is due and has no task in its queue; how many tasks that made.

    One statement for each server, however many tenants there are: what it finds is what is due.
    """
    kinds = [kind.name for kind in KINDS.values() if kind.queue]
    standing: dict[str, int] = {}
    woken = 0
    for server in servers():
        try:
            with server_scope(server), connection.cursor() as cursor:
                connection.set_local(_BY_INDEXES, with_next=True)
                cursor.execute(_DUE, {"kinds": kinds, "limit": SWEEP_LIMIT})
                due = dict(cursor.fetchall())
        except ServerDown as error:
            logger.warning("What waits there is swept later: %s", error)
            continue
        for name, count in due.items():
            if not count:
                continue
            queue = KINDS[name].queue
            if queue not in standing:
                standing[queue] = _standing_in(queue)
            # One at least: what stands in the queue may be of another kind.
            missing = max(count - standing[queue], 1)
            for _ in range(missing):
                KINDS[name].wake(server)
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
