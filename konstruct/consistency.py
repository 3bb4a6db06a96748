"""Verification of a tenant, also while it is served, and the repair of what it finds.

Each entry of `CHECKS` is an invariant: an accepted message has a reply or a job, a waiting row has
its job, a message is embedded or queued for it, and an active extracted fact quotes its messages.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Substr

from konstruct.channels import delivery, inbox
from konstruct.channels.models import Arrival, Delivery
from konstruct.orchestrator import messages, models, replies
from konstruct.orchestrator.extraction.runs import EXTRACTIONS
from konstruct.orchestrator.identities.channel_identities import HISTORY_MERGES
from konstruct.orchestrator.identities.erasure_requests import ERASURES, MESSAGE_ERASURES
from memory import conf, facts, models as memory_models
from memory.conversations.transcript import EMBEDDINGS, enqueue_embeddings
from tenants import context, jobs, transaction
from tenants.audit import models as audit_models
from tenants.outbox.models import NOTIFICATIONS, EventDelivery

LOST = "accepted message with neither a reply nor a job"
HELD_WITHOUT_QUESTION = "held message without an escalation or a question"
NO_JOB = "waiting row without a job"
NOT_EMBEDDED = "message that is neither embedded nor queued for it"
NO_QUOTE = "active extracted fact without a quote of its message"

# Running work may look inconsistent for a short time: only findings of two runs are reported.
SECOND_RUN_SECONDS = 1.0

Keys = Callable[[], "QuerySet[Any, Any]"]
# Keys of the rows that must have a job. Messages without a reply are LOST.
KEYS_OF_WAITING_ROWS: Final[tuple[tuple[jobs.JobKind, Keys], ...]] = (
    (EMBEDDINGS, lambda: memory_models.PendingEmbedding.objects.values_list("message_id")),
    (delivery.DELIVERIES, lambda: Delivery.objects.outdated().values_list("message_id")),
    (inbox.ARRIVALS, lambda: Arrival.objects.values_list("id")),
    (ERASURES, lambda: audit_models.ErasureRequest.objects.open().values_list("id")),
    (
        MESSAGE_ERASURES,
        lambda: audit_models.MessageErasure.objects.filter(done_at__isnull=True).values_list("id"),
    ),
    (EXTRACTIONS, lambda: models.ExtractionCursor.objects.behind().values_list("id")),
    (HISTORY_MERGES, lambda: models.HistoryMerge.objects.open().values_list("id")),
    (
        audit_models.RETENTION,
        lambda: audit_models.RetentionRule.objects.values_list(
            Value(audit_models.TENANT_JOB_KEY)
        ).distinct(),
    ),
    (models.HISTORY_IMPORTS, lambda: models.HistoryImport.objects.values_list("id")),
    (audit_models.EXPORTS, lambda: audit_models.ListExport.objects.values_list("id")),
    (NOTIFICATIONS, lambda: EventDelivery.objects.filter(delivered_at=None).values_list("id")),
)

_COUNTS = """
SELECT count(*) FILTER (WHERE is_asked) AS accepted,
       count(reply.id) FILTER (WHERE is_asked) AS answered,
       count(*) FILTER (WHERE is_open AND pending.failed_at IS NOT NULL) AS failed,
       count(*) FILTER (WHERE is_open AND pending.held_for <> '') AS held,
       count(*) FILTER (
           WHERE is_open AND pending.message_id IS NOT NULL AND pending.failed_at IS NULL
             AND pending.held_for = ''
       ) AS waiting,
       count(*) AS "to be embedded",
       count(indexed.message_number) FILTER (WHERE embedding.message_id IS NULL) AS embedded,
       count(embedding.message_id) AS pending,
       (SELECT count(*) FROM memory_memoryentry WHERE version_of IS NULL) AS facts
FROM memory_message AS message
LEFT JOIN memory_message AS reply ON reply.in_reply_to_id = message.id
LEFT JOIN orchestrator_pendingreply AS pending ON pending.message_id = message.id
LEFT JOIN memory_indexedmessage AS indexed ON indexed.message_number = message.number
LEFT JOIN memory_pendingembedding AS embedding ON embedding.message_id = message.id,
LATERAL (SELECT message.role = %s AND message.channel <> ALL (%s)) AS asked (is_asked),
LATERAL (SELECT is_asked AND reply.id IS NULL) AS unanswered (is_open)
"""
_NOT_EMBEDDED = """
SELECT message.id, message.content, indexed.message_number IS NOT NULL AS is_indexed
FROM memory_message AS message
LEFT JOIN memory_indexedmessage AS indexed ON indexed.message_number = message.number
WHERE NOT EXISTS (SELECT FROM memory_pendingembedding WHERE message_id = message.id)
  AND (indexed.message_number IS NULL OR NOT EXISTS (
      SELECT FROM memory_conversationembedding AS piece WHERE piece.message_id = message.id
  ))
"""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One inconsistency: its kind, and the id of the row."""

    kind: str
    subject: str


@dataclass(slots=True)
class Report:
    """The counts of a tenant, and the findings."""

    tenant: str
    counts: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    repaired: list[Finding] = field(default_factory=list)


