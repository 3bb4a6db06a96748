"""What lies beside a memory: the pieces of other messages whose vectors point the same way."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pgvector.django import CosineDistance

from memory.embedding.hnsw import walking_hnsw
from memory.models import ConversationEmbedding, Message

# A scope of up to so many pieces is compared whole: 13 ms for 10,000.
COMPARED_WHOLE = 20_000


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A message, by its piece that is nearest."""

    message_id: UUID | None
    content: str
    role: str
    similarity: float


def nearest_neighbours(message: Message, *, limit: int = 10) -> list[Neighbour]:
    """The messages of the same agent and user that are most like this one, nearest first.

    Each is as near as the nearest pair of pieces; only vectors of one model are compared. Nothing
    for a message that is not embedded.
    """
    pieces = list(
        ConversationEmbedding.objects.filter(message=message).order_by("-embedding_model", "piece")
    )
    if not pieces:
        return []
    model = pieces[0].embedding_model
    best: dict[UUID, Neighbour] = {}
    for piece in (piece for piece in pieces if piece.embedding_model == model):
        for near in _nearest(message, piece, 3 * limit):
            key = near.message_id or near.pk
            if key not in best or near.similarity > best[key].similarity:
                best[key] = Neighbour(near.message_id, near.content, near.role, near.similarity)
    return sorted(best.values(), key=lambda near: -near.similarity)[:limit]


def _nearest(message: Message, piece: ConversationEmbedding, limit: int) -> list[Any]:
    """Pieces of other messages, each with its cosine similarity."""
    others = (
        ConversationEmbedding.objects.filter(
            agent_id=message.agent_id,
            user_id=message.user_id,
            embedding_model=piece.embedding_model,
        )
        .exclude(message=message)
        .defer("embedding", "quantized")
    )
    distance = CosineDistance("embedding", piece.embedding)
    others = others.annotate(similarity=1.0 - distance)
    if others.values("pk")[: COMPARED_WHOLE + 1].count() > COMPARED_WHOLE:
        with walking_hnsw():
            return list(others.order_by(distance)[:limit])
    # "+ 0" hides the distance from the planner, who would take HNSW for a scope of any size.
    return list(others.order_by(distance + 0.0)[:limit])
