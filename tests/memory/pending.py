"""Messages that wait for their embeddings, and their stored rows."""

from datetime import timedelta
from uuid import UUID

from django.db.models import Count
from django.utils import timezone

from memory.conversations.embedding_queue import EMBEDDINGS
from memory.models import ConversationEmbedding, PendingEmbedding
from tenants.context import tenant_scope

# Ids of a recall, as a reply's row in the outbox has them.
TRACE = {
    "query": "Where does my sister live?",
    "hits": [{"content": "My sister lives in Lisbon.", "score": 0.9}],
    "cut": [{"content": "The train was late.", "reason": "top_k"}],
    "injected": ["2024-03-04 Ann: My sister lives in Lisbon."],
    "facts": [{"content": "Zoe is Ann's sister.", "score": 0.4, "reason": ""}],
    "prompt": {"model_tier": "fast", "budget": 8000, "tokens": 57, "sections": []},
    "abstained": False,
    "embedding_model": "all-MiniLM-L6-v2@6fceb34132ad",
    "milliseconds": 3.25,
}


def sentence(number: int) -> str:
    """Return a text that is one piece."""
    return f"The number of the day is {number}."


def stored(tenant_id: UUID) -> dict[str, int]:
    """Return messages with vectors and their number; for a sentence it must be one."""
    with tenant_scope(tenant_id):
        return dict(
            ConversationEmbedding.objects.values_list("message__content").annotate(Count("id"))
        )


def waiting(tenant_id: UUID) -> list[str]:
    """Return messages without vectors."""
    with tenant_scope(tenant_id):
        return sorted(PendingEmbedding.objects.values_list("message__content", flat=True))


def make_due(tenant_id: UUID) -> None:
    """Make the jobs due, as if their tasks were late."""
    past = timezone.now() - timedelta(seconds=1)
    with tenant_scope(tenant_id):
        EMBEDDINGS.jobs().update(due_at=past, sweep_at=past)