class Check(NamedTuple):
    """An invariant: how its violations are called, found and repaired, by their subjects."""

    kind: str
    find: Callable[[], Iterable[object]]
    repair: Callable[[Sequence[str]], object]


def verify(tenant_id: UUID, name: str, *, repair: bool = False) -> Report:
    """Run all checks of a tenant, also while it is served.

    Args:
        tenant_id: the tenant.
        name: the name of the tenant in the report.
        repair: whether to repair the findings. `Report.repaired` has those that were repaired.

    Returns:
        The counts, and the findings of two consecutive runs.
    """
    with context.tenant_scope(tenant_id):
        findings = _findings()
        repaired: list[Finding] = []
        if findings and repair:
            for check in CHECKS:
                if subjects := [item.subject for item in findings if item.kind == check.kind]:
                    check.repair(subjects)
            remaining = _findings()
            repaired = [finding for finding in findings if finding not in remaining]
            findings = remaining
        return Report(name, count(), findings, repaired)


def count() -> dict[str, int]:
    """Count the messages of the current tenant by their states, and its facts."""
    with context.connection.cursor() as cursor:
        cursor.execute(_COUNTS, [memory_models.Role.USER, [*conf.UNANSWERED_CHANNELS]])
        names = [column.name for column in cursor.description]
        return dict(zip(names, cursor.fetchone(), strict=True))


def _findings() -> list[Finding]:
    findings = find()
    if findings:
        time.sleep(SECOND_RUN_SECONDS)
        second_run = set(find())
        findings = [finding for finding in findings if finding in second_run]
    return findings


def find(*kinds: str) -> list[Finding]:
    """Return the violations in the current tenant, of these kinds or of all."""
    return [
        Finding(check.kind, str(subject))
        for check in CHECKS
        if not kinds or check.kind in kinds
        for subject in check.find()
    ]


def _lost() -> Iterable[object]:
    lost = memory_models.Message.objects.filter(
        role=memory_models.Role.USER, reply__isnull=True, pending_reply__isnull=True
    ).exclude(channel__in=conf.UNANSWERED_CHANNELS)
    return lost.values_list("pk", flat=True).iterator()


def _enqueue_replies(subjects: Sequence[str]) -> None:
    for message in memory_models.Message.objects.filter(pk__in=subjects):
        replies.enqueue(message)


def _held_without_question() -> Iterable[object]:
    """Return messages that wait for a person in no escalation, or for calls without a question."""
    same_thread = {
        name: OuterRef(f"message__{name}") for name in ("agent_id", "user_id", "thread_id")
    }
    is_escalated = Exists(models.Escalation.objects.open().to_people().filter(**same_thread))
    awaits_consent = Exists(models.ToolCall.objects.waiting().filter(message=OuterRef("message")))
    awaits_program = Exists(
        models.ToolCall.objects.with_program().filter(message=OuterRef("message"))
    )
    return models.PendingReply.objects.filter(
        Q(held_for=models.HeldFor.PERSON) & ~is_escalated
        | Q(held_for=models.HeldFor.CONSENT) & ~awaits_consent
        | Q(held_for=models.HeldFor.PROGRAM) & ~awaits_program
    ).values_list("pk", flat=True)


def _release(subjects: Sequence[str]) -> None:
    for message in memory_models.Message.objects.filter(pk__in=subjects):
        with transaction.atomic():
            replies.release(messages.konstruct_message(message))


def _rows_without_job() -> Iterator[str]:
    for kind, waiting in KEYS_OF_WAITING_ROWS:
        missing = waiting().order_by().difference(kind.jobs().values_list("key"))
        yield from (f"{kind.name}/{key}" for (key,) in missing)


def _enqueue_jobs(subjects: Sequence[str]) -> None:
    for subject in subjects:
        name, _, key = subject.rpartition("/")
        jobs.KINDS[name].enqueue(UUID(key))


def _not_embedded() -> Iterator[UUID]:
    for pk, content, is_indexed in context.fetch_all(_NOT_EMBEDDED, []):
        if not is_indexed or content.strip():  # a blank text has no vector
            yield pk


def _facts_without_quote() -> Iterable[object]:
    extracted = memory_models.MemoryEntry.objects.entries().filter(
        state=memory_models.FactState.ACTIVE
    )
    extracted = extracted.exclude(kind=memory_models.FactKind.ENTERED)
    # Postgres counts characters from 1.
    words = Substr("message__content", F("start") + 1, F("end") - F("start"))
    wrong = memory_models.FactEvidence.objects.annotate(words=words).exclude(words=F("quote"))
    return extracted.filter(
        Q(evidence__isnull=True) | Q(pk__in=wrong.values("memory_id"))
    ).values_list("pk", flat=True)


def _retract(subjects: Sequence[str]) -> None:
    for subject in subjects:
        facts.retract(UUID(subject), author=facts.SYSTEM, reason=NO_QUOTE)


CHECKS: Final = (
    Check(LOST, _lost, _enqueue_replies),
    Check(HELD_WITHOUT_QUESTION, _held_without_question, _release),
    Check(NO_JOB, _rows_without_job, _enqueue_jobs),
    Check(NOT_EMBEDDED, _not_embedded, lambda ids: enqueue_embeddings([*map(UUID, ids)])),
    Check(NO_QUOTE, _facts_without_quote, _retract),
)
