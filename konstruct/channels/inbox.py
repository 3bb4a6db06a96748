"""The inbox: events of channels, stored before the channel's request is answered."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from konstruct.channels.models import Arrival
from tenants import transaction
from tenants.context import execute
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

# One statement, and therefore one transaction, because the channel waits for it.
_ENQUEUE = """
WITH arrived AS (
    INSERT INTO channels_arrival (channel, workspace, key, heard)
    VALUES (%(channel)s, %(workspace)s, %(key)s, %(event)s)
    ON CONFLICT (key) DO NOTHING
    RETURNING tenant_id, id
)
INSERT INTO tenants_job (tenant_id, kind, key, lane, traceparent)
SELECT tenant_id, 'arrival', lpad(to_hex(id), 32, '0')::uuid, %(lane)s, %(traceparent)s::text
FROM arrived
"""


def enqueue(*, channel: str, workspace: str, key: str, event: Mapping[str, Any]) -> bool:
    """Store an event with its job, once for its key, and wake a worker.

    The events of a workspace are a lane, to keep the order of messages.

    Returns:
        False if an event with this key is stored already.
    """
    values = {
        "lane": UUID(bytes=hashlib.sha256(f"{channel}\x1f{workspace}".encode()).digest()[:16]),
        "channel": channel,
        "workspace": workspace,
        "key": key,
        "event": Jsonb(event),
        "traceparent": traceparent(),
    }
    is_new = bool(execute(_ENQUEUE, values))
    if is_new:
        ARRIVALS.wake()
    return is_new


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

    def handle(lease: Lease) -> None:
        with transaction.atomic():
            handlers[arrival.channel](lease.tenant_id, arrival.event)
            Arrival.objects.filter(pk=arrival.pk).delete()
            lease.finish()

    ARRIVALS.run(lease, handle)
