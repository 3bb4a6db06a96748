"""The inbox: events of channels, stored before the channel's request is answered."""

import hashlib
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from konstruct.channels.models import Arrival
from tenants import transaction
from tenants.context import execute, fetch_row
from tenants.jobs import JobKind, Lease
from tenants.traces import traceparent

# Given by name: it imports the handlers of channels, which import this module.
ARRIVALS = JobKind(
    "arrival",
    do="konstruct.channels.tasks.process_arrival",
    queue="deliveries",
    max_attempts=20,  # pauses double from a second to five minutes: an hour
)

Handler = Callable[[UUID, Mapping[str, Any]], None]

# One statement, and therefore one transaction, because the channel waits for it. It returns, for a
# new event, whether another event of the last second is still to be processed.
_ENQUEUE = """
WITH arrived AS (
    INSERT INTO channels_arrival (channel, workspace, key, heard)
    VALUES (%(channel)s, %(workspace)s, %(key)s, %(event)s)
    ON CONFLICT (key) DO NOTHING
    RETURNING tenant_id, id
), queued AS (
    INSERT INTO tenants_job (tenant_id, kind, key, lane, traceparent)
    SELECT tenant_id, 'arrival', lpad(to_hex(id), 32, '0')::uuid, %(lane)s, %(traceparent)s::text
    FROM arrived
)
SELECT EXISTS (
    SELECT FROM channels_arrival AS earlier
    JOIN tenants_job AS job ON job.tenant_id = earlier.tenant_id AND job.kind = 'arrival'
     AND job.key = lpad(to_hex(earlier.id), 32, '0')::uuid
    WHERE earlier.channel = %(channel)s AND earlier.workspace = %(workspace)s
      AND earlier.created_at > now() - interval '1 second' AND job.failed_at IS NULL
      AND (job.attempts = 0 OR job.begun_at > now() - interval '1 second')
) FROM arrived
"""

_FINISH = """
WITH done AS (DELETE FROM channels_arrival WHERE id = %(id)s RETURNING tenant_id)
DELETE FROM tenants_job AS job USING done
WHERE job.tenant_id = done.tenant_id AND job.kind = 'arrival' AND job.key = %(key)s
  AND job.lease = %(token)s AND job.leased_until IS NOT NULL
"""


class EnqueueResult(StrEnum):
    """The result of `enqueue`."""

    NEW = "new"
    """The event is stored, and a worker was woken for it."""
    COALESCED = "coalesced"
    """The event is stored. The worker that was woken for an earlier event processes it too."""
    DUPLICATE = "duplicate"
    """An event with this key is stored already."""


def enqueue(*, channel: str, workspace: str, key: str, event: Mapping[str, Any]) -> EnqueueResult:
    """Store an event with its job, once for its key, and wake a worker.

    One worker is woken for many simultaneous events of a workspace, because it claims job after
    job, and waking a worker takes as long as writing a row. If that worker has just finished, the
    sweep wakes another one. The events of a workspace are a lane, to keep the order of messages.
    """
    lane = UUID(bytes=hashlib.sha256(f"{channel}\x1f{workspace}".encode()).digest()[:16])
    values = {
        "lane": lane,
        "channel": channel,
        "workspace": workspace,
        "key": key,
        "event": Jsonb(event),
        "traceparent": traceparent(),
    }
    row = fetch_row(_ENQUEUE, values)
    if row is None:
        return EnqueueResult.DUPLICATE
    if row[0]:
        return EnqueueResult.COALESCED
    ARRIVALS.wake()
    return EnqueueResult.NEW


def process(lease: Lease, handlers: Mapping[str, Handler]) -> None:
    """Pass a claimed event to the handler of its channel.

    Args:
        lease: of the event's job.
        handlers: by channel.
    """
    arrival = Arrival.objects.filter(pk=lease.key.int).first()
    if arrival is None:
        lease.finish()  # it was erased
        return
    ARRIVALS.run(lease, partial(_handle, arrival, handlers[arrival.channel]))


def _handle(arrival: Arrival, handler: Handler, lease: Lease) -> None:
    with transaction.atomic():
        handler(lease.tenant_id, arrival.event)
        values = {"id": arrival.pk, "key": lease.key, "token": lease.token}
        if not execute(_FINISH, values):
            raise lease.lost_error()
