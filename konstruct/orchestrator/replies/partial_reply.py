"""A reply's text while it is written: told by the worker in the cache, to whoever watches.

It is never the truth: a reply is what the transcript has of it. Each message that is watched has a
stream in the cache, of which an entry is some text of one attempt at the reply. A new attempt
begins the text anew. Without the cache nothing is told, and the reply comes whole.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID, uuid4

from django_redis import get_redis_connection
from redis.exceptions import RedisError

from tenants.redis_keys import (
    any_partial_reply_pattern,
    partial_reply_key,
    tenant_and_partial_reply,
)

logger = logging.getLogger(__name__)

# A message that nobody watches any more, or whose worker was killed, leaves its text for so long.
KEPT_SECONDS: Final = 600
# After the reply is there, for those who are still reading.
READ_SECONDS: Final = 30
# Text is told at once, and then at most so often.
PAUSE_SECONDS: Final = 0.05
# A channel that shows the text is told of it so often.
FOLLOW_SECONDS: Final = 1.5
EVERY_TEXT: Final = any_partial_reply_pattern()

_ATTEMPT, _TEXT, _BROKEN = b"attempt", b"text", b"broken"


# Of an entry in its stream: later ones are greater.
Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Told:
    """Some text of one attempt at a reply; `broken` says that the attempt has come to nothing."""

    place: Place
    attempt: bytes
    text: str
    broken: bool


def watch(tenant_id: UUID, message_id: UUID) -> None:
    """Let the worker tell the text of this message's reply. To be called before it has begun."""
    key = partial_reply_key(tenant_id, message_id)
    try:
        pipe = get_redis_connection().pipeline(transaction=False)
        pipe.xadd(key, {_ATTEMPT: b"", _TEXT: b""})
        pipe.expire(key, KEPT_SECONDS)
        pipe.execute()
    except RedisError as error:
        logger.warning("The reply to %s will not be told as it comes: %s", message_id, error)


@contextmanager
def telling(
    tenant_id: UUID, message_id: UUID, follow: Callable[[], None] | None = None
) -> Iterator[Callable[[str], None] | None]:
    """Tell the text of a reply that is written in the block, if anybody watches.

    Yields what is to be called with each piece of it; None if nobody watches. A block that raises
    has told nothing: whoever has read of it is told that too.

    Args:
        follow: is called now and then after some text was told, for a channel that shows it.
    """
    key = partial_reply_key(tenant_id, message_id)
    try:
        is_watched = follow is not None or bool(get_redis_connection().exists(key))
    except RedisError:
        is_watched = False
    if not is_watched:
        yield None
        return
    teller = _Teller(key, follow)
    try:
        yield teller.say
    except BaseException:
        teller.end(broken=True)
        raise
    teller.end(broken=False)


def text_so_far(tenant_id: UUID, message_id: UUID) -> str:
    """Return what was told of the latest attempt at a reply; "" if there is nothing."""
    try:
        entries = get_redis_connection().xrange(partial_reply_key(tenant_id, message_id))
    except RedisError:
        return ""
    attempt, pieces = b"", list[str]()
    for told in (_told(name, entry) for name, entry in entries):
        if told.attempt != attempt or told.broken:
            attempt = told.attempt
            pieces.clear()
        if not told.broken:
            pieces.append(told.text)
    return "".join(pieces)


def read_new(found: Iterable[Any]) -> Iterator[tuple[str, list[Told]]]:
    """Read the answer of XREAD: the key of each stream, and what was told there."""
    for key, entries in found:
        yield key.decode(), [_told(name, entry) for name, entry in entries]


def _told(name: bytes, entry: Mapping[bytes, bytes]) -> Told:
    milliseconds, _, number = name.partition(b"-")
    place = int(milliseconds), int(number)
    text = entry.get(_TEXT, b"").decode()
    return Told(place, entry.get(_ATTEMPT, b""), text, broken=_BROKEN in entry)


def told_message(channel: bytes) -> tuple[UUID, UUID] | None:
    """The tenant and the message of whose reply some text was told; None if it is another's."""
    try:
        return tenant_and_partial_reply(channel.decode())
    except ValueError:
        return None


class _Teller:
    """Tells the text of one attempt. An attempt is announced before its text, and ends the last."""

    def __init__(self, key: str, follow: Callable[[], None] | None) -> None:
        self._key = key
        self._follow = follow
        self._followed_at = time.monotonic()
        self._attempt = uuid4().bytes
        self._pieces: list[str] = []
        self._told_at = float("-inf")
        self._has_told = False
        self._write()

    def say(self, text: str) -> None:
        """Tell some more of the text, soon."""
        self._pieces.append(text)
        if time.monotonic() - self._told_at >= PAUSE_SECONDS:
            self._flush()
        if self._follow is not None and time.monotonic() - self._followed_at >= FOLLOW_SECONDS:
            self._follow()
            self._followed_at = time.monotonic()

    def end(self, *, broken: bool) -> None:
        """Tell what is left; or that nothing of it counts."""
        if not broken:
            self._flush(kept_seconds=READ_SECONDS)
        elif self._has_told:
            self._write(extra={_BROKEN: b"1"})

    def _flush(self, kept_seconds: int = KEPT_SECONDS) -> None:
        text = "".join(self._pieces)
        self._pieces.clear()
        self._told_at = time.monotonic()
        self._has_told = True
        self._write(text, kept_seconds=kept_seconds)

    def _write(
        self,
        text: str = "",
        *,
        extra: Mapping[bytes, bytes] | None = None,
        kept_seconds: int = KEPT_SECONDS,
    ) -> None:
        entry: dict[Any, Any] = {_ATTEMPT: self._attempt, _TEXT: text.encode(), **(extra or {})}
        try:
            pipe = get_redis_connection().pipeline(transaction=False)
            pipe.xadd(self._key, entry)
            pipe.expire(self._key, kept_seconds)
            pipe.publish(self._key, b"")
            pipe.execute()
        except RedisError as error:
            logger.debug("Some text of a reply was not told: %s", error)
