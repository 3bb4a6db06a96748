"""Writes the vectors and words of messages, in batches, from the queue of embeddings.

A job is removed in the transaction that writes its message's vectors and words, and that
transaction locks its row: a killed worker leaves all of it or nothing, and another worker can
continue. The start of a batch is recorded before. A message whose job has failed, or whose worker
has died, is tried alone from then on, so that it fails no other message.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db.models import F, Q
from django.db.models.functions import Coalesce, Least, Now
from django.utils import timezone

from memory.conf import OUTBOX_BATCH, OUTBOX_SUSPECT, OUTBOX_TASK_LIMIT
from memory.conversations.embedding_queue import EMBEDDINGS
from memory.embedding.embedder import get_embedder
from memory.exceptions import EmbeddingModelError
from memory.indexing.service import index_messages
from memory.models import Message, PendingEmbedding, RecallEvent
from tenants import traces, transaction
from tenants.context import asynchronous, connection, known_tenant, required_tenant_id, tenant_scope
from tenants.exceptions import detail_of, reason_of
from tenants.jobs import GRACE, Lease
from tenants.metrics import counter, histogram
from tenants.models import Job, JobQuerySet

logger = logging.getLogger(__name__)

MESSAGES: Final = counter(
    "konstruct_embedded_messages_total", "Messages that were embedded and indexed."
)
BATCH_SECONDS: Final = histogram(
    "konstruct_embedding_batch_seconds", "How long a batch of messages took to embed and write."
)


@dataclass(frozen=True)
class DrainResult:
    """The result of one run."""

    stored: int
    more: bool
    """Whether there may be more jobs that no worker has locked."""


def drain(
    tenant_id: UUID | str,
    message_ids: Iterable[UUID | str] | None = None,
    *,
    limit: int = OUTBOX_TASK_LIMIT,
    alone: bool = False,
) -> DrainResult:
    """Embed and store messages with a queued job, in batches, each once.

    Jobs that other workers have locked are skipped. The error of a failed message is recorded, and
    it is retried later; it fails no other message.

    Args:
        tenant_id: the tenant.
        message_ids: these, and then one batch of overdue ones: if tasks of single messages wait in
            a long queue, the first of them do the work of the others. By default all queued ones.
        limit: maximum number of messages, without overdue ones.
        alone: store messages one by one, each recorded before it is begun. After a worker has died
            during one of them, this stores the others and identifies it.

    Raises:
        EmbeddingModelError: the model does not load; it is recorded as the error of the jobs.
        UnknownTenant: no such tenant.
    """
    keys = None if message_ids is None else [UUID(str(message_id)) for message_id in message_ids]
    with known_tenant(tenant_id):
        is_waiting = PendingEmbedding.objects.exists()  # a table of the tenant, if it has tables
        if not (is_waiting and _claimable().exists()):
            return DrainResult(stored=0, more=False)
    with tenant_scope(tenant_id):
        _require_model()
        if keys is None:
            return _process(_claimable(), limit, alone=alone)
        requested = _process(_claimable().filter(key__in=keys), limit, alone=alone)
        overdue = EMBEDDINGS.jobs().filter(sweep_at__lte=Now(), failed_at__isnull=True)
        late = _process(overdue, OUTBOX_BATCH, alone=alone)
        return DrainResult(requested.stored + late.stored, more=requested.more)


adrain = asynchronous(drain)


def retry_now(message_id: UUID) -> bool:
    """Make a failed message due at once; return False if it has not failed."""
    failed = EMBEDDINGS.jobs([message_id]).exclude(last_error="")
    return bool(failed.update(due_at=Now(), sweep_at=Now()))


def _claimable() -> JobQuerySet:
    """Return jobs that a worker may do: all except failed ones that are not due, and running
    ones.
    """
    is_due = Q(due_at__lte=Now()) & ~Q(begun_at__gt=Now() - GRACE)
    return EMBEDDINGS.jobs().filter(Q(attempts=0, last_error="") | is_due)


def _require_model() -> None:
    """Load the model before any row is locked, and record an error on the jobs.

    Only the model of this host failed: the jobs stay due for other hosts.
    """
    try:
        get_embedder()
    except EmbeddingModelError as error:
        reason = reason_of(error)
        waiting = _claimable().exclude(last_error=reason)
        waiting.update(last_error=reason, due_at=Least(F("due_at"), Now()))
        raise


def _process(jobs: JobQuerySet, limit: int, *, alone: bool) -> DrainResult:
    """Do these jobs in batches, longest due first, until only locked ones are left."""
    stored = taken = 0
    # Ends: at the limit, or when all remaining jobs are locked.
    while taken < limit:
        with transaction.atomic():
            waiting = jobs.order_by("sweep_at").select_for_update(skip_locked=True)
            batch = list(waiting[: min(OUTBOX_BATCH, limit - taken)])
            fresh = [] if alone else [job.key for job in batch if _is_fresh(job)]
            if fresh:
                EMBEDDINGS.jobs(fresh).update(begun_at=Coalesce(F("begun_at"), Now()))
        if not batch:
            return DrainResult(stored, more=False)
        if fresh:
            stored += _store_batch(fresh)
        stored += sum(_store_alone(job.key) for job in batch if alone or not _is_fresh(job))
        taken += len(batch)
    return DrainResult(stored, more=True)


def _is_fresh(job: Job) -> bool:
    """Return whether the message may be stored with others: it has not failed, and killed no
    worker.

    A job that was begun long ago may have killed its worker. A recent one may be running, or its
    worker was killed for another reason.
    """
    begun_at = job.begun_at
    return not job.attempts and (begun_at is None or timezone.now() - begun_at < OUTBOX_SUSPECT)


def _store_batch(message_ids: Sequence[UUID], *, is_half: bool = False) -> int:
    """Store these together; if that fails, one by one. Return the number of stored messages."""
    try:
        return _store(message_ids)
    except Exception as error:
        if not is_half:
            logger.warning(
                "A batch of %s messages failed, and is stored in halves: %s",
                *(len(message_ids), detail_of(error)),
            )
        if not connection.is_usable():
            raise
        if len(message_ids) == 1:
            return _store_alone(message_ids[0])
        half = len(message_ids) // 2
        halves = (message_ids[:half], message_ids[half:])
        return sum(_store_batch(ids, is_half=True) for ids in halves)


def _store_alone(message_id: UUID) -> int:
    """Count an attempt and store this one; return 1, or 0 if it failed or is gone."""
    stored = 0

    def store(lease: Lease) -> None:
        nonlocal stored
        stored = _store([message_id])

    EMBEDDINGS.run(message_id, store)
    return stored


def _store(message_ids: Sequence[UUID]) -> int:
    """Write vectors and words of the messages and remove their jobs, in one transaction."""
    with transaction.atomic():
        jobs = EMBEDDINGS.jobs(message_ids).select_for_update(skip_locked=True)
        traceparents = dict(jobs.values_list("key", "traceparent"))
        pending = PendingEmbedding.objects.filter(pk__in=list(traceparents))
        # Moving and erasing messages locks these rows, and waits for the locks of the others.
        unlocked = pending.select_for_update(skip_locked=True, of=("self",))
        rows = list(unlocked.select_related("message").order_by("message__number"))
        if rows:
            parents = [traceparents[row.pk] for row in rows]
            with (
                BATCH_SECONDS.of().time(),
                traces.batch_span(
                    "embed", parents, tenant_id=required_tenant_id(), messages=len(rows)
                ),
            ):
                index_messages([row.message for row in rows])
            MESSAGES.of().inc(len(rows))
            RecallEvent.objects.bulk_create(
                _recall_event(row.message, row.recall_trace) for row in rows if row.recall_trace
            )
        stored = [row.pk for row in rows]
        finished = set(traceparents)
        if len(stored) < len(traceparents):  # some of the others are locked, or deleted
            finished -= set(pending.exclude(pk__in=stored).values_list("pk", flat=True))
        PendingEmbedding.objects.filter(pk__in=stored).delete()
        EMBEDDINGS.finish_many(finished)
    return len(rows)


def _recall_event(reply: Message, trace: dict[str, Any]) -> RecallEvent:
    """Return the recall event of the reply, from the trace that was recorded with the reply.

    It belongs to the agent that answered, which may be another than the thread's own.
    """
    return RecallEvent(
        agent_id=reply.answered_by_id or reply.agent_id,
        user_id=reply.user_id,
        reply=reply,
        query=trace["query"],
        hits=trace["hits"],
        cut=trace["cut"],
        injected=trace["injected"],
        # Traces in archives of earlier versions may lack these two.
        facts=trace.get("facts", []),
        prompt=trace.get("prompt"),
        abstained=trace["abstained"],
        embedding_model=trace["embedding_model"],
        milliseconds=trace["milliseconds"],
    )
