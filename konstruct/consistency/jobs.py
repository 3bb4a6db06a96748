"""Checks that each waiting row has a job, and that each job has its row."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final
from uuid import UUID

from django.db.models import QuerySet, Value

from konstruct.channels.delivery.queue import DELIVERIES
from konstruct.channels.inbox import ARRIVALS
from konstruct.channels.models import Arrival, Delivery, arrival_key
from konstruct.channels.notifications.checks import NOTIFICATIONS
from konstruct.consistency.records import Finding
from konstruct.orchestrator.extraction.queue import EXTRACTIONS, PREVIEWS
from konstruct.orchestrator.identities.channel_identities import HISTORY_MERGES
from konstruct.orchestrator.identities.erasure_requests import ERASURES, MESSAGE_ERASURES
from konstruct.orchestrator.models import (
    ExtractionCursor,
    ExtractionRun,
    HistoryMerge,
    Notification,
    RunState,
)
from konstruct.orchestrator.replies.queue import REPLIES
from memory.conversations.embedding_queue import EMBEDDINGS
from memory.models import Message, PendingEmbedding, Role
from tenants.audit.models import (
    RETENTION,
    TENANT_JOB_KEY,
    ErasureRequest,
    MessageErasure,
    RetentionRule,
)
from tenants.jobs import KINDS, JobKind

NO_JOB = "waiting row without a job"
NO_ROW = "job without its row"

Keys = Callable[[], "QuerySet[Any, Any]"]
# Keys of the rows that must have a job. The check of replies finds messages without a reply.
KEYS_OF_WAITING_ROWS: Final[tuple[tuple[JobKind, Keys], ...]] = (
    (EMBEDDINGS, lambda: PendingEmbedding.objects.values_list("message_id")),
    (DELIVERIES, lambda: Delivery.objects.outdated().values_list("message_id")),
    (ARRIVALS, lambda: Arrival.objects.values_list(arrival_key("id"))),
    (ERASURES, lambda: ErasureRequest.objects.open().values_list("id")),
    (
        MESSAGE_ERASURES,
        lambda: MessageErasure.objects.filter(done_at__isnull=True).values_list("id"),
    ),
    (EXTRACTIONS, lambda: ExtractionCursor.objects.behind().values_list("id")),
    # A run that a worker starts has no requester.
    (
        PREVIEWS,
        lambda: (
            ExtractionRun.objects.filter(state=RunState.RUNNING)
            .exclude(requested_by="")
            .values_list("id")
        ),
    ),
    (NOTIFICATIONS, lambda: Notification.objects.pending().values_list("id")),
    (HISTORY_MERGES, lambda: HistoryMerge.objects.open().values_list("id")),
    (RETENTION, lambda: RetentionRule.objects.values_list(Value(TENANT_JOB_KEY)).distinct()),
)
# Keys of the rows of jobs. Rows of other kinds can be erased before their job, which the owner's
# worker then finishes.
KEYS_OF_ROWS: Final[tuple[tuple[JobKind, Keys], ...]] = (
    (EMBEDDINGS, lambda: PendingEmbedding.objects.values_list("message_id")),
    (ARRIVALS, lambda: Arrival.objects.values_list(arrival_key("id"))),
    (REPLIES, lambda: Message.objects.filter(role=Role.USER).values_list("id")),
    (DELIVERIES, lambda: Delivery.objects.values_list("message_id")),
    (ERASURES, lambda: ErasureRequest.objects.values_list("id")),
)


def count() -> dict[str, int]:
    """Return no counts: other checks count waiting rows."""
    return {}


def check() -> Iterator[Finding]:
    """Compare rows with jobs, and jobs with rows."""
    for kind, waiting in KEYS_OF_WAITING_ROWS:
        missing = waiting().order_by().difference(kind.jobs().values_list("key"))
        yield from (Finding(NO_JOB, f"{kind.name}/{key}") for (key,) in missing)
    for kind, known in KEYS_OF_ROWS:
        stray = kind.jobs().values_list("key").difference(known().order_by())
        yield from (Finding(NO_ROW, f"{kind.name}/{key}") for (key,) in stray)


def enqueue(findings: Sequence[Finding]) -> None:
    """Enqueue the missing jobs."""
    for kind, keys in _by_kind(findings):
        kind.enqueue_many(keys)
        kind.wake()


def remove(findings: Sequence[Finding]) -> None:
    """Remove the jobs without a row."""
    for kind, keys in _by_kind(findings):
        kind.finish_many(keys)


def _by_kind(findings: Sequence[Finding]) -> Iterator[tuple[JobKind, list[UUID]]]:
    subjects = [finding.subject.rsplit("/", 1) for finding in findings]
    for name in sorted({name for name, _ in subjects}):
        yield KINDS[name], [UUID(key) for of_kind, key in subjects if of_kind == name]


REPAIRS = {NO_JOB: enqueue, NO_ROW: remove}
