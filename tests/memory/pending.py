"""Messages that wait for their embeddings, and their stored rows."""

from datetime import timedelta
from uuid import UUID

from django.db.models import Count
from django.utils import timezone

from memory.conversations.transcript import EMBEDDINGS
from memory.models import ConversationEmbedding, PendingEmbedding
from tenants.context import tenant_scope


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
