"""Writes the vectors and words of messages, in batches, from the queue of embeddings.

A batch has three steps: a transaction leases its jobs, the model computes outside of any, and a
transaction writes the vectors and words of the messages that are still leased, and removes
their jobs. A killed worker leaves all of a batch or nothing, and its leases end like those of other
jobs. After a failure, or the death of a worker, a message is tried alone from then on, so that
it fails no other message.
"""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db.models import Case, F, Q, Value, When
from django.db.models.functions import Least, Now

from memory.conf import OUTBOX_BATCH, OUTBOX_TASK_LIMIT
from memory.conversations.transcript import EMBEDDINGS
from memory.embedding.embedder import get_embedder
from memory.exceptions import EmbeddingModelError
from memory.indexing.service import embed_messages, index_messages
from memory.models import Message, PendingEmbedding
from tenants import traces, transaction
from tenants.context import connection, execute, known_tenant, required_tenant_id, tenant_scope
from tenants.exceptions import detail_of, reason_of
from tenants.jobs import Lease
from tenants.metrics import counter, histogram
from tenants.models import JobQuerySet

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
        message_ids: these, and overdue ones that fit into their last batch: if tasks of single
            messages wait in a long queue, the first of them do the work of the others. By default
            all queued ones.
        limit: maximum number of messages.

    Raises:
        EmbeddingModelError: the model does not load; it is recorded as the error of the jobs.
        UnknownTenant: no such tenant.
    """
    keys = None if message_ids is None else [UUID(str(message_id)) for message_id in message_ids]
    stored = taken = 0
    with tenant_scope(tenant_id):
        # Ends: at the limit, or when other workers have all remaining jobs.
        while taken < limit:
            leases, messages, has_more = _lease(min(OUTBOX_BATCH, limit - taken), keys)
            stored += _store_leased(leases, messages)
            taken += len(leases)
            if not has_more:
                return DrainResult(stored, more=False)
    return DrainResult(stored, more=True)


def embed_claimed(lease: Lease) -> None:
    """Embed and store a claimed message, and a batch of overdue ones."""
    _require_model()
    _store_leased([lease], _messages([lease]))
    leases, messages, _ = _lease(OUTBOX_BATCH, [])
    _store_leased(leases, messages)


def retry_now(message_id: UUID) -> bool:
    """Make a failed message due at once; return False if it has not failed."""
    failed = EMBEDDINGS.jobs([message_id]).exclude(last_error="")
    return bool(failed.update(due_at=Now(), sweep_at=Now()))


def _claimable() -> JobQuerySet:
    """Return jobs that a worker may do: due ones, and ones without an error before they are due."""
    is_free = Q(leased_until=None) | Q(leased_until__lte=Now())
    return EMBEDDINGS.jobs().filter(is_free, Q(last_error="") | Q(due_at__lte=Now()))


def _require_model() -> None:
    """Load the model, and record an error on the jobs.

    Only the model of this host failed: the jobs stay due for other hosts.
    """
    try:
        get_embedder()
    except EmbeddingModelError as error:
        reason = reason_of(error)
        waiting = _claimable().exclude(last_error=reason)
        waiting.update(last_error=reason, due_at=Least(F("due_at"), Now()))
        raise


def _lease(
    size: int, keys: Collection[UUID] | None
) -> tuple[list[Lease], dict[UUID, Message], bool]:
    """Lease jobs, those that are due longest.

    Args:
        size: the maximum number of jobs.
        keys: these first, and then ones that the sweep wakes workers for: their tasks wait, or were
            lost. None: all.

    Returns:
        The leases, their messages, and whether there may be more.
    """
    is_other: Any = Value(False)
    jobs = _claimable()
    if keys is not None:
        is_other = Case(When(key__in=keys, then=False), default=True)
        jobs = jobs.filter(Q(key__in=keys) | Q(sweep_at__lte=Now(), failed_at=None))
    _require_model()
    with known_tenant(required_tenant_id()):
        found = jobs.annotate(is_other=is_other).order_by("is_other", "sweep_at")
        batch = list(found.values_list("key", "attempts", "is_other")[:size])
        if not batch:
            PendingEmbedding.objects.exists()  # a table of the tenant, if it has tables
        # Messages that failed, or whose worker died, are tried alone, and leased alone.
        fresh = [key for key, attempts, _ in batch if not attempts]
        leases = EMBEDDINGS.lease_many(fresh or [key for key, *_ in batch[:1]])
        is_rest = len(leases) == len(batch) < size or any(is_other for *_, is_other in batch)
        return leases, _messages(leases), bool(leases) and not is_rest


def _messages(leases: Iterable[Lease]) -> dict[UUID, Message]:
    """Return the messages of jobs that still wait."""
    keys = [lease.key for lease in leases]
    pending = PendingEmbedding.objects.filter(pk__in=keys).select_related("message")
    return {row.pk: row.message for row in pending} if keys else {}


def _store_leased(leases: Sequence[Lease], messages: Mapping[UUID, Message]) -> int:
    try:
        return _store_batch(leases, messages) if leases else 0
    except BaseException:
        for lease in leases:
            lease.abandon()
        raise


def _store_batch(
    leases: Sequence[Lease], messages: Mapping[UUID, Message], *, is_half: bool = False
) -> int:
    """Store these together; if that fails, in halves. Return the number of stored messages."""
    if len(leases) == 1:
        return _store_alone(leases[0], messages)
    try:
        return _store(leases, messages)
    except Exception as error:
        if not is_half:
            logger.warning(
                "A batch of %s messages failed, and is stored in halves: %s",
                *(len(leases), detail_of(error)),
            )
        if not connection.is_usable():
            raise
        half = len(leases) // 2
        halves = (leases[:half], leases[half:])
        return sum(_store_batch(part, messages, is_half=True) for part in halves)


def _store_alone(lease: Lease, messages: Mapping[UUID, Message]) -> int:
    """Store this one, or record its failure; return 1, or 0 if it failed or is gone."""
    stored = 0

    def store(lease: Lease) -> None:
        nonlocal stored
        stored = _store([lease], messages)

    EMBEDDINGS.run(lease, store)
    return stored


def _store(leases: Sequence[Lease], messages: Mapping[UUID, Message]) -> int:
    """Compute vectors of the messages; then write them and remove their jobs, in one transaction.

    Returns:
        The number of stored messages: without those that another transaction has locked, and those
        of ended leases.
    """
    tokens = {lease.key: lease.token for lease in leases}
    parents = [lease.traceparent for lease in leases if lease.key in messages]
    waiting = [messages[key] for key in tokens.keys() & messages.keys()]
    with (
        BATCH_SECONDS.of().time(),
        traces.batch_span("embed", parents, tenant_id=required_tenant_id(), messages=len(waiting)),
    ):
        embedded = embed_messages(waiting, get_embedder())
        with transaction.atomic():
            jobs = EMBEDDINGS.jobs(list(tokens)).filter(leased_until__isnull=False)
            locked = jobs.select_for_update(skip_locked=True).values_list("key", "lease")
            finished = {key for key, token in locked if token == tokens[key]}
            pending = PendingEmbedding.objects.filter(pk__in=finished)
            # Moving and erasing messages locks these rows, and waits for the locks of the others.
            unlocked = pending.select_related("message").select_for_update(
                skip_locked=True, of=("self",)
            )
            rows = {row.pk: row.message for row in unlocked if row.pk in messages}
            index_messages(list(rows.values()), embedded)
            execute("DELETE FROM memory_pendingembedding WHERE message_id = ANY(%s)", [list(rows)])
            if others := finished - rows.keys():
                finished -= set(pending.filter(pk__in=others).values_list("pk", flat=True))
            EMBEDDINGS.finish_many(finished)
    MESSAGES.of().inc(len(rows))
    for lease in leases:
        if lease.key not in finished:
            lease.abandon()
    return len(rows)
