"""The outbox of embeddings: every message stands in it until its vectors and words are stored.

A row is removed in the transaction that writes what it asks for, and is locked while that is being
done: killed anywhere, it is all there or all still to do, and whoever comes next may take it.
That it was begun is written down before: what has ended a worker is tried by itself from then on,
so that it takes no other with it, and ever more rarely.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from celery.exceptions import SoftTimeLimitExceeded
from django.db.models import F
from django.db.models.functions import Coalesce, Least, Now
from django.utils import timezone

from memory.conf import (
    OUTBOX_BACKOFF,
    OUTBOX_BACKOFF_MAX,
    OUTBOX_BATCH,
    OUTBOX_SUSPECT,
    OUTBOX_TASK_LIMIT,
)
from memory.embedding.embedder import get_embedder
from memory.exceptions import EmbeddingModelError
from memory.indexing.service import index_messages
from memory.models import Message, PendingEmbedding, RecallEvent
from memory.models.querysets import PendingEmbeddingQuerySet
from tenants import transaction
from tenants.context import asynchronous, connection, known_tenant, tenant_scope
from tenants.exceptions import reason_of
from tenants.outbox import Kind
from tenants.outbox.attempts import failure_of

logger = logging.getLogger(__name__)

# What a task has not stored in time: its message got lost, or its worker did.
EMBEDDINGS = Kind("embedding", task="memory.tasks.embed_message", queue="embeddings")

UNFINISHED = "The worker was stopped while it worked on this message."


@dataclass(frozen=True)
class Drained:
    """What one run has done."""

    stored: int
    more: bool
    """There may be others that nobody works on."""


def drain(
    tenant_id: UUID | str,
    message_ids: Iterable[UUID | str] | None = None,
    *,
    limit: int = OUTBOX_TASK_LIMIT,
    alone: bool = False,
) -> Drained:
    """Embed and store messages that wait for it, in batches, each once.

    What other workers hold is left to them. A message that fails is noted with its error and tried
    again later, ever more rarely; it takes no other with it.

    Args:
        message_ids: these, and then one batch of what is overdue: where tasks of one message have
            come to stand in a long queue, the first of them do the work of the others. By default
            whatever waits.
        limit: at most so many, not counting what is overdue.
        alone: one by one, each noted before it is begun. After a worker has died over one of them,
            that is how the others are stored and the culprit is found.

    Raises:
        EmbeddingModelError: the model does not load; the rows say so.
        UnknownTenant: no such tenant.
    """
    asked = None if message_ids is None else [UUID(str(message_id)) for message_id in message_ids]
    with known_tenant(tenant_id):
        if not PendingEmbedding.objects.workable().exists():
            return Drained(stored=0, more=False)
    with tenant_scope(tenant_id):
        _require_model()
        workable = PendingEmbedding.objects.workable().order_by("due_at", "message_id")
        if asked is None:
            return _work_off(workable, limit, alone=alone)
        own = _work_off(workable.filter(pk__in=asked), limit, alone=alone)
        overdue = _work_off(PendingEmbedding.objects.due(), OUTBOX_BATCH, alone=alone)
        return Drained(own.stored + overdue.stored, more=own.more)


adrain = asynchronous(drain)


def retry_now(message_ids: Sequence[UUID]) -> int:
    """Let messages that failed be tried again at the next sweep; how many there were."""
    return PendingEmbedding.objects.filter(pk__in=message_ids).update(due_at=Now())


def _require_model() -> None:
    """Load the model before any row is locked; say on the rows if it cannot be.

    The model of this host: the rows stay due for others, which may have theirs.
    """
    try:
        get_embedder()
    except EmbeddingModelError as error:
        reason = reason_of(error)
        waiting = PendingEmbedding.objects.workable().exclude(last_error=reason)
        waiting.update(last_error=reason, due_at=Least(F("due_at"), Now()))
        raise


def _work_off(
    waiting: PendingEmbeddingQuerySet[PendingEmbedding], limit: int, *, alone: bool
) -> Drained:
    """Store these in batches, in their order, until none is left that nobody holds."""
    stored = taken = 0
    # Ends: at the limit, and where no row is left that others do not hold.
    while taken < limit:
        with transaction.atomic():
            rows = list(waiting.unlocked()[: min(OUTBOX_BATCH, limit - taken)])
            fresh = [] if alone else [row.pk for row in rows if _is_fresh(row)]
            PendingEmbedding.objects.filter(pk__in=fresh).update(
                begun_at=Coalesce(F("begun_at"), Now())
            )
        if not rows:
            return Drained(stored, more=False)
        if fresh:
            stored += _store_batch(fresh)
        stored += sum(_store_alone(row.pk) for row in rows if alone or not _is_fresh(row))
        taken += len(rows)
    return Drained(stored, more=True)


def _is_fresh(row: PendingEmbedding) -> bool:
    """Whether it may be stored with others: it has failed at nothing, and ended no worker.

    What was begun, and stands for long after, ends its workers for all we know. Before, it may be
    at work, or its worker was killed for other reasons.
    """
    begun_at = row.begun_at
    return not row.attempts and (begun_at is None or timezone.now() - begun_at < OUTBOX_SUSPECT)


def _store_batch(message_ids: Sequence[UUID]) -> int:
    """Store these together; where that fails, those apart from the culprit. How many stand."""
    try:
        return _store(message_ids)
    except SoftTimeLimitExceeded:
        raise  # these are begun, so that each is tried by itself next time
    except Exception:
        if not connection.is_usable():
            raise
        if len(message_ids) == 1:
            return _store_alone(message_ids[0])
        half = len(message_ids) // 2
        return _store_batch(message_ids[:half]) + _store_batch(message_ids[half:])


def _store_alone(message_id: UUID) -> int:
    """Store this one, noting first that it was begun: 1, or 0 if it failed or is not ours."""
    if not _begin(message_id):
        return 0
    try:
        return _store([message_id])
    except SoftTimeLimitExceeded as error:
        _note_failure(message_id, failure_of(error))
        raise
    except Exception as error:
        if not connection.is_usable():
            raise
        _note_failure(message_id, error)
        logger.warning("message %s could not be embedded: %s", message_id, error, exc_info=error)
        return 0


def _note_failure(message_id: UUID, error: Exception) -> None:
    PendingEmbedding.objects.filter(pk=message_id).update(last_error=reason_of(error))


def _store(message_ids: Sequence[UUID]) -> int:
    """Write what the messages ask for and take them out of the outbox, in one transaction."""
    with transaction.atomic():
        rows = list(
            PendingEmbedding.objects.filter(pk__in=message_ids)
            .unlocked()
            .select_related("message")
            .order_by("message__number")
        )
        if rows:
            index_messages([row.message for row in rows])
            RecallEvent.objects.bulk_create(
                _recall_event(row.message, row.recall_trace) for row in rows if row.recall_trace
            )
            PendingEmbedding.objects.filter(pk__in=[row.pk for row in rows]).delete()
    return len(rows)


def _begin(message_id: UUID) -> bool:
    """Note on the row that it is tried, and when again if its worker dies; False if it is held."""
    with transaction.atomic():
        row = PendingEmbedding.objects.filter(pk=message_id).unlocked().first()
        if row is None:
            return False
        row.attempts += 1
        row.begun_at = Now()
        row.last_error = UNFINISHED
        row.due_at = Now() + min(OUTBOX_BACKOFF * 2 ** min(row.attempts, 16), OUTBOX_BACKOFF_MAX)
        row.save(update_fields=["attempts", "begun_at", "last_error", "due_at"])
    return True


def _recall_event(reply: Message, trace: dict[str, Any]) -> RecallEvent:
    """What was recalled for the reply, as it was noted when the reply was written.

    It is the memory of the agent that answered, who may be another than the thread's own.
    """
    return RecallEvent(
        agent_id=reply.answered_by_id or reply.agent_id,
        user_id=reply.user_id,
        reply=reply,
        query=trace["query"],
        hits=trace["hits"],
        cut=trace["cut"],
        injected=trace["injected"],
        # A reply that was written before an upgrade has a trace without these.
        facts=trace.get("facts", []),
        prompt=trace.get("prompt"),
        abstained=trace["abstained"],
        embedding_model=trace["embedding_model"],
        milliseconds=trace["milliseconds"],
    )
