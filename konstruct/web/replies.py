"""Waits in the event loop for messages to be settled, and for the text of partial replies.

One subscription to the cache serves all requests of the process. Announcements can be lost with the
cache, and can be sent before a request waits. So one query for each tenant checks new messages at
once, and every POLL_SECONDS all messages that requests wait for.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context
from typing import Any, Final, TypeVar
from uuid import UUID

from redis.asyncio import BlockingConnectionPool, Redis

from konstruct.orchestrator import replies
from tenants.redis_keys import partial_reply_key

logger = logging.getLogger(__name__)

POLL_SECONDS = 2.0
RECONNECT_SECONDS = 1.0
# A silent connection to the cache is checked after this time.
PING_SECONDS: Final = 15
# Connections of a process to the cache, for its subscription and for reading partial replies.
MAX_CONNECTIONS: Final = 8
# Texts that are written, and messages that are watched, within this time are read together.
READ_PAUSE_SECONDS: Final = 0.01
START: Final[replies.EntryId] = (0, 0)

T = TypeVar("T")
# A message, with its tenant.
MessageKey = tuple[UUID, UUID]
FindSettled = Callable[[UUID, Collection[UUID]], Awaitable[Collection[UUID]]]


class Watch:
    """A request that waits for a message, and what it has read of the reply."""

    def __init__(self, tenant_id: UUID, message_id: UUID) -> None:
        self.stream = partial_reply_key(tenant_id, message_id)
        self.is_over = False
        """Whether the message may be settled, or the process stops."""
        self.is_broken = False
        """Whether `take` has returned text of an attempt that failed."""
        self.place = START
        self._attempt = b""
        self._text = ""
        self._has_sent = False
        self._changed = asyncio.Event()

    def end(self) -> None:
        """Wake the request, because the message may be settled."""
        self.is_over = True
        self._changed.set()

    async def change(self, seconds: float) -> bool:
        """Wait for a change. Return whether there was one within this time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()
                self._changed.clear()
                return True
        return False

    async def over(self, seconds: float) -> None:
        """Return when the message may be settled, after `seconds`, or when the process stops."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self.is_over:
                    await self.change(seconds)

    def add(self, chunks: Iterable[replies.ReplyChunk]) -> None:
        """Add chunks, of which those up to `place` are known, and wake the request."""
        for chunk in chunks:
            if chunk.entry_id <= self.place:
                continue
            self.place = chunk.entry_id
            if chunk.attempt != self._attempt or chunk.is_failed:
                self.is_broken = self.is_broken or self._has_sent
                self._attempt = b"" if chunk.is_failed else chunk.attempt
                self._text = ""
            self._text += "" if chunk.is_failed else chunk.text
        self._changed.set()

    def take(self) -> str:
        """Return the text that was added since the last call."""
        text, self._text = self._text, ""
        self._has_sent = self._has_sent or bool(text)
        return text


class Replies:
    """The requests that wait for messages. Use it in one event loop."""

    def __init__(self, cache_url: str, find_settled: FindSettled) -> None:
        """Connect to nothing yet: `start` does.

        Args:
            cache_url: the URL of the cache.
            find_settled: returns the settled messages among messages of a tenant.
        """
        self._find_settled = find_settled
        connections = BlockingConnectionPool.from_url(
            cache_url, max_connections=MAX_CONNECTIONS, health_check_interval=PING_SECONDS
        )
        self._cache: Redis = Redis.from_pool(connections)
        self._watches: defaultdict[MessageKey, set[Watch]] = defaultdict(set)
        self._new: asyncio.Queue[MessageKey] = asyncio.Queue()
        self._unread: asyncio.Queue[Watch] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []
        self.is_stopping = False
        """Whether the process stops."""
        self.is_subscribed: bool | None = None
        """None before the first try."""

    def start(self) -> None:
        """Subscribe, in empty contexts: log lines must not name a request."""
        works = (
            self._listen(),
            self._poll(),
            self._in_batches(self._unread, self._read_texts),
            self._in_batches(self._new, self._check),
        )
        self._tasks = [asyncio.create_task(work, context=Context()) for work in works]

    def stop(self) -> None:
        """Wake every waiting request, because the process stops."""
        self.is_stopping = True
        for message in self._watches:
            self._end(message)

    async def close(self) -> None:
        """Wake every waiting request, and end the subscription."""
        self.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._cache.aclose()

    @contextmanager
    def watch(self, tenant_id: UUID, message_id: UUID) -> Iterator[Watch]:
        """Watch a message inside the block. It may have been announced before."""
        message = tenant_id, message_id
        watch = Watch(*message)
        if self.is_stopping:
            watch.end()
        self._new.put_nowait(message)
        self._watches[message].add(watch)
        try:
            yield watch
        finally:
            self._watches[message].discard(watch)
            if not self._watches[message]:
                del self._watches[message]

    def read(self, watch: Watch) -> None:
        """Have the text of a watched reply read."""
        self._unread.put_nowait(watch)

    async def _in_batches(
        self, queue: asyncio.Queue[T], handle: Callable[[Collection[T]], Awaitable[None]]
    ) -> None:
        """Handle the items of a queue, all that have arrived in one call."""
        while not self.is_stopping:
            batch = {await queue.get()}
            while not queue.empty():
                batch.add(queue.get_nowait())
            await handle(batch)
            await asyncio.sleep(READ_PAUSE_SECONDS)

    async def _read_texts(self, unread: Collection[Watch]) -> None:
        """Add the new text of all these replies, with one request to the cache."""
        watches = defaultdict[str, list[Watch]](list)
        for watch in unread:
            watches[watch.stream].append(watch)
        places = {key: min(watch.place for watch in of) for key, of in watches.items()}
        try:
            found = await self._cache.xread(
                {key: "{}-{}".format(*at) for key, at in places.items()}
            )
            for key, chunks in replies.read_chunks(found):
                for watch in watches[key]:
                    watch.add(chunks)
        except Exception as error:  # the end of a stream has the whole text
            logger.warning("Partial replies cannot be read: %s", error)

    def _end(self, message: MessageKey) -> None:
        for watch in self._watches.get(message, ()):
            watch.end()

    async def _listen(self) -> None:
        """Wake requests when their messages are announced; subscribe again after an error."""
        while not self.is_stopping:  # redis-py loses a cancellation while it connects
            try:
                await self._receive_announcements()
            except Exception as error:  # a dead task would leave every request to polling
                if self.is_subscribed is not False:
                    logger.warning("Requests wait for replies without the cache: %s", error)
                self.is_subscribed = False
                await asyncio.sleep(RECONNECT_SECONDS)

    async def _receive_announcements(self) -> None:
        async with self._cache.pubsub(ignore_subscribe_messages=True) as subscription:
            await subscription.psubscribe(replies.ANNOUNCEMENTS)
            self.is_subscribed = True
            while not self.is_stopping:
                message: Any = await subscription.get_message(timeout=PING_SECONDS)
                announced = replies.announced_message(message["channel"]) if message else None
                for watch in self._watches.get(announced, ()) if announced else ():
                    if message["data"] == replies.SETTLED:
                        watch.end()
                    else:
                        self.read(watch)

    async def _poll(self) -> None:
        while not self.is_stopping:
            await asyncio.sleep(POLL_SECONDS)
            await self._check(self._watches)

    async def _check(self, messages: Iterable[MessageKey]) -> None:
        """Wake the requests of settled messages."""
        of_tenants = defaultdict[UUID, list[UUID]](list)
        for tenant_id, message_id in messages:
            of_tenants[tenant_id].append(message_id)
        for tenant_id, message_ids in of_tenants.items():
            try:
                for message_id in await self._find_settled(tenant_id, message_ids):
                    self._end((tenant_id, message_id))
            except Exception as error:  # the next poll checks again
                logger.warning("The states of messages cannot be read: %s", error)
