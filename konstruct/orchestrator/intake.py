"""The way in: accepts messages into the pipeline, and takes back those that were given up."""

from dataclasses import dataclass
from functools import partial
from uuid import UUID

from django.db import transaction

from konstruct.orchestrator import outbox, outlets
from konstruct.orchestrator.bell import ring
from konstruct.orchestrator.exceptions import IdempotencyKeyReused
from konstruct.orchestrator.pipeline import load_message
from konstruct.orchestrator.tasks import handle_message
from memory.models import Message, Role
from memory.transcript import record_message
from tenants.context import tenant_scope


@dataclass(frozen=True)
class Incoming:
    """What a channel has understood of a message: checked, and normalised."""

    agent_id: UUID
    user_id: str
    thread_id: str
    channel: str
    content: str
    name: str = ""
    idempotency_key: str | None = None


def accept(incoming: Incoming, *, tenant_id: UUID) -> tuple[Message, bool]:
    """Write the message down, let it wait for its reply, and ring for a worker after the commit.

    The same idempotency key again returns the message that stands, and False. Raises
    IdempotencyKeyReused if that one says something else.
    """
    with tenant_scope(tenant_id), transaction.atomic():
        message, created = record_message(
            tenant_id=tenant_id,
            agent_id=incoming.agent_id,
            user_id=incoming.user_id,
            thread_id=incoming.thread_id,
            channel=incoming.channel,
            role=Role.USER,
            content=incoming.content,
            name=incoming.name,
            idempotency_key=incoming.idempotency_key,
        )
        if created:
            outbox.put(message)
            _ring_on_commit(tenant_id, message.id)
    if not created:
        _require_same(message, incoming)
    return message, created


def retry_reply(message_id: UUID, *, tenant_id: UUID) -> None:
    """Try again to answer a message whose reply was given up.

    Raises NothingToRetry if it was not.
    """
    with tenant_scope(tenant_id), transaction.atomic():
        outbox.retry(message_id)
        outlets.changed(load_message(message_id))
        _ring_on_commit(tenant_id, message_id)


def _ring_on_commit(tenant_id: UUID, message_id: UUID) -> None:
    transaction.on_commit(partial(ring, handle_message, str(tenant_id), str(message_id)))


def _require_same(standing: Message, incoming: Incoming) -> None:
    different = [
        field
        for field in ("agent_id", "user_id", "thread_id", "channel", "name", "content")
        if getattr(standing, field) != getattr(incoming, field)
    ]
    if different:
        raise IdempotencyKeyReused(
            f"Idempotency-Key {incoming.idempotency_key!r} stands for message {standing.id}, "
            f"whose {', '.join(different)} differ. Send a new key with a new message."
        )
