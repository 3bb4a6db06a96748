"""The outbox of replies: every accepted message stands here until its reply is delivered."""

import logging
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import DurationField, ExpressionWrapper, F, Value
from django.db.models.functions import Greatest, Least, Now

from konstruct.orchestrator.exceptions import (
    LLMRefused,
    LLMUnavailable,
    NotHeld,
    NothingToRetry,
)
from konstruct.orchestrator.messages import KonstructMessage
from konstruct.orchestrator.models import HeldFor, PendingReply
from memory.models import Message
from tenants.exceptions import KonstructError, reason_of

logger = logging.getLogger(__name__)

# The bell's head start, and how soon the sweeper looks again at work that somebody began.
GRACE = timedelta(seconds=5)
# An old message that waits in a long queue is not rung for every five seconds.
LONGEST_GRACE = timedelta(minutes=5)
FIRST_BACKOFF_SECONDS = 2.0
LONGEST_BACKOFF_SECONDS = 3600.0


def put(message: Message) -> None:
    """Let the message wait for its reply. Call it in the transaction that records the message."""
    PendingReply.objects.create(message=message, ring_at=Now() + GRACE)


def oldest_ready(thread: KonstructMessage) -> UUID | None:
    """Return the oldest message of this one's thread that may be worked on now, if any.

    One that failed and waits for its next try is passed over: it must not hold up the thread.
    """
    return (
        PendingReply.objects.due()
        .in_thread(agent_id=thread.agent_id, user_id=thread.user_id, thread_id=thread.thread_id)
        .values_list("message_id", flat=True)
        .first()
    )


def begin(message_id: UUID) -> None:
    """Ask the sweeper to look again in a moment: by then it is done, or its worker was killed."""
    PendingReply.objects.filter(pk=message_id).update(ring_at=Now() + GRACE)


def finish(message_id: UUID) -> None:
    """Remove the message: its reply is delivered."""
    PendingReply.objects.filter(pk=message_id).delete()


def give_back(message_id: UUID, error: Exception) -> bool:
    """Note why the reply failed, and when to try again; True if it is given up instead.

    An error that cannot pass, or as many failures as REPLY_MAX_ATTEMPTS, end the trying. The row
    stays with its reason, for the admin, the API and `retry`.
    """
    with transaction.atomic():
        pending = PendingReply.objects.select_for_update().filter(pk=message_id).first()
        if pending is None:
            return False
        pending.attempts += 1
        pending.last_error = reason_of(error)
        if isinstance(error, LLMRefused) or pending.attempts >= settings.REPLY_MAX_ATTEMPTS:
            pending.failed_at = Now()
        else:
            pending.due_at = pending.ring_at = Now() + _backoff(pending.attempts, error)
        pending.save(update_fields=["attempts", "last_error", "failed_at", "due_at", "ring_at"])
    if pending.failed_at is None:
        logger.warning(
            "The reply to %s failed (attempt %s) and will be tried again: %s",
            message_id,
            pending.attempts,
            pending.last_error,
            exc_info=not isinstance(error, KonstructError),
        )
    else:
        logger.error(
            "The reply to %s was given up: %s",
            message_id,
            pending.last_error,
            exc_info=not isinstance(error, KonstructError),
        )
    return pending.failed_at is not None


def hold(message_id: UUID, held_for: HeldFor) -> None:
    """Let nobody work on the message until it is released. Call it in a transaction.

    Raises NotHeld if it does not wait for its reply.
    """
    waiting = PendingReply.objects.filter(pk=message_id, failed_at__isnull=True)
    if not waiting.update(held_for=held_for):
        raise NotHeld(f"Message {message_id} does not wait for its reply: it cannot be held.")


def release(message_id: UUID) -> None:
    """Let a held message be answered. Call it in a transaction, and ring after its commit.

    Raises NotHeld if it is not held.
    """
    held = PendingReply.objects.held().filter(pk=message_id)
    if not held.update(held_for=HeldFor.NOBODY, due_at=Now(), ring_at=Now() + GRACE):
        raise NotHeld(f"Message {message_id} is not held.")


def close(message_id: UUID, reason: str) -> None:
    """Give a message up that needs no reply of its own any more, for a reason that stays."""
    PendingReply.objects.filter(pk=message_id).update(
        held_for=HeldFor.NOBODY, failed_at=Now(), attempts=0, last_error=reason
    )


def retry(message_id: UUID) -> None:
    """Let a reply that was given up be tried again, as if for the first time.

    Raises NothingToRetry if it was not given up.
    """
    reset = (
        PendingReply.objects.failed()
        .filter(pk=message_id)
        .update(failed_at=None, attempts=0, due_at=Now(), ring_at=Now() + GRACE)
    )
    if not reset:
        raise NothingToRetry(
            f"The reply to message {message_id} was not given up: it is delivered or still tried."
        )


def take_unheard(limit: int) -> list[UUID]:
    """Return messages to ring for, the longest unheard first; other sweeps leave them for a while.

    The pause grows with the message's age, so that a long queue is not filled with its own echoes.
    """
    age = ExpressionWrapper(Now() - F("created_at"), output_field=DurationField())
    pause = Greatest(Value(GRACE), Least(age, Value(LONGEST_GRACE)), output_field=DurationField())
    with transaction.atomic():
        ids = list(
            PendingReply.objects.unheard()
            .select_for_update(skip_locked=True)
            .values_list("message_id", flat=True)[:limit]
        )
        PendingReply.objects.filter(pk__in=ids).update(ring_at=Now() + pause)
    return ids


def _backoff(attempts: int, error: Exception) -> timedelta:
    seconds = FIRST_BACKOFF_SECONDS * 2.0 ** (attempts - 1)
    if isinstance(error, LLMUnavailable) and error.retry_after:
        seconds = max(seconds, error.retry_after)
    return timedelta(seconds=min(seconds, LONGEST_BACKOFF_SECONDS))
