"""The text of a reply while it is written, in the cache, for clients that watch it.

The complete reply is in the transcript. Each watched message has a stream in the cache; an entry
has some text of one attempt at the reply, and a new attempt restarts the text. The number of an
attempt is the token of its lease: a worker that has lost its lease adds nothing to the stream of
its successor. Without the cache, clients get the complete reply only.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django_redis import get_redis_connection
from redis.exceptions import RedisError

from tenants.redis_keys import (
    any_partial_reply_pattern,
    partial_reply_key,
    tenant_and_partial_reply,
)

logger = logging.getLogger(__name__)

# Time to live of a stream after its last entry.
KEPT_SECONDS: Final = 600
# The same after the reply is complete, for clients that still read the stream.
READ_SECONDS: Final = 30
# The first text is written immediately, further text at most this often, and less often with each
# reply that this process streams: 100 streams are written 250 times a second together.
PAUSE_SECONDS: Final = 0.1
PAUSE_SECONDS_EACH: Final = 0.004
# A channel that shows the text is called this often.
FOLLOW_SECONDS: Final = 1.5
CHUNK_CHANNELS: Final = any_partial_reply_pattern()

_ATTEMPT, _TEXT, _BROKEN = b"attempt", b"text", b"broken"

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

# Id of an entry in its stream: later ones are greater.
Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ReplyChunk:
    """Some text of one attempt at a reply."""

    place: Place
    attempt: bytes
    text: str
    broken: bool
    """Whether the attempt has failed: its text does not count."""


def watch(tenant_id: UUID, message_id: UUID) -> None:
    """Make workers stream the reply to a message. Call it before the message is enqueued."""
    key = partial_reply_key(tenant_id, message_id)
    try:
        pipe = get_redis_connection().pipeline(transaction=False)
        pipe.xadd(key, {_ATTEMPT: b"", _TEXT: b""})
        pipe.expire(key, KEPT_SECONDS)
        pipe.execute()
    except RedisError as error:
        logger.warning("The reply to %s will not be streamed: %s", message_id, error)


@contextmanager
def stream_reply(
    tenant_id: UUID, message_id: UUID, attempt: int, follow: Callable[[], None] | None = None
) -> Iterator[Callable[[str], None] | None]:
    """Stream the text of a reply that is written in the block, if a client watches it.

    A block that raises marks its text as broken.

    Args:
        tenant_id: the tenant.
        message_id: the message of the user.
        attempt: the token of the reply's lease.
        follow: called every FOLLOW_SECONDS after new text, for a channel that shows it.

    Yields:
        A function to call with each piece of the text; None if no client watches.
    """
    key = partial_reply_key(tenant_id, message_id)
    try:
        is_watched = follow is not None or bool(get_redis_connection().exists(key))
    except RedisError:
        is_watched = False
    if not is_watched:
        yield None
        return
    stream = _Stream(key, attempt, follow)
    try:
        yield stream.add
    except BaseException:
        stream.end(broken=True)
        raise
    stream.end(broken=False)


def text_so_far(tenant_id: UUID, message_id: UUID) -> str:
    """Return the text of the latest attempt at a reply; "" if there is none."""
    try:
        entries = get_redis_connection().xrange(partial_reply_key(tenant_id, message_id))
    except RedisError:
        return ""
    attempt, pieces = b"", list[str]()
    for chunk in (_chunk(name, entry) for name, entry in entries):
        if chunk.attempt != attempt or chunk.broken:
            attempt = chunk.attempt
            pieces.clear()
        if not chunk.broken:
            pieces.append(chunk.text)
    return "".join(pieces)


def read_chunks(found: Iterable[Any]) -> Iterator[tuple[str, list[ReplyChunk]]]:
    """Read the result of XREAD: the key of each stream, and its chunks."""
    for key, entries in found:
        yield key.decode(), [_chunk(name, entry) for name, entry in entries]


def _chunk(name: bytes, entry: Mapping[bytes, bytes]) -> ReplyChunk:
    milliseconds, _, number = name.partition(b"-")
    place = int(milliseconds), int(number)
    text = entry.get(_TEXT, b"").decode()
    return ReplyChunk(place, entry.get(_ATTEMPT, b""), text, broken=_BROKEN in entry)


def message_of_chunk(channel: bytes) -> tuple[UUID, UUID] | None:
    """Return the tenant and the message of a chunk's announcement; None for another channel."""
    try:
        return tenant_and_partial_reply(channel.decode())
    except ValueError:
        return None


# Streams of this process with a growing reply.
_open: "set[_Stream]" = set()


class _Stream:
    """Writes the text of one attempt."""

    def __init__(self, key: str, attempt: int, follow: Callable[[], None] | None) -> None:
        self._key = key
        self._attempt = attempt
        self._follow = follow
        self._followed_at = time.monotonic()
        self._pieces: list[str] = []
        self._written_at = float("-inf")
        self._has_text = False
        self._write_script = get_redis_connection().register_script(_WRITE)
        self._is_ours = self._write("", begins=True)
        _open.add(self)

    def add(self, text: str) -> None:
        """Write some more of the text, now or within PAUSE_SECONDS."""
        self._pieces.append(text)
        pause = max(PAUSE_SECONDS, PAUSE_SECONDS_EACH * len(_open))
        if time.monotonic() - self._written_at >= pause:
            self._flush()
        if self._follow is not None and time.monotonic() - self._followed_at >= FOLLOW_SECONDS:
            self._follow()
            self._followed_at = time.monotonic()

    def end(self, *, broken: bool) -> None:
        """Write the rest of the text, or mark all of it as broken."""
        _open.discard(self)
        if not broken:
            self._flush(kept_seconds=READ_SECONDS)
        elif self._has_text:
            self._write("", broken=True)

    def _flush(self, kept_seconds: int = KEPT_SECONDS) -> None:
        text = "".join(self._pieces)
        self._pieces.clear()
        self._written_at = time.monotonic()
        self._has_text = True
        if self._is_ours:
            self._is_ours = self._write(text, kept_seconds=kept_seconds)

    def _write(
        self,
        text: str,
        *,
        begins: bool = False,
        broken: bool = False,
        kept_seconds: int = KEPT_SECONDS,
    ) -> bool:
        """Write an entry; return False if the stream is another attempt's, or gone."""
        values = [self._attempt, int(begins), text.encode(), int(broken), kept_seconds]
        try:
            return bool(self._write_script(keys=[self._key], args=values))
        except RedisError as error:
            logger.debug("Some text of a reply was not streamed: %s", error)
            return True
