"""Showing a message in its channel: what a worker does with a delivery, safe to run again.

Every step may be killed. Before a post is made, the intent is written down; a worker that finds an
intent looks in the channel for the post, by its mark, before it posts again. No transaction is open
while the channel is asked.
"""

from uuid import UUID

from celery.exceptions import SoftTimeLimitExceeded

from konstruct.channels.delivery import queue
from konstruct.channels.delivery.adapter import Adapter, Mark, Part, View
from konstruct.channels.delivery.registry import adapter_of
from konstruct.channels.delivery.rendering import NO_MORE, view_of
from konstruct.channels.exceptions import ChannelBusy, ChannelRefused, PostGone
from konstruct.channels.locks import delivery_lock
from konstruct.channels.models import Delivery
from tenants.context import tenant_scope


def deliver(*, tenant_id: UUID, message_id: UUID) -> None:
    """Let the channel show the message's present state.

    One worker at a time. Who finds it taken leaves at once: the other looks again after it has let
    go, so that no change falls between the two.
    """
    with tenant_scope(tenant_id):
        # Ends: each turn shows the newest version, or puts the next attempt off.
        while queue.due(message_id) is not None:
            with delivery_lock(tenant_id, message_id) as ours:
                if not ours:
                    return
                while (delivery := queue.due(message_id)) is not None:
                    bring_up_to_date(delivery)


def bring_up_to_date(delivery: Delivery) -> None:
    """Show what is to be shown, or note why not and when to try again.

    The attempt is counted first. Raises SoftTimeLimitExceeded, once it is noted, when the task's
    time is over.
    """
    try:
        if not queue.begin(delivery):
            return
        adapter = adapter_of(delivery.channel)
        view = view_of(delivery.message_id, can_edit=adapter.can_edit)
        for number, part in enumerate(parts_of(view, delivery, adapter)):
            show(delivery, number, part, adapter)
    except Exception as error:  # whatever it is, a human must find it on the row
        queue.record_failure(delivery, error)
        if isinstance(error, SoftTimeLimitExceeded):
            raise
    except BaseException:
        queue.take_back_if_stopping(delivery)
        raise
    else:
        queue.settle(delivery)


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
