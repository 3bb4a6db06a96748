"""The queue of replies: each accepted message has a job until its reply is delivered.

A message with a held reply waits for a person or a program, and no worker answers it. Functions
that take a message notify its channel of the change in the caller's transaction, and requests that
wait for the reply after the commit.
"""

import math
from datetime import timedelta
from functools import partial
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db.models.functions import Now
from django.utils import timezone

from konstruct.llm.exceptions import LLMRefused
from konstruct.orchestrator.exceptions import NothingToRetry
from konstruct.orchestrator.messages import KonstructMessage
from konstruct.orchestrator.models import HeldFor, PendingReply
from konstruct.orchestrator.replies import delivery_hooks, reply_wait
from memory.models import Message
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
    # Given by name: the task imports the pipeline, which imports this module.
    task="konstruct.orchestrator.tasks.handle_message",
    queue="replies",
    max_attempts=6,  # pauses double from two seconds: a minute for a language model to come back
    first_backoff=2.0,
    max_backoff=3600.0,
    is_final=lambda error: isinstance(error, LLMRefused) or getattr(error, "is_too_late", False),
)


def enqueue(message: Message) -> None:
    """Enqueue the reply to a message, in the transaction that records the message."""
    REPLIES.enqueue(message.id)
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
    delivery_hooks.notify_changed(message)
    transaction.on_commit(partial(reply_wait.announce, message.tenant_id, message.id))
