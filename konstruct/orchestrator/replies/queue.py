"""The queue of replies, and the status of a reply.

Each accepted message has a job until its reply is delivered.

A message with a held reply waits for a person or a program, and no worker answers it. Functions
that take a message notify its channel of the change in the caller's transaction, and requests that
wait for the reply after the commit.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from konstruct.llm.exceptions import LLMRefused
from konstruct.orchestrator.exceptions import NothingToRetry
from konstruct.orchestrator.messages import KonstructMessage, Thread
from konstruct.orchestrator.models import HeldFor, PendingReply
from konstruct.orchestrator.replies import delivery
from memory.conf import IMPORT_CHANNEL
from memory.models import Message, Role
from memory.models.conversations import is_indexed
from tenants import transaction
from tenants.jobs import JobKind

# The error code of a message that was closed without its own reply.
CLOSED = "closed"

# The channel of completions: a program waits for the reply in its request, LLM_TIMEOUT seconds.
COMPLETIONS: Final = "openai"

# How long a user may think about a tool call before it expires.
CONSENT_TIME: Final = timedelta(days=1)
REPLIES = JobKind(
    name="reply",
    # Given by name: it imports the pipeline, which imports this module.
    do="konstruct.orchestrator.tasks.answer_message",
    queue="replies",
    max_attempts=6,  # pauses double from two seconds: a minute for a language model to come back
    first_backoff=2.0,
    max_backoff=3600.0,
    is_final=lambda error: isinstance(error, LLMRefused) or getattr(error, "is_too_late", False),
)


def enqueue(message: Message) -> None:
    """Enqueue the reply to a message, in the transaction that records the message."""
    REPLIES.enqueue(message.id, lane=Thread.of(message).lane)
    PendingReply(message=message)  # sets message.pending_reply without a query


def hold(message: KonstructMessage, held_for: HeldFor) -> bool:
    """Keep workers from the message until it is released.

    A message that is held for consent or a program is released after CONSENT_TIME.

    Returns:
        False if the message does not wait for a reply, because it was answered or erased.
    """
    for_calls = held_for in (HeldFor.CONSENT, HeldFor.PROGRAM)
    max_time = CONSENT_TIME if for_calls else None
    is_held = REPLIES.hold(message.id, held_for, max_time=max_time)
    if is_held:
        announce_change(message)
    return is_held


def release(message: KonstructMessage) -> bool:
    """Enqueue a held message again; return False if it is not held."""
    is_released = REPLIES.release(message.id)
    if is_released:
        announce_change(message)
    return is_released


def close(message: KonstructMessage, reason: str) -> None:
    """Mark the reply as failed for good, because the message needs none any more."""
    REPLIES.give_up(message.id, code=CLOSED, reason=reason)
    announce_change(message)


def seconds_left(message: KonstructMessage) -> float:
    """Return the seconds in which the reply has to begin: endless except for completions."""
    if message.channel != COMPLETIONS or message.created_at is None:
        return math.inf
    return settings.LLM_TIMEOUT - (timezone.now() - message.created_at).total_seconds()


def record_failure(message: KonstructMessage, error: Exception) -> bool:
    """Record a failed attempt, and return whether it was the last one.

    A completion has no attempt that would begin more than LLM_TIMEOUT seconds after its message was
    accepted. Its program reads in `due_at` when the language model takes requests again.
    """
    jobs, retry_after = REPLIES.jobs([message.id]), getattr(error, "retry_after", None) or 0.0
    if (left := seconds_left(message)) < math.inf and (job := jobs.first()) is not None:
        pause = max(retry_after, REPLIES.first_backoff * 2.0 ** (job.attempts - 1))
        error.is_too_late = pause > left  # type: ignore[attr-defined]
    is_last = REPLIES.record_failure(message.id, error)
    if is_last and retry_after:
        jobs.update(due_at=Now() + timedelta(seconds=retry_after))
    return is_last


def retry(message_id: UUID) -> None:
    """Enqueue a failed reply again.

    Raises:
        NothingToRetry: the reply has not failed.
    """
    if not REPLIES.retry(message_id):
        raise NothingToRetry(
            f"The reply to message {message_id} was not given up: it is delivered or still tried."
        )


def announce_change(message: KonstructMessage) -> None:
    """Notify the message's channel; after the commit also the requests that wait for the reply."""
    delivery.notify_changed(message)
    transaction.on_commit(partial(delivery.announce, message.tenant_id, message.id))


