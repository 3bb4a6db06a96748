"""Waits in the event loop for messages to be settled, and for the text of partial replies.

One subscription to the cache serves all requests of the process. Announcements can be lost with the
cache, and can be sent before a request waits. So one query for each tenant checks all messages that
requests wait for, every POLL_SECONDS, and when another request begins to wait.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final
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
# Messages for which requests begin to wait within this time are checked together.
CHECK_PAUSE_SECONDS: Final = 0.2
START: Final[replies.EntryId] = (0, 0)

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
        self.wake()

    def wake(self) -> None:
        """Wake the request, because the reply may have more text."""
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
        """Add the chunks after `place`."""
        for chunk in chunks:
            self.place = chunk.entry_id
            if chunk.attempt != self._attempt or chunk.is_failed:
                self.is_broken = self.is_broken or self._has_sent
                self._attempt = b"" if chunk.is_failed else chunk.attempt
                self._text = ""
            self._text += "" if chunk.is_failed else chunk.text

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
        self._has_new = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self.is_stopping = False
        """Whether the process stops."""
        self.is_subscribed: bool | None = None
        """None before the first try."""

    def start(self) -> None:
        """Subscribe."""
        self._tasks = [asyncio.create_task(work) for work in (self._listen(), self._poll())]

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
        self._watches[message].add(watch)
        self._has_new.set()
        try:
            yield watch
        finally:
            self._watches[message].discard(watch)
            if not self._watches[message]:
                del self._watches[message]

    async def read(self, watch: Watch) -> None:
        """Add the new text of the reply to a watch."""
        try:
            async with asyncio.timeout(POLL_SECONDS):
                found = await self._cache.xread({watch.stream: "{}-{}".format(*watch.place)})
            for _, chunks in replies.read_chunks(found):
                watch.add(chunks)
        except Exception as error:  # the end of a stream has the whole text
            logger.warning("A partial reply cannot be read: %s", error)

    def _end(self, message: MessageKey) -> None:
        for watch in self._watches.get(message, ()):
            watch.end()

    async def _listen(self) -> None:
        """Wake requests when their messages are announced; subscribe again after an error."""
        while not self.is_stopping:  # redis-py loses a cancellation while it connects
            try:
                async with self._cache.pubsub(ignore_subscribe_messages=True) as subscription:
                    await subscription.psubscribe(replies.ANNOUNCEMENTS)
                    self.is_subscribed = True
                    while not self.is_stopping:
                        if message := await subscription.get_message(timeout=PING_SECONDS):
                            self._announce(message)
            except Exception as error:  # a dead task would leave every request to polling
                if self.is_subscribed is not False:
                    logger.warning("Requests wait for replies without the cache: %s", error)
                self.is_subscribed = False
                await asyncio.sleep(RECONNECT_SECONDS)

    def _announce(self, message: Any) -> None:
        announced = replies.announced_message(message["channel"])
        for watch in self._watches.get(announced, ()) if announced else ():
            if message["data"] == replies.SETTLED:
                watch.end()
            else:
                watch.wake()

    async def _poll(self) -> None:
        while not self.is_stopping:
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await self._has_new.wait()
            self._has_new.clear()
            await self._check(self._watches)
            await asyncio.sleep(CHECK_PAUSE_SECONDS)

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
