"""Writes the vectors and words of messages, in batches, from the queue of embeddings.

A batch has three steps: a transaction leases its jobs, the model computes outside of any, and a
transaction writes the vectors and words of the messages that are still leased, and removes
their jobs. A killed worker leaves all of a batch or nothing, and its leases end like those of other
jobs. After a failure, or the death of a worker, a message is tried alone from then on, so that
it fails no other message.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db.models import F, Q
from django.db.models.functions import Least, Now

from memory.conf import OUTBOX_BATCH, OUTBOX_TASK_LIMIT
from memory.conversations.embedding_queue import EMBEDDINGS
from memory.embedding.embedder import get_embedder
from memory.exceptions import EmbeddingModelError
from memory.indexing.service import embed_messages, index_messages
from memory.models import Message, PendingEmbedding, RecallEvent
from tenants import traces, transaction
from tenants.context import connection, known_tenant, required_tenant_id, tenant_scope
from tenants.exceptions import detail_of, reason_of
from tenants.jobs import GRACE, Lease
from tenants.jobs.worker import this_worker
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
    """Whether there may be more jobs that no worker has."""


def drain(
    tenant_id: UUID | str,
    message_ids: Iterable[UUID | str] | None = None,
    *,
    limit: int = OUTBOX_TASK_LIMIT,
) -> DrainResult:
    """Embed and store messages with a queued job, in batches, each once.

    Jobs that other workers have are skipped. The error of a failed message is recorded, and
    it is retried later; it fails no other message.

    Args:
        tenant_id: the tenant.
        message_ids: these, and then one batch of overdue ones: if tasks of single messages wait in
            a long queue, the first of them do the work of the others. By default all queued ones.
        limit: maximum number of messages, without overdue ones.

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
            return _process(_claimable(), limit)
        requested = _process(_claimable().filter(key__in=keys), limit)
        overdue = _unleased().filter(sweep_at__lte=Now(), failed_at__isnull=True)
        late = _process(overdue, OUTBOX_BATCH)
        return DrainResult(requested.stored + late.stored, more=requested.more)


def retry_now(message_id: UUID) -> bool:
    """Make a failed message due at once; return False if it has not failed."""
    failed = EMBEDDINGS.jobs([message_id]).exclude(last_error="")
    return bool(failed.update(due_at=Now(), sweep_at=Now()))


def _unleased() -> JobQuerySet:
    """Return jobs that no worker has."""
    return EMBEDDINGS.jobs().filter(Q(leased_until=None) | Q(leased_until__lte=Now()))


def _claimable() -> JobQuerySet:
    """Return jobs that a worker may do: all except failed ones that are not due, and running
    ones.
    """
    is_due = Q(due_at__lte=Now()) & ~Q(begun_at__gt=Now() - GRACE)
    return _unleased().filter(Q(attempts=0, last_error="") | is_due)


def _require_model() -> None:
    """Load the model before any job is leased, and record an error on the jobs.

    Only the model of this host failed: the jobs stay due for other hosts.
    """
    try:
        get_embedder()
    except EmbeddingModelError as error:
        reason = reason_of(error)
        waiting = _claimable().exclude(last_error=reason)
        waiting.update(last_error=reason, due_at=Least(F("due_at"), Now()))
        raise


def _process(jobs: JobQuerySet, limit: int) -> DrainResult:
    """Do these jobs in batches, longest due first, until only those of other workers are left."""
    stored = taken = 0
    # Ends: at the limit, or when other workers have all remaining jobs.
    while taken < limit:
        with transaction.atomic():
            waiting = jobs.order_by("sweep_at").select_for_update(skip_locked=True)
            batch = list(waiting[: min(OUTBOX_BATCH, limit - taken)])
            leases = _lease([job for job in batch if _is_fresh(job)])
        if not batch:
            return DrainResult(stored, more=False)
        if leases:
            try:
                stored += _store_batch(leases)
            except BaseException:
                for lease in leases:
                    lease.abandon()
                raise
        stored += sum(_store_alone(job.key) for job in batch if not _is_fresh(job))
        taken += len(batch)
    return DrainResult(stored, more=True)


def _lease(jobs: Sequence[Job]) -> list[Lease]:
    """Lease jobs, which the caller's transaction has locked, without counting an attempt."""
    until = Now() + timedelta(seconds=settings.TASK_TIME_LIMIT)
    EMBEDDINGS.jobs([job.key for job in jobs]).update(
        begun_at=Now(),
        lease=F("lease") + 1,
        worker=this_worker(),
        leased_until=until,
        sweep_at=until,
    )
    return [
        Lease(job.kind, job.key, job.lease + 1, False, job.attempts, False, job.traceparent, "")
        for job in jobs
    ]


def _is_fresh(job: Job) -> bool:
    """Return whether the message may be stored with others: it has not failed, and no worker has
    died or was interrupted during its job.
    """
    return not job.attempts and job.begun_at is None


def _store_batch(leases: Sequence[Lease], *, is_half: bool = False) -> int:
    """Store these together; if that fails, one by one. Return the number of stored messages."""
    try:
        return _store(leases)
    except Exception as error:
        if not is_half:
            logger.warning(
                "A batch of %s messages failed, and is stored in halves: %s",
                *(len(leases), detail_of(error)),
            )
        if not connection.is_usable():
            raise
        if len(leases) == 1:
            leases[0].abandon()
            return _store_alone(leases[0].key)
        half = len(leases) // 2
        return sum(_store_batch(part, is_half=True) for part in (leases[:half], leases[half:]))


def _store_alone(message_id: UUID) -> int:
    """Count an attempt and store this one; return 1, or 0 if it failed or is gone."""
    stored = 0

    def store(lease: Lease) -> None:
        nonlocal stored
        stored = _store([lease])

    EMBEDDINGS.run(message_id, store)
    return stored


def _store(leases: Sequence[Lease]) -> int:
    """Compute vectors of the messages; then write them and remove their jobs, in one transaction.

    Returns:
        The number of stored messages: without those that another transaction has locked, and those
        of ended leases.
    """
    tokens = {lease.key: lease.token for lease in leases}
    pending = PendingEmbedding.objects.filter(pk__in=list(tokens)).select_related("message")
    messages = {row.pk: row.message for row in pending.defer("recall_trace")}
    parents = [lease.traceparent for lease in leases if lease.key in messages]
    with (
        BATCH_SECONDS.of().time(),
        traces.batch_span("embed", parents, tenant_id=required_tenant_id(), messages=len(messages)),
    ):
        embedded = embed_messages(messages.values(), get_embedder())
        with transaction.atomic():
            jobs = EMBEDDINGS.jobs(list(tokens)).filter(leased_until__isnull=False)
            locked = jobs.select_for_update(skip_locked=True).values_list("key", "lease")
            finished = {key for key, token in locked if token == tokens[key]}
            # Moving and erasing messages locks these rows, and waits for the locks of the others.
            unlocked = pending.select_for_update(skip_locked=True, of=("self",))
            rows = list(unlocked.filter(pk__in=finished & messages.keys()))
            index_messages([row.message for row in rows], embedded)
            RecallEvent.objects.bulk_create(
                _recall_event(row.message, row.recall_trace) for row in rows if row.recall_trace
            )
            pending.filter(pk__in=[row.pk for row in rows]).delete()
            finished.difference_update(pending.values_list("pk", flat=True))
            EMBEDDINGS.finish_many(finished)
    MESSAGES.of().inc(len(rows))
    for lease in leases:
        if lease.key not in finished:
            lease.abandon()
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
