"""The queue of deliveries: messages of which a channel does not show the present state yet.

A job is enqueued with the delivery, and again whenever the message changes. It is removed when the
channel shows the current message. `delivered_at` is empty as long as there is a job.
"""

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db.models.functions import Now
from psycopg.types.json import Jsonb

from konstruct.channels.delivery.adapter import adapter_of
from konstruct.channels.exceptions import ChannelBusy, ChannelRefused
from konstruct.channels.models import Delivery
from konstruct.orchestrator.messages import KonstructMessage
from memory.models import Message
from tenants import transaction
from tenants.context import tenant_connection
from tenants.jobs import JobKind
from tenants.limits.rate_limit import Bucket, take_from
from tenants.traces import traceparent

# The task is given by name: it imports the worker, which imports this module.
DELIVERIES = JobKind(
    "delivery",
    task="konstruct.channels.tasks.deliver",
    queue="deliveries",
    max_attempts=lambda: settings.DELIVERY_MAX_ATTEMPTS,
    is_final=lambda error: isinstance(error, ChannelRefused),
    is_busy=lambda error: isinstance(error, ChannelBusy),
)

# Burst, and rate per second, at which replies of a tenant are shown while they are written: of the
# 50 changes of posts a minute that Slack allows, ten are left for replies that are complete.
PARTIAL_RATE: Final = (5, 40 / 60)

_ENQUEUE = """
WITH queued AS (
    INSERT INTO tenants_job (kind, key, traceparent)
    VALUES ('delivery', %(message_id)s, %(traceparent)s::text)
)
INSERT INTO channels_delivery (message_id, channel, address)
VALUES (%(message_id)s, %(channel)s, %(address)s)
"""


def enqueue(message: Message, *, channel: str, address: Mapping[str, str]) -> None:
    """Show the message from now on. Call it in the transaction that accepts the message."""
    values = {
        "message_id": message.pk,
        "channel": channel,
        "address": Jsonb(dict(address)),
        "traceparent": traceparent(),
    }
    tenant_connection().queue(_ENQUEUE, values)
    DELIVERIES.wake_on_commit()


class DeliveryHook:
    """Enqueues deliveries when messages of a channel change."""

    def changed(self, message: KonstructMessage) -> None:
        """Show the message anew; a delivery that was given up is tried again."""
        if Delivery.objects.filter(pk=message.id).update(delivered_at=None):
            DELIVERIES.enqueue_again(message.id)

    def written(self, message: KonstructMessage) -> None:
        """Show the reply as far as it is written, if the delivery is idle and the rate allows it.

        The complete reply is shown in any case.
        """
        if not adapter_of(message.channel).can_edit:
            return
        bucket = take_from(message.tenant_id, [Bucket(f"{message.channel}_text", *PARTIAL_RATE)])
        if bucket.allowed:
            idle = Delivery.objects.filter(pk=message.id, delivered_at__isnull=False)
            with transaction.atomic():
                if idle.update(delivered_at=None):
                    DELIVERIES.enqueue_again(message.id)

    def said(self, turn: Message, *, after: KonstructMessage) -> None:
        """Show a person's message where the user's last message is shown."""
        shown = Delivery.objects.filter(message_id=after.id).first()
        if shown is not None:
            enqueue(turn, channel=shown.channel, address=shown.address)


HOOK = DeliveryHook()


def due(message_id: UUID) -> Delivery | None:
    """Return the delivery if it may be worked on now."""
    return Delivery.objects.due().filter(pk=message_id).first()


def intend(delivery: Delivery, part: int | None) -> None:
    """Record which post is about to be made; None: none is any more."""
    delivery.intent = part
    delivery.save(update_fields=["intent"])


def note_posted(delivery: Delivery, part: int, posted: str, digest: str) -> None:
    """Record a post and its content."""
    delivery.posted[part : part + 1] = [{"id": posted, "digest": digest}]
    delivery.intent = None
    delivery.save(update_fields=["posted", "intent"])


def finish(delivery: Delivery) -> None:
    """Record that the channel shows the present state, unless that changed in the meantime."""
    row = Delivery.objects.filter(pk=delivery.pk)
    with transaction.atomic():
        row.update(delivered_at=Now())  # first: a change of the message waits for this lock
        if not DELIVERIES.finish(delivery.pk, unless_requeued=True):
            row.update(delivered_at=None)
