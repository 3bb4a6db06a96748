"""Shows a message in its channel. A delivery can be run again at any point.

Before a post is made, the intent is stored; a worker that finds an intent searches the channel for
the post, by its mark, before it posts again. No transaction is open during calls of the channel.
"""

from typing import Final
from uuid import UUID

from konstruct.channels.delivery import queue
from konstruct.channels.delivery.adapter import Adapter, Mark, Part, View, adapter_of, channels
from konstruct.channels.delivery.rendering import NO_MORE, view_of
from konstruct.channels.exceptions import ChannelBusy, ChannelRefused, PostGone
from konstruct.channels.models import Delivery
from tenants import traces
from tenants.context import tenant_scope
from tenants.jobs import Lease, Outcome
from tenants.metrics import counter

DELIVERIES: Final = counter(
    "konstruct_deliveries_total",
    "Attempts to show a message in its channel, by outcome.",
    channel=channels,
    outcome=list(Outcome),
)


def deliver(*, tenant_id: UUID, message_id: UUID) -> None:
    """Show the current state of the message in its channel.

    One worker at a time. A worker that finds the delivery leased returns: the other one checks for
    changes after it has ended its lease, so that none is missed.
    """
    with tenant_scope(tenant_id):
        if not Delivery.objects.filter(pk=message_id).exists():
            queue.DELIVERIES.finish(message_id)  # the message was erased
            return
        # Ends: each iteration shows the newest state, or delays the next attempt.
        while (delivery := queue.due(message_id)) is not None:
            if not bring_up_to_date(delivery):
                return


def bring_up_to_date(delivery: Delivery) -> bool:
    """Show the message, or record the failure. The attempt is counted first.

    Returns:
        False if the delivery is another worker's.
    """

    def show_parts(lease: Lease) -> None:
        traces.set_attributes(channel=delivery.channel)
        adapter = adapter_of(delivery.channel)
        view = view_of(delivery.message_id, can_edit=adapter.can_edit)
        for number, part in enumerate(parts_of(view, delivery, adapter)):
            show(delivery, number, part, adapter, lease)
        with lease.transaction():
            queue.finish(delivery)

    outcome = queue.DELIVERIES.run(delivery.pk, show_parts)
    if outcome is None:
        return False
    DELIVERIES.of(channel=delivery.channel, outcome=outcome).inc()
    return True


def parts_of(view: View | None, delivery: Delivery, adapter: Adapter) -> list[Part]:
    """Return the content of each post; remaining posts show that there is no more.

    A long question with its buttons may have been longer than what follows it.
    """
    if view is None:
        return []
    parts = adapter.parts(view)
    left_over = len(delivery.posted) - len(parts)
    return parts + adapter.parts(NO_MORE)[:1] * left_over


def show(delivery: Delivery, number: int, part: Part, adapter: Adapter, lease: Lease) -> None:
    """Show the part in one post: change the existing one, or create it."""
    mark = Mark(delivery.message_id, number)
    if number < len(delivery.posted):
        existing = delivery.posted[number]
        if existing["digest"] == part.digest:
            return
        try:
            change(delivery, existing["id"], part, adapter, mark, lease)
        except PostGone:
            pass  # it was removed
        else:
            return
    found = adapter.find(delivery.address, mark) if delivery.intent == number else None
    if found is not None:
        # A worker was killed before it recorded the post. Its content is not known.
        with lease.transaction():
            queue.note_posted(delivery, number, found, "")
        change(delivery, found, part, adapter, mark, lease)
        return
    with lease.transaction():
        queue.intend(delivery, number)
    try:
        posted = adapter.post(delivery.address, part, mark)
    except (ChannelBusy, ChannelRefused):
        with lease.transaction():
            queue.intend(delivery, None)  # it was certainly not made
        raise
    with lease.transaction():
        queue.note_posted(delivery, number, posted, part.digest)


def change(
    delivery: Delivery, posted: str, part: Part, adapter: Adapter, mark: Mark, lease: Lease
) -> None:
    """Change the content of an existing post."""
    with lease.transaction():
        pass  # a worker that has lost the delivery changes no post
    adapter.update(delivery.address, posted, part, mark)
    with lease.transaction():
        queue.note_posted(delivery, mark.part, posted, part.digest)
