"""How a reply reaches its readers: streamed text, announcements for requests that wait, and hooks.

Text that the language model writes is in a Redis stream for each watched message, and the complete
reply in the transcript. An entry has a piece of the text of one attempt; a new attempt restarts the
text. The number of an attempt is the token of its lease, so that a worker that has lost its lease
cannot add text. Without the cache, clients get the complete reply only. Requests that wait are
woken by pub/sub. A channel that pushes replies, such as Slack, has a hook.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol
from uuid import UUID

from django_redis import get_redis_connection
from redis.exceptions import RedisError

from konstruct.orchestrator.messages import KonstructMessage
from memory.conversations import thread_window
from memory.models import Message
from tenants.redis_keys import (
    any_partial_reply_pattern,
    any_reply_channel_pattern,
    partial_reply_key,
    reply_channel_key,
    tenant_and_message,
    tenant_and_partial_reply,
)

logger = logging.getLogger(__name__)

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
CHUNK_CHANNELS: Final = any_partial_reply_pattern()

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
    key = partial_reply_key(tenant_id, message_id)
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
    key = partial_reply_key(tenant_id, message_id)
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
        entries = get_redis_connection().xrange(partial_reply_key(tenant_id, message_id))
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


def message_of_chunk(channel: bytes) -> tuple[UUID, UUID] | None:
    """Return the tenant and the message of a chunk's announcement; None for another channel."""
    try:
        return tenant_and_partial_reply(channel.decode())
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


ANNOUNCEMENTS_PATTERN = any_reply_channel_pattern()


@dataclass(frozen=True)
class DeferredResponse:
    """The wait of a response for a message, as the response's attribute `deferred`.

    The web process waits in its event loop and then calls `finish` in a thread. It enters the
    tenant and updates the response.
    """

    tenant_id: UUID
    message_id: UUID
    seconds: float
    finish: Callable[[], None]


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


def announce(tenant_id: UUID, message_id: UUID) -> None:
    """Wake the requests that wait for the reply to this message."""
    try:
        get_redis_connection().publish(reply_channel_key(tenant_id, message_id), b"")
    except RedisError as error:
        logger.warning(
            "Reply to %s was not announced (%s): it will be seen late.", message_id, error
        )


def announced_message(channel: bytes) -> tuple[UUID, UUID] | None:
    """Return the tenant and the message of an announcement; None for other channels."""
    try:
        return tenant_and_message(channel.decode())
    except ValueError:
        return None


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
        thread_window.register_shared_channel(channel)


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
