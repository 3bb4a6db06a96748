"""The outbox of replies: every accepted message stands here until its reply is delivered."""

import logging
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import DurationField, ExpressionWrapper, F, OuterRef, Subquery, Value
from django.db.models.functions import Greatest, Least, Now

from konstruct.orchestrator.exceptions import (
    LLMRefused,
    LLMUnavailable,
    MessageNotFound,
    NotHeld,
    NothingToRetry,
)
from konstruct.orchestrator.messages import Thread
from konstruct.orchestrator.models import HeldFor, PendingReply
from konstruct.orchestrator.models.querysets import PendingReplyQuerySet
from memory.models import Message, Role
from tenants import attempts
from tenants.exceptions import KonstructError, code_of, detail_of, reason_of

logger = logging.getLogger(__name__)

# Named, for the task is above: it imports the pipeline.
HANDLE_MESSAGE = "konstruct.orchestrator.tasks.handle_message"

# The head start of an enqueued task, and how soon the sweeper looks again at begun work.
GRACE = timedelta(seconds=5)
# An old message that waits in a long queue is not enqueued every five seconds.
LONGEST_GRACE = timedelta(minutes=5)
# Of a message that is tried as if for the first time.
_ANEW = {
    "attempts": 0,
    "begun_at": None,
    "error_code": "",
    "last_error": "",
    "due_at": Now(),
    "sweep_at": Now() + GRACE,
}
# What programs are told of a message that was closed without a reply of its own.
CLOSED = "closed"
FIRST_BACKOFF_SECONDS = 2.0
LONGEST_BACKOFF_SECONDS = 3600.0


def put(message: Message) -> None:
    """Let the message wait for its reply. Call it in the transaction that records the message."""
    PendingReply.objects.create(message=message, sweep_at=Now() + GRACE)


def ready_in(thread: Thread) -> PendingReplyQuerySet:
    """Messages of the thread that may be worked on now, oldest first.

    One that failed and waits for its next try is passed over: it must not hold up the thread.
    """
    return PendingReply.objects.due().in_thread(**thread.named)  # type: ignore[arg-type]


def oldest_ready(thread: Thread) -> UUID | None:
    """Return the oldest message of the thread that may be worked on now, if any."""
    return ready_in(thread).values_list("message_id", flat=True).first()


def thread_of(message_id: UUID) -> tuple[Thread, UUID | None]:
    """Return the message's thread, and its oldest message that may be worked on now, if any.

    Raises MessageNotFound.
    """
    in_its_thread = PendingReply.objects.due().in_thread(
        agent_id=OuterRef("agent_id"), user_id=OuterRef("user_id"), thread_id=OuterRef("thread_id")
    )
    row = (
        Message.objects.filter(pk=message_id, role=Role.USER)
        .annotate(oldest_ready=Subquery(in_its_thread.values("message_id")[:1]))
        .only("agent_id", "user_id", "thread_id")
        .first()
    )
    if row is None:
        raise MessageNotFound(f"No user's message has the id {message_id}.")
    return Thread.of(row), row.oldest_ready


def begin(message_id: UUID) -> bool:
    """Count an attempt, before the work; False if nobody waits for the reply any more.

    The sweeper looks again in a moment: by then it is done, or its worker was killed. Raises
    WorkerLost if workers keep dying over it; see tenants/attempts.py.
    """
    rows = PendingReply.objects.filter(pk=message_id)
    return attempts.begin(rows, most=settings.REPLY_MAX_ATTEMPTS, sweep_at=Now() + GRACE)


def look_again(message_id: UUID) -> None:
    """Let the sweeper enqueue it in a moment, should its task be lost."""
    PendingReply.objects.filter(pk=message_id).update(sweep_at=Now() + GRACE)


def take_back(message_id: UUID) -> None:
    """Let the attempt that was begun not count: the message is another's to answer."""
    attempts.take_back(PendingReply.objects.filter(pk=message_id))


def take_back_if_stopping(message_id: UUID) -> None:
    """Let the attempt not count if this worker was told to end in the middle of it."""
    attempts.take_back_if_stopping(PendingReply.objects.filter(pk=message_id))


def finish(message_id: UUID) -> None:
    """Remove the message: its reply is delivered."""
    PendingReply.objects.filter(pk=message_id).delete()


