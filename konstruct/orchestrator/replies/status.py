"""The status of a message's reply."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from django.db.models import Q, QuerySet

from konstruct.orchestrator.models import HeldFor, PendingReply
from konstruct.orchestrator.replies.queue import CLOSED
from memory.conf import IMPORT_CHANNEL
from memory.models import Message, Role
from memory.models.conversations import is_indexed


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
