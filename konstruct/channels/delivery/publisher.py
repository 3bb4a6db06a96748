"""The way out: puts accepted messages into the outbox of posts, and enqueues what changes."""

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from konstruct.channels.delivery import queue
from konstruct.channels.delivery.registry import adapter_of
from konstruct.channels.exceptions import NothingToRedeliver
from konstruct.channels.models import Delivery
from konstruct.orchestrator.messages import KonstructMessage
from memory.models import Message
from tenants import transaction
from tenants.context import tenant_scope
from tenants.limits.rate_limit import Bucket, take_from

# At once, and then in a second, replies of a tenant are shown while they are written: of 50 changes
# of posts a minute that Slack allows, the other ten are for replies that are whole.
WRITTEN: Final = (5, 40 / 60)


def put(message: Message, *, channel: str, address: Mapping[str, str]) -> None:
    """Show the message's state from now on. Call it in the transaction that accepts the message."""
    Delivery.objects.create(
        message=message,
        channel=channel,
        address=dict(address),
    )
    queue.DELIVERIES.wake_on_commit()


class DeliveryHook:
    """Is told of every change of a message that came by a channel."""

    def changed(self, message: KonstructMessage) -> None:
        """Note that the message is to be shown anew; what was given up is tried again."""
        if queue.show_anew(message.id):
            queue.DELIVERIES.wake_on_commit()

    def written(self, message: KonstructMessage) -> None:
        """Show what is written so far, where what was shown before is shown and Slack may be asked.

        Whoever was told to wait is waited for, and the whole reply is shown in any case.
        """
        if not adapter_of(message.channel).can_edit:
            return
        bucket = take_from(message.tenant_id, [Bucket(f"{message.channel}_text", *WRITTEN)])
        if bucket.allowed and queue.show_more(message.id):
            queue.DELIVERIES.wake_on_commit()

    def said(self, turn: Message, *, after: KonstructMessage) -> None:
        """Show what a person said of their own accord where the user's last message is shown."""
        shown = Delivery.objects.filter(message_id=after.id).first()
        if shown is not None:
            put(turn, channel=shown.channel, address=shown.address)


HOOK = DeliveryHook()


def redeliver(message_id: UUID, *, tenant_id: UUID) -> None:
    """Try again to show what was given up.

    Raises NothingToRedeliver if it was not.
    """
    with tenant_scope(tenant_id), transaction.atomic():
        if not queue.reset(message_id):
            raise NothingToRedeliver(
                f"The reply to message {message_id} was not given up: it is shown or still tried."
            )
        queue.DELIVERIES.wake_on_commit()
