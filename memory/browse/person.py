"""One user: what each agent has of them in numbers, and everything that is known, to export."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Max, Min, Q

from memory.browse.users import MOST_COUNTED
from memory.models import (
    ConversationEmbedding,
    ConversationItem,
    MemoryEntry,
    Message,
    RecallEvent,
    WindowClear,
)

BATCH = 200


@dataclass(frozen=True, slots=True)
class Acquaintance:
    """What one agent has of a user, in numbers; counts end at MOST_COUNTED."""

    agent_id: UUID
    messages: int
    pieces: int
    recalls: int
    facts: int
    first_at: datetime | None
    latest_at: datetime | None


def acquaintances(user_id: str, agent_ids: Sequence[UUID]) -> list[Acquaintance]:
    """What each of these agents has of the user; those that have nothing are left out."""
    found = []
    for agent_id in agent_ids:
        of_both = {"agent_id": agent_id, "user_id": user_id}
        messages = Message.objects.filter(**of_both)
        times = messages.aggregate(first=Min("created_at"), latest=Max("created_at"))
        acquaintance = Acquaintance(
            agent_id,
            _count(messages),
            _count(ConversationEmbedding.objects.filter(**of_both)),
            _count(RecallEvent.objects.filter(**of_both)),
            _count(MemoryEntry.objects.entries().filter(**of_both)),
            times["first"],
            times["latest"],
        )
        if any((acquaintance.messages, acquaintance.pieces, acquaintance.facts)):
            found.append(acquaintance)
    return found


def messages_of(user_id: str, agent_id: UUID) -> Iterator[dict[str, Any]]:
    """Every turn between the two, oldest first, with its pieces that are embedded."""
    position: tuple[datetime, int] | None = None
    rows = Message.objects.filter(agent_id=agent_id, user_id=user_id)
    # Ends: each batch begins after the one before, and one that is not full is the last.
    while True:
        later = Q()
        if position is not None:
            later = Q(created_at__gt=position[0]) | Q(
                created_at=position[0], number__gt=position[1]
            )
        batch = list(
            rows.filter(later)
            .order_by("created_at", "number")
            .prefetch_related("embeddings")[:BATCH]
        )
        for message in batch:
            yield {
                **_fields(message, "id", "number", "thread_id", "channel", "role", "name"),
                **_fields(message, "content", "created_at", "external_id", "in_reply_to_id"),
                **_fields(message, "metadata"),
                "embedded": [
                    _fields(piece, "piece", "content", "embedding_model", "created_at")
                    for piece in message.embeddings.all()
                ],
            }
        if len(batch) < BATCH:
            return
        position = (batch[-1].created_at, batch[-1].number)


def recalls_of(user_id: str, agent_id: UUID) -> Iterator[dict[str, Any]]:
    """What was recalled for each reply."""
    rows = RecallEvent.objects.filter(agent_id=agent_id, user_id=user_id)
    names = [field.attname for field in RecallEvent._meta.concrete_fields]
    hidden = {"tenant_id", "agent_id", "user_id"}
    for pk in rows.order_by("created_at", "pk").values_list("pk", flat=True):
        for event in RecallEvent.objects.filter(pk=pk):
            yield _fields(event, *(name for name in names if name not in hidden))


def direct_embeddings_of(user_id: str, agent_id: UUID) -> Iterator[dict[str, Any]]:
    """Texts that were stored without a message."""
    rows = ConversationEmbedding.objects.filter(
        agent_id=agent_id, user_id=user_id, message__isnull=True
    )
    for piece in rows.defer("embedding", "quantized").order_by("created_at", "pk"):
        yield _fields(piece, "id", "role", "content", "embedding_model", "created_at")


def items_of(user_id: str, agent_id: UUID) -> Iterator[dict[str, Any]]:
    """What frameworks keep of their runs."""
    rows = ConversationItem.objects.filter(agent_id=agent_id, user_id=user_id)
    for pk in rows.order_by("created_at", "number").values_list("pk", flat=True):
        for item in ConversationItem.objects.filter(pk=pk):
            yield _fields(item, "id", "thread_id", "item", "message_id", "created_at")


def facts_of(user_id: str) -> Iterator[dict[str, Any]]:
    """Facts about the user, with their old versions."""
    for fact in MemoryEntry.objects.filter(user_id=user_id).defer("embedding").order_by("pk"):
        yield {
            **_fields(fact, "memory_id", "agent_id", "content", "metadata", "created_at"),
            **_fields(fact, "updated_at", "valid_from", "valid_to", "expires_at", "version_of"),
        }


def cleared_windows_of(user_id: str, agent_id: UUID) -> list[dict[str, Any]]:
    """When the window between the two was emptied."""
    rows = WindowClear.objects.filter(agent_id=agent_id, user_id=user_id)
    return [_fields(clear, "created_at", "last_number") for clear in rows.order_by("pk")]


def _fields(row: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}


def _count(rows: Any) -> int:
    counted: int = rows.values("pk")[:MOST_COUNTED].count()
    return counted
