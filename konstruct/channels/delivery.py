"""Delivery: shows messages in channels, by the state of the message.

A job is enqueued with the delivery of a message, and again when the message changes. It is removed
when the channel shows the current state. `delivered_at` is empty while there is a job.

A delivery can be killed and run again at any point. Before a post is created, its index is stored
as the intent. A worker that finds an intent searches the channel for the post, by its mark, before
it posts again. No transaction is open during calls of the channel.

The adapter of a channel is one file: see slack/adapter.py, and docs/slack.md for how to add one.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol
from uuid import UUID

from django.db.models import QuerySet, functions

from konstruct.channels.models import Delivery
from konstruct.orchestrator import messages, replies, tool_calls
from memory.models import Message, Role
from tenants import exceptions, metrics, traces, transaction
from tenants.context import required_tenant_id
from tenants.jobs import JobKind, Lease, Outcome
from tenants.limits.rate_limit import Bucket, take_from

# --- Channels -------------------------------------------------------------------------------------


class ChannelError(exceptions.KonstructError):
    """A call of a channel failed."""


class ChannelUnavailable(ChannelError):
    """A temporary error: the call may have been executed, and may be repeated."""


class ChannelBusy(ChannelError):
    """The channel's rate limit: the call was not executed. `retry_after` is in seconds."""

    def __init__(self, message: str, *, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ChannelRefused(ChannelError):
    """A permanent error: the call was not executed, and a retry fails too."""


class PostGone(ChannelError):
    """The post does not exist any more, so that it cannot be changed."""


# Where a message is shown. Its keys depend on the channel; only the channel's adapter reads it.
Address = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Button:
    """A button; `action` and `value` are sent back when a person presses it."""

    label: str
    action: str
    value: str


@dataclass(frozen=True, slots=True)
class View:
    """The text and the buttons of a message, in Markdown; or of one of its posts, in the markup of
    the channel and within its limit.
    """

    text: str
    buttons: tuple[Button, ...] = ()

    @property
    def digest(self) -> str:
        """A digest that distinguishes posts."""
        buttons = [(button.label, button.action, button.value) for button in self.buttons]
        return hashlib.sha256(json.dumps([self.text, buttons]).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class PostMark:
    """Invisible metadata of a post. `Adapter.find` finds the post by it."""

    message_id: UUID
    part: int


class Adapter(Protocol):
    """A channel. Its methods run inside the tenant and raise a ChannelError if they fail."""

    channel: str
    can_edit: bool
    """Whether posts can be changed. If not, no placeholder is shown."""
    shares_threads: bool
    """Whether all participants of a thread read all of its messages."""

    def parts(self, view: View) -> list[View]:
        """Convert the view to the channel's markup, and split it at the channel's limit."""
        ...

    def post(self, address: Address, part: View, mark: PostMark) -> str:
        """Create a post, and return its id."""
        ...

    def update(self, address: Address, post_id: str, part: View, mark: PostMark) -> None:
        """Change a post.

        Raises PostGone if it does not exist any more, or cannot be changed. Then the worker creates
        another post.
        """
        ...

    def find(self, address: Address, mark: PostMark) -> str | None:
        """Return the id of the post with this mark; None if there is none."""
        ...


_adapters: dict[str, Adapter] = {}
# The names of the channels.
channels = _adapters.keys()


def register(adapter: Adapter) -> None:
    """Show the messages of a channel by its adapter. The app's configuration calls this."""
    _adapters[adapter.channel] = adapter
    replies.register(adapter.channel, HOOK, shares_threads=adapter.shares_threads)


def adapter_of(channel: str) -> Adapter:
    """Return the adapter of a channel. Raises KeyError for a channel without one, such as REST."""
    return _adapters[channel]


# --- The queue ------------------------------------------------------------------------------------

DELIVERIES = JobKind(
    "delivery",
    do="konstruct.channels.delivery.deliver",
    queue="deliveries",
    max_attempts=20,  # pauses double from a second to five minutes: an hour
    is_final=lambda error: isinstance(error, ChannelRefused),
    is_busy=lambda error: isinstance(error, ChannelBusy),
)

# Burst, and rate per second, of updates that show partial replies of a tenant. Slack allows 50
# changes of posts a minute: ten are left for complete replies.
PARTIAL_RATE: Final = (5, 40 / 60)


def enqueue(message: Message, *, channel: str, address: Mapping[str, str]) -> None:
    """Enqueue the delivery of a message, in the transaction that stores the message."""
    Delivery.objects.create(message=message, channel=channel, address=address)
    DELIVERIES.enqueue(message.pk)


class DeliveryHook:
    """Enqueues deliveries when messages of a channel change."""

    def on_change(self, message: messages.KonstructMessage) -> None:
        """Enqueue the delivery again, also a failed one."""
        _enqueue_again(Delivery.objects.filter(pk=message.id))

    def on_partial_reply(self, message: messages.KonstructMessage) -> None:
        """Enqueue the delivery, if it is not queued and PARTIAL_RATE allows it.

        The complete reply is shown in any case.
        """
        if not adapter_of(message.channel).can_edit:
            return
        bucket = take_from(message.tenant_id, [Bucket(f"{message.channel}_text", *PARTIAL_RATE)])
        if bucket.allowed:
            with transaction.atomic():
                _enqueue_again(Delivery.objects.filter(pk=message.id, delivered_at__isnull=False))

    def on_person_message(self, turn: Message, *, after: messages.KonstructMessage) -> None:
        """Enqueue a person's message for the place where the message `after` is shown."""
        delivery = Delivery.objects.filter(message_id=after.id).first()
        if delivery is not None:
            enqueue(turn, channel=delivery.channel, address=delivery.address)


HOOK = DeliveryHook()


def _enqueue_again(deliveries: QuerySet[Delivery]) -> None:
    """Lock the job before the delivery, as workers do: they lock the job of their lease first."""
    for delivery in deliveries:
        DELIVERIES.enqueue_again(delivery.pk)
        Delivery.objects.filter(pk=delivery.pk).update(delivered_at=None)


# --- The content ----------------------------------------------------------------------------------

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
    message = replies.sent_messages().filter(pk=message_id).first()
    if message is None:
        return None
    progress = replies.progress_of(message)
    if progress.status in (replies.Status.FAILED, replies.Status.CLOSED):
        # Without attempts: a person has closed the message.
        return APOLOGY if progress.attempts else CLOSED
    if progress.status is replies.Status.WITH_PERSON:
        return WITH_PERSON
    if progress.status is replies.Status.AWAITING_CONSENT and (
        calls := tool_calls.calls_awaiting_consent(message_id)
    ):
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
    text = replies.text_so_far(required_tenant_id(), message_id)[:MAX_PARTIAL_CHARACTERS].rstrip()
    return View(f"{text} …") if text else PLACEHOLDER


# --- A worker -------------------------------------------------------------------------------------

ATTEMPTS: Final = metrics.counter(
    "konstruct_deliveries_total",
    "Attempts to show a message in its channel, by outcome.",
    channel=channels,
    outcome=list(Outcome),
)


def deliver(lease: Lease) -> None:
    """Show the current state of the message of a claimed delivery."""
    rows = Delivery.objects.filter(pk=lease.key)
    delivery = rows.first()
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
            rows.update(delivered_at=functions.Now())
            if not DELIVERIES.finish(lease.key, unless_requeued=True):
                rows.update(delivered_at=None)  # the message has changed meanwhile

    outcome = DELIVERIES.run(lease, show_parts)
    if outcome is not None:
        ATTEMPTS.of(channel=delivery.channel, outcome=outcome).inc()


def parts_of(view: View | None, delivery: Delivery, adapter: Adapter) -> list[View]:
    """Return the content of each post; UNUSED_POST for existing posts that are not needed any more.

    The content gets shorter if a long question with buttons is followed by a short reply.
    """
    if view is None:
        return []
    parts = adapter.parts(view)
    unused = len(delivery.posted) - len(parts)
    return parts + adapter.parts(UNUSED_POST)[:1] * unused


def show_part(delivery: Delivery, number: int, part: View, adapter: Adapter, lease: Lease) -> None:
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
        record_post(delivery, number, post_id, "", lease)
        update_post(delivery, post_id, part, adapter, mark, lease)
        return
    record_intent(delivery, number, lease)
    try:
        post_id = adapter.post(delivery.address, part, mark)
    except (ChannelBusy, ChannelRefused):
        record_intent(delivery, None, lease)  # the channel did not create it
        raise
    record_post(delivery, number, post_id, part.digest, lease)


def update_post(
    delivery: Delivery, post_id: str, part: View, adapter: Adapter, mark: PostMark, lease: Lease
) -> None:
    """Change the content of an existing post."""
    with lease.transaction():
        pass  # raises LeaseLost if another worker has the delivery
    adapter.update(delivery.address, post_id, part, mark)
    record_post(delivery, mark.part, post_id, part.digest, lease)


def record_intent(delivery: Delivery, part: int | None, lease: Lease) -> None:
    """Record the index of the post that is being created; None: none."""
    delivery.intent = part
    with lease.transaction():
        delivery.save(update_fields=["intent"])


def record_post(delivery: Delivery, part: int, post_id: str, digest: str, lease: Lease) -> None:
    """Record a post that exists in the channel, and the digest of its content."""
    delivery.posted[part : part + 1] = [{"id": post_id, "digest": digest}]
    delivery.intent = None
    with lease.transaction():
        delivery.save(update_fields=["posted", "intent"])