def record_failure(message_id: UUID, error: Exception) -> bool:
    """Note why the attempt failed, and when to try again; True if it is given up instead.

    An error that cannot pass, or as many attempts as REPLY_MAX_ATTEMPTS, end the trying. The row
    stays with its reason, for the admin, the API and `retry`.
    """
    error = attempts.failure_of(error)
    with transaction.atomic():
        rows = PendingReply.objects.select_for_update().filter(pk=message_id)
        if rows.first() is None:
            return False
        attempts.end(PendingReply.objects.filter(pk=message_id))
        pending = rows.get()
        pending.error_code, pending.last_error = code_of(error), reason_of(error)
        if isinstance(error, LLMRefused) or pending.attempts >= settings.REPLY_MAX_ATTEMPTS:
            pending.failed_at = Now()
        else:
            pending.due_at = pending.sweep_at = Now() + _backoff(pending.attempts, error)
        pending.save(
            update_fields=[
                *("error_code", "last_error", "failed_at", "due_at", "sweep_at"),
            ]
        )
    if pending.failed_at is None:
        logger.warning(
            "The reply to %s failed (attempt %s) and will be tried again: %s",
            message_id,
            pending.attempts,
            detail_of(error),
            exc_info=not isinstance(error, KonstructError),
        )
    else:
        logger.error(
            "The reply to %s was given up: %s",
            message_id,
            detail_of(error),
            exc_info=not isinstance(error, KonstructError),
        )
    return pending.failed_at is not None


def hold(message_id: UUID, held_for: HeldFor) -> None:
    """Let nobody work on the message until it is released. Call it in a transaction.

    Raises NotHeld if it does not wait for its reply.
    """
    waiting = PendingReply.objects.filter(pk=message_id, failed_at__isnull=True)
    if not waiting.update(held_for=held_for, begun_at=None):
        raise NotHeld(f"Message {message_id} does not wait for its reply: it cannot be held.")


def release(message_id: UUID) -> None:
    """Let a held message be answered. Call it in a transaction, and enqueue it after the commit.

    Raises NotHeld if it is not held.
    """
    held = PendingReply.objects.held().filter(pk=message_id)
    if not held.update(**_ANEW, held_for=HeldFor.NOBODY):
        raise NotHeld(f"Message {message_id} is not held.")


def close(message_id: UUID, reason: str) -> None:
    """Give a message up that needs no reply of its own any more, for a reason that stays."""
    PendingReply.objects.filter(pk=message_id).update(
        held_for=HeldFor.NOBODY,
        failed_at=Now(),
        attempts=0,
        begun_at=None,
        error_code=CLOSED,
        last_error=reason,
    )


def retry(message_id: UUID) -> None:
    """Let a reply that was given up be tried again, as if for the first time.

    Raises NothingToRetry if it was not given up.
    """
    reset = PendingReply.objects.failed().filter(pk=message_id).update(**_ANEW, failed_at=None)
    if not reset:
        raise NothingToRetry(
            f"The reply to message {message_id} was not given up: it is delivered or still tried."
        )


def claim_stale(limit: int) -> list[UUID]:
    """Return messages to enqueue, the most overdue first; other sweeps leave them for a while.

    The pause grows with the message's age, so that a long queue is not filled with repeated tasks.
    """
    age = ExpressionWrapper(Now() - F("created_at"), output_field=DurationField())
    pause = Greatest(Value(GRACE), Least(age, Value(LONGEST_GRACE)), output_field=DurationField())
    with transaction.atomic():
        ids = list(
            PendingReply.objects.stale()
            .select_for_update(skip_locked=True)
            .values_list("message_id", flat=True)[:limit]
        )
        PendingReply.objects.filter(pk__in=ids).update(sweep_at=Now() + pause)
    return ids


def _backoff(attempt: int, error: Exception) -> timedelta:
    seconds = FIRST_BACKOFF_SECONDS * 2.0 ** (attempt - 1)
    if isinstance(error, LLMUnavailable) and error.retry_after:
        seconds = max(seconds, error.retry_after)
    return timedelta(seconds=min(seconds, LONGEST_BACKOFF_SECONDS))
