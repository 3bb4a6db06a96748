"""Shows a message in its channel, by the state of the message.

A delivery can be killed and run again at any point. Before a post is created, its index is stored
as the intent. A worker that finds an intent searches the channel for the post, by its mark, before
it posts again. No transaction is open during calls of the channel.
"""

from typing import Final
from uuid import UUID

from konstruct.channels.delivery import queue
from konstruct.channels.delivery.adapter import (
    Adapter,
    Button,
    Part,
    PostMark,
    View,
    adapter_of,
    channels,
)
from konstruct.channels.exceptions import ChannelBusy, ChannelRefused, PostGone
from konstruct.channels.models import Delivery
from konstruct.orchestrator.replies import Status, progress_of, sent_messages, text_so_far
from konstruct.orchestrator.tool_calls import calls_awaiting_consent
from memory.models import Message, Role
from tenants import traces
from tenants.context import required_tenant_id
from tenants.jobs import Lease, Outcome
from tenants.metrics import counter

PLACEHOLDER = View("_One moment…_")
APOLOGY = View("I am sorry: I could not answer this. Please try again later.")
WITH_PERSON = View("_A person will answer you here._")
CLOSED = View("_A person has taken care of this._")
UNUSED_POST = View("…")
EMPTY = "(The answer is empty.)"
# Characters of a partial reply that are shown: they fit into one post of every channel.
MAX_PARTIAL_CHARACTERS = 2_500
APPROVE, DENY = "approve", "deny"


def view_of(message_id: UUID, *, can_edit: bool) -> View | None:
    """Return the content to show now; None for nothing.

    A channel whose posts cannot be changed shows nothing before the final content.
    """
    person_message = Message.objects.filter(pk=message_id, role=Role.ASSISTANT).first()
    if person_message is not None:
        return View(person_message.content.strip() or EMPTY)
    message = sent_messages().filter(pk=message_id).first()
    if message is None:
        return None
    progress = progress_of(message)
    if progress.status in (Status.FAILED, Status.CLOSED):
        # Without attempts: a person has closed the message.
        return APOLOGY if progress.attempts else CLOSED
    if progress.status is Status.WITH_PERSON:
        return WITH_PERSON
    if progress.status is Status.AWAITING_CONSENT and (calls := calls_awaiting_consent(message_id)):
        key = str(calls[0].pk)
        buttons = (Button("Approve", APPROVE, key), Button("Deny", DENY, key))
        return View(calls[0].question, buttons)
    if (reply := progress.reply) is not None:
        content = reply.content.strip() or EMPTY
        # All posts of a workspace have the name of its bot. After a handover they name the agent.
        is_handed_over = reply.answered_by_id not in (None, reply.agent_id)
        return View(f"**{reply.name}:**\n{content}" if is_handed_over else content)
    if not can_edit:
        return None
    text = text_so_far(required_tenant_id(), message_id)[:MAX_PARTIAL_CHARACTERS].rstrip()
    return View(f"{text} …") if text else PLACEHOLDER


DELIVERIES: Final = counter(
    "konstruct_deliveries_total",
    "Attempts to show a message in its channel, by outcome.",
    channel=channels,
    outcome=list(Outcome),
)


def deliver_claimed(lease: Lease) -> None:
    """Show the current state of the message of a claimed delivery."""
    delivery = Delivery.objects.filter(pk=lease.key).first()
    if delivery is None:
        lease.finish()  # the message was erased
        return

    def show_parts(lease: Lease) -> None:
        traces.set_attributes(channel=delivery.channel)
        adapter = adapter_of(delivery.channel)
        view = view_of(delivery.message_id, can_edit=adapter.can_edit)
        for number, part in enumerate(parts_of(view, delivery, adapter)):
            show_part(delivery, number, part, adapter, lease)
        with lease.transaction():
            queue.finish(delivery)

    outcome = queue.DELIVERIES.run(lease, show_parts)
    if outcome is not None:
        DELIVERIES.of(channel=delivery.channel, outcome=outcome).inc()


def parts_of(view: View | None, delivery: Delivery, adapter: Adapter) -> list[Part]:
    """Return the content of each post; UNUSED_POST for existing posts that are not needed any more.

    The content gets shorter if a long question with buttons is followed by a short reply.
    """
    if view is None:
        return []
    parts = adapter.parts(view)
    unused = len(delivery.posted) - len(parts)
    return parts + adapter.parts(UNUSED_POST)[:1] * unused


def show_part(delivery: Delivery, number: int, part: Part, adapter: Adapter, lease: Lease) -> None:
    """Show the part in one post: change the existing one, or create it."""
    mark = PostMark(delivery.message_id, number)
    if number < len(delivery.posted):
        existing = delivery.posted[number]
        if existing["digest"] == part.digest:
            return
        try:
            update_post(delivery, existing["id"], part, adapter, mark, lease)
        except PostGone:
            pass  # it was removed
        else:
            return
    post_id = adapter.find(delivery.address, mark) if delivery.intent == number else None
    if post_id is not None:
        # A worker was killed before it recorded the post. The content of the post is unknown.
        with lease.transaction():
            queue.record_post(delivery, number, post_id, "")
        update_post(delivery, post_id, part, adapter, mark, lease)
        return
    with lease.transaction():
        queue.record_intent(delivery, number)
    try:
        post_id = adapter.post(delivery.address, part, mark)
    except (ChannelBusy, ChannelRefused):
        with lease.transaction():
            queue.record_intent(delivery, None)  # the channel did not create it
        raise
    with lease.transaction():
        queue.record_post(delivery, number, post_id, part.digest)


def update_post(
    delivery: Delivery, post_id: str, part: Part, adapter: Adapter, mark: PostMark, lease: Lease
) -> None:
    """Change the content of an existing post."""
    with lease.transaction():
        pass  # raises LeaseLost if another worker has the delivery
    adapter.update(delivery.address, post_id, part, mark)
    with lease.transaction():
        queue.record_post(delivery, mark.part, post_id, part.digest)
