"""The queue of deliveries: messages whose current state a channel does not show yet.

A job is enqueued with the delivery, and again when the message changes. It is removed when the
channel shows the current state. `delivered_at` is empty while there is a job.
"""

from collections.abc import Mapping
from typing import Final

from django.db.models import QuerySet
from django.db.models.functions import Now

from konstruct.channels.delivery.adapter import adapter_of
from konstruct.channels.exceptions import ChannelBusy, ChannelRefused
from konstruct.channels.models import Delivery
from konstruct.orchestrator.messages import KonstructMessage
from memory.models import Message
from tenants import transaction
from tenants.jobs import JobKind
from tenants.limits.rate_limit import Bucket, take_from

# Given by name: it imports this module.
DELIVERIES = JobKind(
    "delivery",
    do="konstruct.channels.delivery.rendering.deliver_claimed",
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

    def on_change(self, message: KonstructMessage) -> None:
        """Enqueue the delivery again, also a failed one."""
        _enqueue_again(Delivery.objects.filter(pk=message.id))

    def on_partial_reply(self, message: KonstructMessage) -> None:
        """Enqueue the delivery, if it is not queued and PARTIAL_RATE allows it.

        The complete reply is shown in any case.
        """
        if not adapter_of(message.channel).can_edit:
            return
        bucket = take_from(message.tenant_id, [Bucket(f"{message.channel}_text", *PARTIAL_RATE)])
        if bucket.allowed:
            with transaction.atomic():
                _enqueue_again(Delivery.objects.filter(pk=message.id, delivered_at__isnull=False))

    def on_person_message(self, turn: Message, *, after: KonstructMessage) -> None:
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


def record_intent(delivery: Delivery, part: int | None) -> None:
    """Record the index of the post that is being created; None: none."""
    delivery.intent = part
    delivery.save(update_fields=["intent"])


def record_post(delivery: Delivery, part: int, post_id: str, digest: str) -> None:
    """Record a post that exists in the channel, and the digest of its content."""
    delivery.posted[part : part + 1] = [{"id": post_id, "digest": digest}]
    delivery.intent = None
    delivery.save(update_fields=["posted", "intent"])


def finish(delivery: Delivery) -> None:
    """Record that the channel shows the current state, unless the message has changed meanwhile."""
    row = Delivery.objects.filter(pk=delivery.pk)
    with transaction.atomic():
        row.update(delivered_at=Now())
        if not DELIVERIES.finish(delivery.pk, unless_requeued=True):
            row.update(delivered_at=None)
