"""The inbox: events of channels, stored before the channel's request is answered."""

import hashlib
import time
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from konstruct.channels.models import Arrival
from tenants import transaction
from tenants.context import execute, fetch_row, tenant_scope
from tenants.jobs import JobKind, Lease
from tenants.traces import traceparent

# The task is given by name: it imports the handlers of channels, which import this module.
ARRIVALS = JobKind(
    "arrival",
    task="konstruct.channels.tasks.process_arrival",
    queue="deliveries",
    max_attempts=20,  # pauses double from a second to five minutes: an hour
)

Handler = Callable[[UUID, Mapping[str, Any]], None]

# After this time a task processes no further event, so that other workspaces are not delayed.
MAX_TASK_SECONDS = 30.0
# One statement, and therefore one transaction, because the channel waits for it. It returns, for a
# new event, whether another event of the last second is still to be processed.
_ENQUEUE = """
WITH arrived AS (
    INSERT INTO channels_arrival (channel, workspace, key, heard)
    VALUES (%(channel)s, %(workspace)s, %(key)s, %(event)s)
    ON CONFLICT (key) DO NOTHING
    RETURNING tenant_id, id
), queued AS (
    INSERT INTO tenants_job (tenant_id, kind, key, traceparent)
    SELECT tenant_id, 'arrival', lpad(to_hex(id), 32, '0')::uuid, %(traceparent)s::text FROM arrived
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

    One worker is woken for many simultaneous events of a workspace, because it processes all of
    them, and waking a worker takes as long as writing a row. If that worker has just finished, the
    sweep wakes another one.
    """
    values = {
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


def process(*, tenant_id: UUID, channel: str, workspace: str, handler: Handler) -> None:
    """Pass the events of a workspace to its handler, in the order of their arrival.

    One event of a workspace is leased at a time, to keep the order of messages. If another worker
    has a lease, this worker returns: the other one checks for further events after its lease.
    """
    deadline = time.monotonic() + MAX_TASK_SECONDS
    lane = UUID(bytes=hashlib.sha256(f"{channel}\x1f{workspace}".encode()).digest()[:16])
    with tenant_scope(tenant_id):
        # Ends: each iteration processes an event; after MAX_TASK_SECONDS the sweep wakes a worker.
        due = Arrival.objects.due().filter(channel=channel, workspace=workspace)
        while time.monotonic() < deadline and (arrival := due.first()) is not None:
            handle = partial(_handle, arrival, tenant_id, handler)
            if ARRIVALS.run(arrival.job_key, handle, lane=lane) is None:
                return


def process_arrival(*, tenant_id: UUID, key: UUID, handlers: Mapping[str, Handler]) -> None:
    """Process the events of the workspace that this event came from.

    Args:
        tenant_id: the tenant.
        key: of the event's job.
        handlers: by channel.
    """
    with tenant_scope(tenant_id):
        arrival = Arrival.objects.filter(pk=key.int).first()
        if arrival is None:
            ARRIVALS.finish(key)  # it was erased
            return
    handler = handlers[arrival.channel]
    process(
        tenant_id=tenant_id, channel=arrival.channel, workspace=arrival.workspace, handler=handler
    )


def _handle(arrival: Arrival, tenant_id: UUID, handler: Handler, lease: Lease) -> None:
    with transaction.atomic():
        handler(tenant_id, arrival.event)
        values = {"id": arrival.pk, "key": lease.key, "token": lease.token}
        if not execute(_FINISH, values):
            raise lease.lost_error()
