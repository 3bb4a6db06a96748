"""The way out: puts accepted messages into the outbox of posts, and enqueues what changes."""

from collections.abc import Mapping
from functools import partial
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from konstruct.channels.delivery import queue
from konstruct.channels.delivery.tasks import deliver
from konstruct.channels.exceptions import NothingToRedeliver
from konstruct.channels.models import Delivery
from konstruct.orchestrator.messages import KonstructMessage
from memory.models import Message
from tenants.context import tenant_scope
from tenants.enqueue import enqueue


def put(message: Message, *, channel: str, address: Mapping[str, str]) -> None:
    """Show the message's state from now on. Call it in the transaction that accepts the message."""
    Delivery.objects.create(
        message=message,
        channel=channel,
        address=dict(address),
        sweep_at=Now() + queue.GRACE,
    )
    _enqueue_on_commit(message.tenant_id, message.id)


class DeliveryOutlet:
    """Is told of every change of a message that came by a channel."""

    def changed(self, message: KonstructMessage) -> None:
        """Note that the message is to be shown anew; what was given up is tried again."""
        if queue.show_anew(message.id):
            _enqueue_on_commit(message.tenant_id, message.id)

    def said(self, turn: Message, *, after: KonstructMessage) -> None:
        """Show what a person said of their own accord where the user's last message is shown."""
        shown = Delivery.objects.filter(message_id=after.id).first()
        if shown is not None:
            put(turn, channel=shown.channel, address=shown.address)


OUTLET = DeliveryOutlet()


def redeliver(message_id: UUID, *, tenant_id: UUID) -> None:
    """Try again to show what was given up.

    Raises NothingToRedeliver if it was not.
    """
    with tenant_scope(tenant_id), transaction.atomic():
        if not queue.reset(message_id):
            raise NothingToRedeliver(
                f"The reply to message {message_id} was not given up: it is shown or still tried."
            )
        _enqueue_on_commit(tenant_id, message_id)


def _enqueue_on_commit(tenant_id: UUID, message_id: UUID) -> None:
    transaction.on_commit(partial(enqueue, deliver, str(tenant_id), str(message_id)))
