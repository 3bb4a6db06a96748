"""The inbox: events of channels, stored before the channel's request is answered."""

from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import NAMESPACE_OID, UUID, uuid5

from konstruct.channels.models import Arrival
from tenants import jobs, transaction

Handler = Callable[[UUID, Mapping[str, Any]], None]
# Functions that make messages of events, by channel. The app's configuration adds them.
HANDLERS: Final[dict[str, Handler]] = {}
ARRIVALS: Final = jobs.JobKind(
    "arrival",
    do="konstruct.channels.inbox.process",
    queue="deliveries",
    max_attempts=20,  # pauses double from a second to five minutes: an hour
)


def enqueue(*, channel: str, workspace: str, key: str, event: Mapping[str, Any]) -> bool:
    """Store an event with its job, once for its key, and wake a worker.

    The events of a workspace are a lane, to keep the order of messages.

    Returns:
        False if an event with this key is stored already.
    """
    lane = uuid5(NAMESPACE_OID, f"{channel}\x1f{workspace}")
    arrival = Arrival(
        id=uuid5(NAMESPACE_OID, key), channel=channel, workspace=workspace, key=key, event=event
    )
    with transaction.atomic():
        Arrival.objects.bulk_create([arrival], ignore_conflicts=True)
        return ARRIVALS.enqueue(arrival.id, lane=lane)


def process(lease: jobs.Lease) -> None:
    """Pass a claimed event to the handler of its channel."""
    arrival = Arrival.objects.filter(pk=lease.key).first()
    if arrival is None:
        lease.finish()  # it was erased
        return

    def handle(lease: jobs.Lease) -> None:
        with transaction.atomic():
            HANDLERS[arrival.channel](lease.tenant_id, arrival.event)
            arrival.delete()
            lease.finish()

    ARRIVALS.run(lease, handle)