# --- Status ---------------------------------------------------------------------------------------


class Status(StrEnum):
    """The public status."""

    QUEUED = "queued"
    ANSWERED = "answered"
    FAILED = "failed"
    CLOSED = "closed"
    WITH_PERSON = "with_person"
    AWAITING_CONSENT = "awaiting_consent"
    WITH_PROGRAM = "with_program"


STATUS_BY_HELD_FOR = {
    HeldFor.PERSON: Status.WITH_PERSON,
    HeldFor.CONSENT: Status.AWAITING_CONSENT,
    HeldFor.PROGRAM: Status.WITH_PROGRAM,
}
HELD_FOR_BY_STATUS = {status: held_for for held_for, status in STATUS_BY_HELD_FOR.items()}


@dataclass(frozen=True)
class MessageProgress:
    """A message's status, its delivered reply, and its last error."""

    status: Status
    reply: Message | None = None
    attempts: int = 0
    error_code: str = ""
    last_error: str = ""
    next_attempt_at: datetime | None = None
    due_at: datetime | None = None
    """The time before which another attempt would fail, or the time of the last attempt."""


def sent_messages() -> QuerySet[Message]:
    """Return all messages of users except imported ones, with what `progress_of` needs, and
    `is_indexed`."""
    needs_answer = Q(pending_reply__isnull=False) | Q(reply__isnull=False)
    return (
        Message.objects.filter(needs_answer, role=Role.USER)
        # With this condition, an index skips imported history, which is never answered.
        .exclude(channel=IMPORT_CHANNEL)
        .select_related("pending_reply", "reply")
        .annotate(is_indexed=is_indexed())
    )


def with_status(messages: QuerySet[Message], status: Status) -> QuerySet[Message]:
    """Return only messages with this status."""
    if status is Status.ANSWERED:
        return messages.filter(pending_reply__isnull=True)
    held_for = HELD_FOR_BY_STATUS.get(status, HeldFor.NOT_HELD)
    has_ended = status in (Status.FAILED, Status.CLOSED)
    messages = messages.filter(
        pending_reply__isnull=False,
        pending_reply__held_for=held_for,
        pending_reply__failed_at__isnull=not has_ended,
    )
    if not has_ended:
        return messages
    is_closed = Q(pending_reply__error_code=CLOSED)
    return messages.filter(is_closed if status is Status.CLOSED else ~is_closed)


def settled_messages(message_ids: Collection[UUID]) -> set[UUID]:
    """Return the ids of those messages that are not queued, in one query.

    They are answered, failed, closed, held or deleted.
    """
    queued = PendingReply.objects.filter(
        pk__in=message_ids, held_for=HeldFor.NOT_HELD, failed_at__isnull=True
    )
    return set(message_ids) - set(queued.values_list("pk", flat=True))


def progress_of(message: Message) -> MessageProgress:
    """Return the progress of a message of `sent_messages`.

    A stored reply counts as answered when its job is removed. Before, the window may lack it.
    """
    # Without a row, the reverse side of a one-to-one raises an AttributeError.
    pending: PendingReply | None = getattr(message, "pending_reply", None)
    if pending is None:
        return MessageProgress(Status.ANSWERED, reply=getattr(message, "reply", None))
    if pending.held_for:
        return MessageProgress(STATUS_BY_HELD_FOR[HeldFor(pending.held_for)])
    failed = pending.failed_at is not None
    ended = Status.CLOSED if pending.error_code == CLOSED else Status.FAILED
    return MessageProgress(
        ended if failed else Status.QUEUED,
        attempts=pending.attempts,
        error_code=pending.error_code,
        last_error=pending.last_error,
        next_attempt_at=pending.due_at if pending.attempts and not failed else None,
        due_at=pending.due_at,
    )
