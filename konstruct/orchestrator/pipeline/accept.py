"""Accepts messages into the pipeline, and retries failed ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from konstruct.orchestrator import usage
from konstruct.orchestrator.exceptions import IdempotencyKeyReused
from konstruct.orchestrator.models import AnswerOptions
from konstruct.orchestrator.pipeline.snapshot import load_message
from konstruct.orchestrator.replies import delivery, queue
from memory.conversations.transcript import record_message
from memory.models import Message, Role
from memory.text.chunking import estimated_pieces
from tenants import transaction
from tenants.context import tenant_scope
from tenants.limits.quotas import QuotaExceeded
from tenants.metrics import counter

ACCEPTED: Final = counter(
    "konstruct_messages_accepted_total",
    "Messages of users that were accepted, each of which has one job of kind reply.",
    channel=("rest", "slack", "openai"),
)
_CONTENT_FIELDS = ("agent_id", "user_id", "thread_id", "channel", "name", "content")


@dataclass(frozen=True)
class Incoming:
    """A validated and normalised message of a channel."""

    agent_id: UUID
    user_id: str
    thread_id: str
    channel: str
    content: str
    name: str = ""
    idempotency_key: str | None = None
    """The id of the message in its channel; with the caller, if the channel has several."""
    created_at: datetime | None = None
    """When it was sent, if the channel gives the time; by default when it is stored."""
    metadata: Mapping[str, Any] | None = None
    """Labels of the program."""
    options: AnswerOptions | None = None
    """Options of the answer, not saved yet."""


def accept(incoming: Incoming, *, tenant_id: UUID) -> tuple[Message, bool]:
    """Store the message, and enqueue its reply.

    With the idempotency key of an existing message of the same channel, that message is returned.
    It sets no savepoint: a caller that goes on after an error puts it into `atomic()`.

    Returns:
        The message, and whether it is new.

    Raises:
        IdempotencyKeyReused: the existing message has other content.
        QuotaExceeded: the message is new, and a hard limit of the tenant is reached.
    """
    pieces = estimated_pieces(incoming.content, incoming.name)
    with tenant_scope(tenant_id), transaction.atomic(savepoint=False):
        try:
            usage.require_room(usage.MESSAGE_QUOTAS, memories=pieces)
        except QuotaExceeded:
            key = _channel_key(incoming)
            if key is None or not Message.objects.filter(idempotency_key=key).exists():
                raise
        message, created = record_message(
            tenant_id=tenant_id,
            agent_id=incoming.agent_id,
            user_id=incoming.user_id,
            thread_id=incoming.thread_id,
            channel=incoming.channel,
            role=Role.USER,
            content=incoming.content,
            name=incoming.name,
            idempotency_key=_channel_key(incoming),
            created_at=incoming.created_at,
            metadata=incoming.metadata,
        )
        if created:
            queue.enqueue(message)
            if incoming.options is not None:
                incoming.options.save_for(message)
            usage.count(messages=1, memories=pieces)
    if created:
        ACCEPTED.of(channel=incoming.channel).inc()
    else:
        _refuse_different(message, incoming)
    return message, created


def retry_reply(message_id: UUID, *, tenant_id: UUID) -> None:
    """Retry the failed reply to a message.

    Args:
        message_id: the user's message.
        tenant_id: its tenant.

    Raises:
        NothingToRetry: the reply has not failed.
    """
    with tenant_scope(tenant_id), transaction.atomic():
        queue.retry(message_id)
        delivery.notify_changed(load_message(message_id))


def _channel_key(incoming: Incoming) -> str | None:
    """Return the key with the channel as prefix: keys of two channels cannot be equal."""
    key, prefix = incoming.idempotency_key, f"{incoming.channel}/"
    return key if key is None or key.startswith(prefix) else prefix + key


def _refuse_different(existing: Message, incoming: Incoming) -> None:
    different = [
        field for field in _CONTENT_FIELDS if getattr(existing, field) != getattr(incoming, field)
    ]
    if (existing.metadata or {}) != (incoming.metadata or {}):
        different.append("metadata")
    if different:
        raise IdempotencyKeyReused(
            f"You have sent this Idempotency-Key with another {' and '.join(different)}. "
            "Send a new key with a new message."
        )
