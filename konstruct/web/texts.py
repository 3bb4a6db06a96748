"""Texts of replies while they are written, read from the cache for all who watch in this process.

Whoever writes announces it. What was announced of many messages is read by one command.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context
from typing import Final
from uuid import UUID

import redis.asyncio
from redis.exceptions import RedisError

from konstruct.orchestrator.replies.partial_reply import Place, Told, read_new
from tenants.redis_keys import partial_reply_key

logger = logging.getLogger(__name__)

# After the cache could not be read.
PAUSE_SECONDS: Final = 1.0
BEGINNING: Final[Place] = (0, 0)


class Watched:
    """The text of one reply, for one who watches it from its beginning."""

    def __init__(self) -> None:
        self.news = asyncio.Event()
        self.broken = False
        """Whether text was taken of an attempt that has come to nothing."""
        self.place = BEGINNING
        self._attempt = b""
        self._text: list[str] = []
        self._was_taken = False

    def take(self) -> str:
        """Return the text that has come since; "" if none has."""
        text = "".join(self._text)
        self._text.clear()
        self._was_taken = self._was_taken or bool(text)
        return text

    def hear(self, told: Iterable[Told]) -> None:
        """Note what was told since."""
        for each in told:
            if each.place <= self.place:
                continue
            self.place = each.place
            if each.attempt != self._attempt or each.broken:
                self.broken = self.broken or self._was_taken
                self._attempt = b"" if each.broken else each.attempt
                self._text.clear()
            if not each.broken:
                self._text.append(each.text)
            self.news.set()


class Texts:
    """Who watches which reply. Belongs to one event loop."""

    def __init__(self, cache_url: str) -> None:
        self._cache_url = cache_url
        self._watching: defaultdict[str, list[Watched]] = defaultdict(list)
        self._to_read: set[str] = set()
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def watch(self, tenant_id: UUID, message_id: UUID) -> Iterator[Watched]:
        """Watch the reply of a message for as long as the block lasts."""
        if self._task is None:
            # In an empty context: its log lines must not name the first one's request.
            self._task = asyncio.create_task(self._read(), context=Context())
        key, watched = partial_reply_key(tenant_id, message_id), Watched()
        self._watching[key].append(watched)
        self._look_at([key])
        try:
            yield watched
        finally:
            self._watching[key].remove(watched)
            if not self._watching[key]:
                del self._watching[key]

    def announced(self, tenant_id: UUID, message_id: UUID) -> None:
        """Read what is new of a reply, if anybody watches it."""
        key = partial_reply_key(tenant_id, message_id)
        if key in self._watching:
            self._look_at([key])

    def look_at_all(self) -> None:
        """Read what is new of every reply: announcements may have been lost."""
        self._look_at(self._watching)

    async def close(self) -> None:
        """Read no more."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def _look_at(self, keys: Iterable[str]) -> None:
        self._to_read.update(keys)
        self._news.set()

    async def _read(self) -> None:
        async with redis.asyncio.from_url(self._cache_url) as cache:
            # Ends: when the server cancels the task. It waits for news between two turns.
            while True:
                await self._news.wait()
                self._news.clear()
                keys, self._to_read = self._to_read & self._watching.keys(), set()
                if not keys:
                    continue
                try:
                    await self._read_from(cache, keys)
                except (RedisError, OSError) as error:
                    logger.warning("Replies are not told as they come: %s", error)
                    await asyncio.sleep(PAUSE_SECONDS)

    async def _read_from(self, cache: "redis.asyncio.Redis", keys: Iterable[str]) -> None:
        places = {key: min(each.place for each in self._watching[key]) for key in keys}
        found = await cache.xread({key: "{}-{}".format(*place) for key, place in places.items()})
        for key, told in read_new(found):
            for watched in self._watching.get(key, ()):
                watched.hear(told)
