"""Showing a message in its channel: what a worker does with a delivery, safe to run again.

Every step may be killed. Before a post is made, the intent is written down; a worker that finds an
intent looks in the channel for the post, by its mark, before it posts again. No transaction is open
while the channel is asked.
"""

from uuid import UUID

from celery.exceptions import SoftTimeLimitExceeded

from konstruct.channels.delivery import queue
from konstruct.channels.delivery.adapter import Adapter, Mark, Part, View, adapter_of
from konstruct.channels.delivery.rendering import NO_MORE, view_of
from konstruct.channels.exceptions import ChannelBusy, ChannelRefused, PostGone
from konstruct.channels.locks import delivery_lock
from konstruct.channels.models import Delivery
from tenants.context import tenant_scope


def deliver(*, tenant_id: UUID, message_id: UUID) -> None:
    """Show the message's present state in its channel.

    One worker at a time. A worker that finds the delivery locked returns at once: the other looks
    again after it has released the lock, so that no change is missed.
    """
    with tenant_scope(tenant_id):
        if not Delivery.objects.filter(pk=message_id).exists():
            queue.DELIVERIES.finish(message_id)  # the message was erased
            return
        # Ends: each iteration shows the newest state, or delays the next attempt.
        while queue.due(message_id) is not None:
            with delivery_lock(tenant_id, message_id) as is_ours:
                if not is_ours:
                    return
                while (delivery := queue.due(message_id)) is not None:
                    bring_up_to_date(delivery)


def bring_up_to_date(delivery: Delivery) -> None:
    """Show the message, or record the failure. The attempt is counted first.

    Raises:
        SoftTimeLimitExceeded: the task's time is over; the failure is recorded.
    """
    try:
        if not queue.DELIVERIES.begin(delivery.pk):
            return
        adapter = adapter_of(delivery.channel)
        view = view_of(delivery.message_id, can_edit=adapter.can_edit)
        for number, part in enumerate(parts_of(view, delivery, adapter)):
            show(delivery, number, part, adapter)
    except Exception as error:  # any error is for people to read
        queue.DELIVERIES.record_failure(delivery.pk, error, unless_requeued=True)
        if isinstance(error, SoftTimeLimitExceeded):
            raise
    except BaseException:
        queue.DELIVERIES.cancel_attempt_if_stopping(delivery.pk)
        raise
    else:
        queue.finish(delivery)


def parts_of(view: View | None, delivery: Delivery, adapter: Adapter) -> list[Part]:
    """Return what each post is to show; posts that are left over show that there is no more.

    A long question with its buttons may have been longer than what follows it.
    """
    if view is None:
        return []
    parts = adapter.parts(view)
    left_over = len(delivery.posted) - len(parts)
    return parts + adapter.parts(NO_MORE)[:1] * left_over


def show(delivery: Delivery, number: int, part: Part, adapter: Adapter) -> None:
    """Let one post show the part: change the one that stands, or make it."""
    mark = Mark(delivery.message_id, number)
    if number < len(delivery.posted):
        standing = delivery.posted[number]
        if standing["digest"] == part.digest:
            return
        try:
            change(delivery, standing["id"], part, adapter, mark)
        except PostGone:
            pass  # somebody removed it
        else:
            return
    found = adapter.find(delivery.address, mark) if delivery.intent == number else None
    if found is not None:
        # A worker was killed before it could write this down. What it shows is not known.
        queue.note_posted(delivery, number, found, "")
        change(delivery, found, part, adapter, mark)
        return
    queue.intend(delivery, number)
    try:
        posted = adapter.post(delivery.address, part, mark)
    except (ChannelBusy, ChannelRefused):
        queue.intend(delivery, None)  # it surely was not made
        raise
    queue.note_posted(delivery, number, posted, part.digest)


def change(delivery: Delivery, posted: str, part: Part, adapter: Adapter, mark: Mark) -> None:
    """Let a post that stands show something else."""
    adapter.update(delivery.address, posted, part, mark)
    queue.note_posted(delivery, mark.part, posted, part.digest)
