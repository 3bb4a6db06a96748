"""Embeds messages with another model, beside the vectors of the current one.

Rows are never changed: the new model's vectors are added, and recall uses the old ones until
EMBEDDING_MODEL names the new model. Messages without its vectors are then found by their words.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Exists, OuterRef

from memory.embedding.embedder import Embedder
from memory.indexing.service import write_embeddings
from memory.models import ConversationEmbedding, Message
from memory.models.querysets import MessageQuerySet
from tenants import transaction
from tenants.context import known_tenant

# Messages that are embedded and written in one transaction.
BATCH = 128


@dataclass(frozen=True, slots=True)
class ReembedProgress:
    """The number of a tenant's embedded messages."""

    done: int
    total: int


def reembed(tenant_id: UUID | str, embedder: Embedder) -> Iterator[ReembedProgress]:
    """Embed every message of a tenant that the model has not embedded yet, oldest first.

    It can be interrupted and repeated; existing rows are not embedded again. New messages are
    embedded by the queue with the current model: run it again after the switch.

    Yields:
        The progress, before the first batch and after each.
    """
    with known_tenant(tenant_id):
        total = Message.objects.count()
        missing = _missing(embedder.version).count()
    done = total - missing
    yield ReembedProgress(done, total)
    after = 0
    # Ends: each batch begins after the last one.
    while True:
        # The tenant is entered again each time: between two batches the caller is in its own scope.
        with known_tenant(tenant_id), transaction.atomic():
            batch = list(
                _missing(embedder.version).filter(number__gt=after).order_by("number")[:BATCH]
            )
            write_embeddings(batch, embedder)
        if not batch:
            return
        after = batch[-1].number
        done += len(batch)
        yield ReembedProgress(done, max(total, done))


def _missing(version: str) -> MessageQuerySet:
    """Return messages with text but without a vector of the model."""
    embedded = ConversationEmbedding.objects.filter(message=OuterRef("pk"), embedding_model=version)
    return Message.objects.filter(~Exists(embedded), content__regex=r"\S")
