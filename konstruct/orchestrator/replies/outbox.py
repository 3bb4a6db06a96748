"""The outbox of replies: every accepted message stands here until its reply is delivered."""

from datetime import timedelta
from uuid import UUID

from django.conf import settings

from konstruct.llm.exceptions import LLMRefused
from konstruct.orchestrator.exceptions import NothingToRetry
from konstruct.orchestrator.models import HeldFor, PendingReply
from memory.models import Message
from tenants.outbox import Kind

# What programs are told of a message that was closed without a reply of its own.
CLOSED = "closed"

REPLIES = Kind(
    name="reply",
    # Named, for the task is above: it imports the pipeline.
    task="konstruct.orchestrator.tasks.handle_message",
    queue="replies",
    most_attempts=lambda: settings.REPLY_MAX_ATTEMPTS,
    first_backoff=2.0,
    longest_backoff=3600.0,
    is_final=lambda error: isinstance(error, LLMRefused),
)
begin = REPLIES.begin
finish = REPLIES.finish
look_again = REPLIES.look_again
record_failure = REPLIES.record_failure
take_back = REPLIES.take_back
take_back_if_stopping = REPLIES.take_back_if_stopping


def put(message: Message) -> None:
    """Let the message wait for its reply. Call it in the transaction that records the message."""
    REPLIES.put(message.id)
    PendingReply(message=message)  # the message knows it now, so that nobody need ask


def hold(message_id: UUID, held_for: HeldFor) -> bool:
    """Keep workers from the message until it is released; False if it does not wait for its reply.

    Where the user's consent, or a program's result, does not come in time, a worker sees to it.
    """
    for_calls = held_for in (HeldFor.CONSENT, HeldFor.PROGRAM)
    at_most = timedelta(seconds=settings.TOOL_CONSENT_SECONDS) if for_calls else None
    return REPLIES.hold(message_id, held_for, at_most=at_most)


def release(message_id: UUID) -> bool:
    """Give a held message to the workers; False if it is not held. Call it in a transaction."""
    return REPLIES.release(message_id)


def close(message_id: UUID, reason: str) -> None:
    """Give a message up that needs no reply of its own any more, for a reason that stays."""
    REPLIES.give_up(message_id, code=CLOSED, reason=reason)


def retry(message_id: UUID) -> None:
    """Let a reply that was given up be tried again, as if for the first time.

    Raises NothingToRetry if it was not given up.
    """
    if not REPLIES.retry(message_id):
        raise NothingToRetry(
            f"The reply to message {message_id} was not given up: it is delivered or still tried."
        )
