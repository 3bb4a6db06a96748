"""Waiting for replies in the event loop: for messages to be settled, and for texts being written.

One subscription of the cache serves all waiting requests, and one command reads the new texts of
all watched replies. Announcements may be lost with the cache: every POLL_SECONDS one query for each
tenant looks at all messages that requests wait for.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context
from typing import Final
from uuid import UUID

import redis.asyncio
from redis.exceptions import RedisError

from konstruct.orchestrator.replies.partial_reply import (
    CHUNK_CHANNELS,
    EntryId,
    ReplyChunk,
    message_of_chunk,
    read_chunks,
)
from konstruct.orchestrator.replies.reply_wait import (
    ANNOUNCEMENTS_PATTERN,
    StreamingResponse,
    announced_message,
)
from konstruct.web.pool import Overloaded
from tenants.redis_keys import partial_reply_key

logger = logging.getLogger(__name__)

POLL_SECONDS = 2.0
RECONNECT_SECONDS = 1.0
# A silent connection to the cache is checked after this time.
PING_SECONDS = 15
# The pause after a failed read of texts.
PAUSE_SECONDS: Final = 1.0
# A comment of server-sent events, so that no proxy closes a silent connection.
KEEP_ALIVE: Final = b": waiting\n\n"
KEEP_ALIVE_SECONDS: Final = 10.0
BEGINNING: Final[EntryId] = (0, 0)

Key = tuple[UUID, UUID]
Look = Callable[[UUID, Collection[UUID]], Awaitable[Collection[UUID]]]


class Watched:
    """The text of one reply, for one watcher."""

    def __init__(self) -> None:
        self.news = asyncio.Event()
        self.broken = False
        """Whether text was taken from a failed attempt."""
        self.place = BEGINNING
        self._attempt = b""
        self._text: list[str] = []
        self._was_taken = False

    def take(self) -> str:
        """Return the new text, or ""."""
        text = "".join(self._text)
        self._text.clear()
        self._was_taken = self._was_taken or bool(text)
        return text

    def add(self, entries: Iterable[ReplyChunk]) -> None:
        """Add new entries."""
        for each in entries:
            if each.entry_id <= self.place:
                continue
            self.place = each.entry_id
            if each.attempt != self._attempt or each.is_failed:
                self.broken = self.broken or self._was_taken
                self._attempt = b"" if each.is_failed else each.attempt
                self._text.clear()
            if not each.is_failed:
                self._text.append(each.text)
            self.news.set()


class Texts:
    """The watched replies. Use it in one event loop."""

    def __init__(self, cache_url: str) -> None:
        self._cache_url = cache_url
        self._watching: defaultdict[str, list[Watched]] = defaultdict(list)
        self._to_read: set[str] = set()
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def watch(self, tenant_id: UUID, message_id: UUID) -> Iterator[Watched]:
        """Watch the reply of a message inside the block."""
        if self._task is None:
            # In an empty context: its log lines must not name the first request.
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
        """Read the new text of a reply, if it is watched."""
        key = partial_reply_key(tenant_id, message_id)
        if key in self._watching:
            self._look_at([key])

    def look_at_all(self) -> None:
        """Read the new text of every watched reply: announcements may have been lost."""
        self._look_at(self._watching)

    async def close(self) -> None:
        """Stop reading."""
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
                    logger.warning("Partial replies cannot be read: %s", error)
                    await asyncio.sleep(PAUSE_SECONDS)

    async def _read_from(self, cache: "redis.asyncio.Redis", keys: Iterable[str]) -> None:
        places = {key: min(each.place for each in self._watching[key]) for key in keys}
        found = await cache.xread({key: "{}-{}".format(*place) for key, place in places.items()})
        for key, entries in read_chunks(found):
            for watched in self._watching.get(key, ()):
                watched.add(entries)


class Waiters:
    """The requests that wait for messages. Use it in one event loop."""

    def __init__(self, cache_url: str, look: Look, texts: Texts) -> None:
        """Make it.

        Args:
            cache_url: the URL of the cache.
            look: returns the settled messages among messages of a tenant.
            texts: gets the announcements of texts.
        """
        self._texts = texts
        self._cache_url = cache_url
        self._look = look
        self._waiting: dict[Key, set[asyncio.Future[None]]] = {}
        self._to_look_at: set[Key] = set()
        self._news = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False
        self._listening = False

    def __len__(self) -> int:
        """Return the number of waiting requests."""
        return sum(map(len, self._waiting.values()))

    def is_listening(self) -> bool:
        """Return whether it is subscribed."""
        return self._listening

    async def wait(self, tenant_id: UUID, message_id: UUID, seconds: float) -> None:
        """Return when the message may be settled, after `seconds`, or when the process stops."""
        if self._stopping:
            return
        self._begin()
        key = tenant_id, message_id
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, set()).add(woken)
        # The announcement may have come before.
        self._look_at({key})
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await woken
        finally:
            self._forget(key, woken)

    def stop(self) -> None:
        """Wake every waiting request."""
        self._stopping = True
        for key in list(self._waiting):
            self._wake(key)

    async def close(self) -> None:
        """End the subscription."""
        self.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begin(self) -> None:
        if not self._tasks:
            # In empty contexts: log lines must not name the first request.
            self._tasks = [
                asyncio.create_task(work, context=Context())
                for work in (self._listen(), self._watch())
            ]

    def _wake(self, key: Key) -> None:
        for woken in self._waiting.get(key, ()):
            if not woken.done():
                woken.set_result(None)

    def _forget(self, key: Key, woken: "asyncio.Future[None]") -> None:
        others = self._waiting[key]
        others.discard(woken)
        if not others:
            del self._waiting[key]
            self._to_look_at.discard(key)

    def _look_at(self, keys: Collection[Key]) -> None:
        self._to_look_at.update(keys)
        self._news.set()

    async def _listen(self) -> None:
        """Wake requests by announcements; subscribe again after an error."""
        is_logged = False
        while not self._stopping:
            try:
                await self._hear_announcements()
            except (RedisError, OSError) as error:
                if self._listening or not is_logged:
                    logger.warning("Requests wait for replies without the cache: %s", error)
                is_logged = True
            self._listening = False
            await asyncio.sleep(RECONNECT_SECONDS)

    async def _hear_announcements(self) -> None:
        async with (
            redis.asyncio.from_url(self._cache_url, health_check_interval=PING_SECONDS) as cache,
            cache.pubsub() as subscription,
        ):
            await subscription.psubscribe(ANNOUNCEMENTS_PATTERN, CHUNK_CHANNELS)
            while not self._stopping:
                heard = await subscription.get_message(timeout=PING_SECONDS)
                if heard is None:
                    continue
                if heard["type"] == "psubscribe":  # earlier announcements were missed
                    self._listening = True
                    self._look_at(self._waiting)
                    self._texts.look_at_all()
                elif (written := message_of_chunk(heard["channel"])) is not None:
                    self._texts.announced(*written)
                elif (key := announced_message(heard["channel"])) is not None:
                    self._wake(key)

    async def _watch(self) -> None:
        """Check new messages immediately, and all of them every POLL_SECONDS."""
        loop = asyncio.get_running_loop()
        everything_at = loop.time() + POLL_SECONDS
        # Ends: when the server cancels the task. It waits between two turns.
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(everything_at if self._waiting else None):
                    await self._news.wait()
            self._news.clear()
            if loop.time() >= everything_at:
                self._to_look_at.update(self._waiting)
                await self._look_at_tenants()
                everything_at = loop.time() + POLL_SECONDS
            else:
                await self._look_at_tenants()

    async def _look_at_tenants(self) -> None:
        of_tenants: defaultdict[UUID, set[UUID]] = defaultdict(set)
        for tenant_id, message_id in self._to_look_at:
            of_tenants[tenant_id].add(message_id)
        self._to_look_at.clear()
        for tenant_id, message_ids in of_tenants.items():
            try:
                settled = await self._look(tenant_id, message_ids)
            except Exception as error:  # the next turn looks again
                logger.warning("The states of messages cannot be read: %s", error)
                return
            for message_id in settled:
                self._wake((tenant_id, message_id))


async def stream_reply(
    response: StreamingResponse,
    waiters: Waiters,
    texts: Texts,
    end: Callable[[str], Awaitable[bytes]],
    is_allowed: Callable[[], Awaitable[bool]],
) -> AsyncGenerator[bytes]:
    """Yield the body of a streaming response: the growing text, and then the end.

    Args:
        response: the response.
        waiters: wait for the message.
        texts: read the text.
        end: makes the end, from the text that was sent.
        is_allowed: returns whether the caller may still read. The stream ends where not.
    """
    sent: list[str] = []
    allowed = True
    yield response.opening
    wait = waiters.wait(response.tenant_id, response.message_id, response.seconds)
    waited = asyncio.create_task(wait)
    try:
        with texts.watch(response.tenant_id, response.message_id) as watched:
            waited.add_done_callback(lambda _: watched.news.set())
            while not (waited.done() or watched.broken):
                has_news = await _has_news(watched)
                if not (allowed := await is_allowed()):
                    break
                if text := watched.take():
                    sent.append(text)
                    yield response.piece(text)
                elif not has_news:
                    yield KEEP_ALIVE
    finally:
        waited.cancel()
    try:
        allowed = allowed and await is_allowed()
        yield await end("".join(sent)) if allowed else response.refused
    except Overloaded:
        yield response.overloaded


async def _has_news(watched: Watched) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(KEEP_ALIVE_SECONDS):
            await watched.news.wait()
            watched.news.clear()
            return True
    return False
