"""Replies: their queue and status, their text while it is written, and hooks of channels.

Each accepted message has a job until its reply is delivered. A message with a held reply waits for
a person or a program, and no worker answers it. Functions that take a message notify its channel of
the change in the caller's transaction, and requests that wait for the reply after the commit.

Text that the language model writes is in a Redis stream for each watched message, and the complete
reply in the transcript. An entry has a piece of the text of one attempt; a new attempt restarts the
text. The number of an attempt is the token of its lease, so that a worker that has lost its lease
cannot add text. Without the cache, clients get the complete reply only. Requests that wait are
woken by pub/sub. A channel that pushes replies, such as Slack, has a hook.
"""

import logging
import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Any, Final, Protocol
from uuid import UUID

from django.conf import settings
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone
from django_redis import get_redis_connection
from redis.exceptions import RedisError

from konstruct.llm.completions import LLMRefused
from konstruct.orchestrator import exceptions
from konstruct.orchestrator.messages import KonstructMessage, Thread
from konstruct.orchestrator.models import HeldFor, PendingReply
from memory.conf import IMPORT_CHANNEL
from memory.conversations import window_store
from memory.models import Message, Role, recall
from tenants import redis_keys, transaction
from tenants.jobs import JobKind
from tenants.outbox import events, models

logger = logging.getLogger(__name__)

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
    events.record_event(models.EventType.MESSAGE_CLOSED, message.id, about=message)
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
    if is_last:
        events.record_event(models.EventType.MESSAGE_FAILED, message.id, about=message)
    if is_last and retry_after:
        jobs.update(due_at=Now() + timedelta(seconds=retry_after))
    return is_last


def retry(message_id: UUID) -> None:
    """Enqueue a failed reply again.

    Raises:
        NothingToRetry: the reply has not failed.
    """
    if not REPLIES.retry(message_id):
        raise exceptions.NothingToRetry(
            f"The reply to message {message_id} was not given up: it is delivered or still tried."
        )


def announce_change(message: KonstructMessage) -> None:
    """Notify the message's channel; after the commit also the requests that wait for the reply."""
    notify_changed(message)
    transaction.on_commit(partial(announce, message.tenant_id, message.id))


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
        .annotate(is_indexed=recall.is_indexed())
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
    """Return the ids of those messages for which a request does not wait any longer, in one query.

    They are answered, failed, closed, held for consent or a program, or deleted. A request waits
    for a person's answer too, but a completion does not: its program would time out.
    """
    is_completion = Q(message__channel=COMPLETIONS)
    waits = Q(held_for=HeldFor.NOT_HELD) | Q(held_for=HeldFor.PERSON) & ~is_completion
    queued = PendingReply.objects.filter(waits, pk__in=message_ids, failed_at__isnull=True)
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


# --- Requests that wait, and channels -------------------------------------------------------------


@dataclass(frozen=True)
class DeferredResponse:
    """The wait of a response, as the response's attribute `deferred`.

    The web process waits in its event loop and then calls `finish` in a thread. It enters the
    tenant and updates the response.
    """

    tenant_id: UUID
    message_id: UUID
    """It waits until this message is settled."""
    seconds: float
    finish: Callable[[], None]
    is_ready: Callable[[], bool] | None = None
    """If given, it waits until this is true, whether the message is settled or not."""


@dataclass(frozen=True)
class StreamingResponse:
    """A body that is sent while a message waits for its reply, as a response's attribute `stream`.

    The web process sends it from its event loop; it calls only `end` in a thread.
    """

    tenant_id: UUID
    message_id: UUID
    seconds: float
    opening: bytes
    """Sent immediately."""
    piece: Callable[[str], bytes]
    """Makes the event of some text."""
    end: Callable[[str], bytes]
    """Makes the end of the body after the wait, from the text that was sent."""
    overloaded: bytes
    """Sent instead of the end if no thread is free."""
    refused: bytes
    """Sent instead of the rest, if the caller's key or session is not valid any more."""


@dataclass(frozen=True)
class RepeatedResponse:
    """A body that gets new parts while it is open, as a response's attribute `repeated`."""

    seconds: float
    read: Callable[[], bytes]
    """Returns what is new since the last call, or b""."""
    refused: bytes
    """Sent instead of the rest, if the caller's key or session is not valid any more."""


def announce(tenant_id: UUID, message_id: UUID) -> None:
    """Wake the requests that wait for the reply to this message."""
    try:
        get_redis_connection().publish(redis_keys.partial_reply_key(tenant_id, message_id), SETTLED)
    except RedisError as error:
        logger.warning(
            "Reply to %s was not announced (%s): it will be seen late.", message_id, error
        )


