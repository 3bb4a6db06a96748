"""Checks: accepted = answered + given up with a reason + held for a person or program + waiting."""

from collections.abc import Iterator, Sequence

from django.db.models import Exists, OuterRef, Q, QuerySet

from konstruct.consistency.records import Finding
from konstruct.orchestrator.messages import konstruct_message
from konstruct.orchestrator.models import Escalation, HeldFor, PendingReply, ToolCall
from konstruct.orchestrator.replies import queue
from memory.conf import IMPORT_CHANNEL, STORED_CHANNEL
from memory.models import Message, Role
from tenants import transaction
from tenants.context import connection, fetch_all
from tenants.jobs import INTERRUPTED

# Channels without replies: history, and texts that a program has stored.
UNANSWERED_CHANNELS = (IMPORT_CHANNEL, STORED_CHANNEL)
LOST = "accepted message with neither a reply nor a job"
ANSWERED_AND_FAILED = "answered message with a failed job"
NO_REASON = "failed job without a reason"
HELD_WITHOUT_QUESTION = "held message without an escalation or a question"
REPLY_ELSEWHERE = "reply in another conversation than its message"

_COUNTS = """
SELECT count(*) AS accepted,
       count(reply.id) AS answered,
       count(*) FILTER (WHERE reply.id IS NULL AND pending.failed_at IS NOT NULL) AS failed,
       count(*) FILTER (
           WHERE reply.id IS NULL AND pending.held_for <> ''
       ) AS held,
       count(*) FILTER (
           WHERE reply.id IS NULL AND pending.message_id IS NOT NULL AND pending.failed_at IS NULL
             AND pending.held_for = ''
       ) AS waiting
FROM memory_message AS asked
LEFT JOIN memory_message AS reply ON reply.in_reply_to_id = asked.id
LEFT JOIN orchestrator_pendingreply AS pending ON pending.message_id = asked.id
WHERE asked.role = %s AND asked.channel <> ALL (%s)
"""


def count() -> dict[str, int]:
    """Return the five numbers, at one time."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNTS, [Role.USER, [*UNANSWERED_CHANNELS]])
        names = ("accepted", "answered", "failed", "held", "waiting")
        return dict(zip(names, cursor.fetchone(), strict=True))


def check() -> Iterator[Finding]:
    """Find messages that no worker will answer, and jobs with a wrong state."""
    lost = Message.objects.filter(
        role=Role.USER, reply__isnull=True, pending_reply__isnull=True
    ).exclude(channel__in=UNANSWERED_CHANNELS)
    for pk in lost.values_list("pk", flat=True).iterator():
        yield Finding(LOST, str(pk))
    for pending in PendingReply.objects.failed().select_related("message__reply"):
        # A worker that was killed after it had written the reply leaves both.
        if hasattr(pending.message, "reply") and pending.error_code not in INTERRUPTED:
            yield Finding(ANSWERED_AND_FAILED, str(pending.pk))
        elif not pending.last_error:
            yield Finding(NO_REASON, str(pending.pk))
    for pk in _held_without_question().values_list("pk", flat=True):
        yield Finding(HELD_WITHOUT_QUESTION, str(pk))
    for (pk,) in fetch_all(
        "SELECT reply.id FROM memory_message AS reply"
        " JOIN memory_message AS asked ON asked.id = reply.in_reply_to_id"
        " WHERE (reply.agent_id, reply.user_id, reply.thread_id)"
        " <> (asked.agent_id, asked.user_id, asked.thread_id)"
    ):
        yield Finding(REPLY_ELSEWHERE, str(pk))


def _held_without_question() -> QuerySet[PendingReply]:
    """Return messages that wait for a person in no escalation, or for calls without a question."""
    same_thread = {
        name: OuterRef(f"message__{name}") for name in ("agent_id", "user_id", "thread_id")
    }
    is_escalated = Exists(Escalation.objects.open().to_people().filter(**same_thread))
    awaits_consent = Exists(ToolCall.objects.waiting().filter(message=OuterRef("message")))
    awaits_program = Exists(ToolCall.objects.with_program().filter(message=OuterRef("message")))
    return PendingReply.objects.filter(
        Q(held_for=HeldFor.PERSON) & ~is_escalated
        | Q(held_for=HeldFor.CONSENT) & ~awaits_consent
        | Q(held_for=HeldFor.PROGRAM) & ~awaits_program
    )


def release(findings: Sequence[Finding]) -> None:
    """Release held messages, so that they are answered."""
    for message in Message.objects.filter(pk__in=[finding.subject for finding in findings]):
        with transaction.atomic():
            queue.release(konstruct_message(message))


def enqueue(findings: Sequence[Finding]) -> None:
    """Enqueue lost messages."""
    for message in Message.objects.filter(Q(pk__in=[finding.subject for finding in findings])):
        queue.enqueue(message)


def remove_jobs(findings: Sequence[Finding]) -> None:
    """Delete the jobs of answered messages."""
    PendingReply.objects.filter(pk__in=[finding.subject for finding in findings]).delete()


REPAIRS = {LOST: enqueue, ANSWERED_AND_FAILED: remove_jobs, HELD_WITHOUT_QUESTION: release}