class Hook(Protocol):
    """The hook of a channel."""

    def on_change(self, message: KonstructMessage) -> None:
        """Enqueue the delivery of the message's current state; send nothing here.

        Called in the transaction of the change: the message is answered, failed, retried, held or
        released.
        """
        ...

    def on_partial_reply(self, message: KonstructMessage) -> None:
        """Show the text of the reply that the language model has written so far."""
        ...

    def on_person_message(self, turn: Message, *, after: KonstructMessage) -> None:
        """Enqueue the delivery of a person's message that is not a reply; send nothing here.

        Called in the transaction that stores the message.

        Args:
            turn: the person's message.
            after: the user's last message of the thread. The message is shown in the same place.
        """
        ...


_hooks: dict[str, Hook] = {}


def register(channel: str, hook: Hook, *, shares_threads: bool = False) -> None:
    """Register the hook for messages of this channel. Call it when the app is ready.

    Args:
        channel: the name of the channel.
        hook: the hook.
        shares_threads: whether all participants of a thread read all its messages. Then the agent
            reads them too.

    Raises:
        ValueError: the channel has another hook already.
    """
    existing = _hooks.setdefault(channel, hook)
    if existing is not hook:
        raise ValueError(f"channel {channel!r} has a hook already: {existing!r}")
    if shares_threads:
        window_store.register_shared_channel(channel)


def notify_changed(message: KonstructMessage) -> None:
    """Call `on_change` of the message's channel, if it has a hook."""
    hook = _hooks.get(message.channel)
    if hook is not None:
        hook.on_change(message)


def partial_reply_callback(message: KonstructMessage) -> Callable[[], None] | None:
    """Return the function to call while the reply is written; None if the channel has no hook."""
    hook = _hooks.get(message.channel)
    return None if hook is None else partial(hook.on_partial_reply, message)


def notify_person_message(turn: Message, *, after: KonstructMessage) -> None:
    """Call `on_person_message` of the thread's channel, if it has a hook."""
    hook = _hooks.get(after.channel)
    if hook is not None:
        hook.on_person_message(turn, after=after)


# --- Text while it is written ---------------------------------------------------------------------

# Time to live of a stream after its last entry.
TTL_SECONDS: Final = 600
# The same after the reply is complete, for clients that still read the stream.
COMPLETE_TTL_SECONDS: Final = 30
# The pause between two entries of a stream: MIN_PAUSE_SECONDS, or PAUSE_SECONDS_PER_STREAM for each
# stream of this process if that is longer. So 100 streams get 250 entries a second together.
MIN_PAUSE_SECONDS: Final = 0.1
PAUSE_SECONDS_PER_STREAM: Final = 0.004
# The pause between two calls of `on_progress`.
PROGRESS_SECONDS: Final = 1.5
# The channels of all messages. What is published is SETTLED, or "" for new text.
ANNOUNCEMENTS: Final = redis_keys.any_partial_reply_pattern()
SETTLED: Final = b"settled"

_ATTEMPT, _TEXT, _FAILED = b"attempt", b"text", b"broken"

# Adds an entry, and announces it. An attempt begins after every earlier one, and continues while
# the last entry is its own: then no later attempt has begun, and the stream was not erased.
_WRITE: Final = """
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
local attempt, begins = tonumber(ARGV[1]), ARGV[2] == '1'
local latest = nil
if last[1] then
  for i = 1, #last[1][2], 2 do
    if last[1][2][i] == 'attempt' then latest = tonumber(last[1][2][i + 1]) or 0 end
  end
end
if begins and latest and latest > attempt then return 0 end
if not begins and latest ~= attempt then return 0 end
local entry = {'attempt', ARGV[1], 'text', ARGV[3]}
if ARGV[4] == '1' then entry[5], entry[6] = 'broken', '1' end
redis.call('XADD', KEYS[1], '*', unpack(entry))
redis.call('EXPIRE', KEYS[1], ARGV[5])
redis.call('PUBLISH', KEYS[1], '')
return 1
"""

# Id of an entry of a stream: milliseconds and a number. Later ids are greater.
EntryId = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ReplyChunk:
    """Some text of one attempt at a reply."""

    entry_id: EntryId
    attempt: bytes
    text: str
    is_failed: bool
    """Whether the attempt has failed: its text does not count."""


def watch(tenant_id: UUID, message_id: UUID) -> None:
    """Make workers stream the reply to a message. Call it before the message is enqueued."""
    key = redis_keys.partial_reply_key(tenant_id, message_id)
    try:
        pipe = get_redis_connection().pipeline(transaction=False)
        pipe.xadd(key, {_ATTEMPT: b"", _TEXT: b""})
        pipe.expire(key, TTL_SECONDS)
        pipe.execute()
    except RedisError as error:
        logger.warning("The reply to %s will not be streamed: %s", message_id, error)


@contextmanager
def stream_reply(
    tenant_id: UUID, message_id: UUID, attempt: int, on_progress: Callable[[], None] | None = None
) -> Iterator[Callable[[str], None] | None]:
    """Stream the text of a reply that is written in the block, if a client watches it.

    If the block raises, the text of this attempt is marked as failed.

    Args:
        tenant_id: the tenant.
        message_id: the message of the user.
        attempt: the token of the reply's lease.
        on_progress: called after new text, at most every PROGRESS_SECONDS, for a channel that
            shows the text.

    Yields:
        A function to call with each piece of the text; None if no client watches.
    """
    key = redis_keys.partial_reply_key(tenant_id, message_id)
    try:
        is_watched = on_progress is not None or bool(get_redis_connection().exists(key))
    except RedisError:
        is_watched = False
    if not is_watched:
        yield None
        return
    stream = _Stream(key, attempt, on_progress)
    try:
        yield stream.add
    except BaseException:
        stream.end(is_failed=True)
        raise
    stream.end(is_failed=False)


def text_so_far(tenant_id: UUID, message_id: UUID) -> str:
    """Return the text of the latest attempt at a reply; "" if there is none."""
    try:
        entries = get_redis_connection().xrange(redis_keys.partial_reply_key(tenant_id, message_id))
    except RedisError:
        return ""
    attempt, pieces = b"", list[str]()
    for chunk in (_chunk(name, entry) for name, entry in entries):
        if chunk.attempt != attempt or chunk.is_failed:
            attempt = chunk.attempt
            pieces.clear()
        if not chunk.is_failed:
            pieces.append(chunk.text)
    return "".join(pieces)


def read_chunks(streams: Iterable[Any]) -> Iterator[tuple[str, list[ReplyChunk]]]:
    """Yield the key of each stream of an XREAD result, with its chunks."""
    for key, entries in streams:
        yield key.decode(), [_chunk(name, entry) for name, entry in entries]


def _chunk(name: bytes, entry: Mapping[bytes, bytes]) -> ReplyChunk:
    milliseconds, _, number = name.partition(b"-")
    entry_id = int(milliseconds), int(number)
    text = entry.get(_TEXT, b"").decode()
    return ReplyChunk(entry_id, entry.get(_ATTEMPT, b""), text, is_failed=_FAILED in entry)


def announced_message(channel: bytes) -> tuple[UUID, UUID] | None:
    """Return the tenant and the message of an announcement; None for another channel."""
    try:
        return redis_keys.tenant_and_partial_reply(channel.decode())
    except ValueError:
        return None


# The streams that this process writes now.
_open_streams: "set[_Stream]" = set()


class _Stream:
    """Writes the text of one attempt."""

    def __init__(self, key: str, attempt: int, on_progress: Callable[[], None] | None) -> None:
        self._key = key
        self._attempt = attempt
        self._on_progress = on_progress
        self._progress_at = time.monotonic()
        self._pieces: list[str] = []
        self._written_at = float("-inf")
        self._has_text = False
        self._write_script = get_redis_connection().register_script(_WRITE)
        self._has_stream = self._write("", begins=True)
        _open_streams.add(self)

    def add(self, text: str) -> None:
        """Add text. It is written now, or with later text if the pause is not over."""
        self._pieces.append(text)
        pause = max(MIN_PAUSE_SECONDS, PAUSE_SECONDS_PER_STREAM * len(_open_streams))
        if time.monotonic() - self._written_at >= pause:
            self._flush()
        if self._on_progress and time.monotonic() - self._progress_at >= PROGRESS_SECONDS:
            self._on_progress()
            self._progress_at = time.monotonic()

    def end(self, *, is_failed: bool) -> None:
        """Write the rest of the text, or mark all text of the attempt as failed."""
        _open_streams.discard(self)
        if not is_failed:
            self._flush(ttl_seconds=COMPLETE_TTL_SECONDS)
        elif self._has_text:
            self._write("", is_failed=True)

    def _flush(self, ttl_seconds: int = TTL_SECONDS) -> None:
        text = "".join(self._pieces)
        self._pieces.clear()
        self._written_at = time.monotonic()
        self._has_text = True
        if self._has_stream:
            self._has_stream = self._write(text, ttl_seconds=ttl_seconds)

    def _write(
        self,
        text: str,
        *,
        begins: bool = False,
        is_failed: bool = False,
        ttl_seconds: int = TTL_SECONDS,
    ) -> bool:
        """Write an entry; return False if the stream is deleted, or a later attempt's."""
        values = [self._attempt, int(begins), text.encode(), int(is_failed), ttl_seconds]
        try:
            return bool(self._write_script(keys=[self._key], args=values))
        except RedisError as error:
            logger.debug("Some text of a reply was not streamed: %s", error)
            return True
