"""Callers that wait for a message to be settled, all of them in the event loop.

One subscription of the cache serves all of them. An announcement can be lost with the cache, so
that now and then one query for each tenant looks at all messages that are waited for.
"""

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection
from contextvars import Context
from uuid import UUID

import redis.asyncio
from redis.exceptions import RedisError

from konstruct.orchestrator.replies.partial_reply import EVERY_TEXT, told_message
from konstruct.orchestrator.replies.reply_wait import EVERY_ANNOUNCEMENT, announced_message
from konstruct.web.texts import Texts

logger = logging.getLogger(__name__)

# How often all that is waited for is looked at, and how soon a lost subscription is made again.
LOOK_SECONDS = 2.0
RECONNECT_SECONDS = 1.0
# A silent connection is asked whether it is alive.
PING_SECONDS = 15

Key = tuple[UUID, UUID]
Look = Callable[[UUID, Collection[UUID]], Awaitable[Collection[UUID]]]


class Waiters:
    """Who waits for which message. Belongs to one event loop.

    `look` tells which of a tenant's messages need not be waited for any more. `texts` are told
    what is announced of replies that are being written.
    """

    def __init__(self, cache_url: str, look: Look, texts: Texts) -> None:
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
        """How many wait."""
        return sum(map(len, self._waiting.values()))

    def is_listening(self) -> bool:
        """Whether announcements are heard."""
        return self._listening

    async def wait(self, tenant_id: UUID, message_id: UUID, seconds: float) -> None:
        """Return when the message may be settled, after so many seconds, or when serving ends."""
        if self._stopping:
            return
        self._begin()
        key = tenant_id, message_id
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, set()).add(woken)
        # It may have been announced before this: looked at once more, together with others.
        self._look_at({key})
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await woken
        finally:
            self._forget(key, woken)

    def stop(self) -> None:
        """Let nobody wait any longer."""
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
            # In empty contexts: log lines about all who wait must not name the first one's request.
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
        """Wake whoever waits for what is announced; subscribe again if the cache was lost."""
        told = False
        while not self._stopping:
            try:
                await self._hear_announcements()
            except (RedisError, OSError) as error:
                if self._listening or not told:
                    logger.warning("Replies are waited for without the cache: %s", error)
                told = True
            self._listening = False
            await asyncio.sleep(RECONNECT_SECONDS)

    async def _hear_announcements(self) -> None:
        async with (
            redis.asyncio.from_url(self._cache_url, health_check_interval=PING_SECONDS) as cache,
            cache.pubsub() as subscription,
        ):
            await subscription.psubscribe(EVERY_ANNOUNCEMENT, EVERY_TEXT)
            while not self._stopping:
                heard = await subscription.get_message(timeout=PING_SECONDS)
                if heard is None:
                    continue
                if heard["type"] == "psubscribe":  # what was announced before was not heard
                    self._listening = True
                    self._look_at(self._waiting)
                    self._texts.look_at_all()
                elif (told := told_message(heard["channel"])) is not None:
                    self._texts.announced(*told)
                elif (key := announced_message(heard["channel"])) is not None:
                    self._wake(key)

    async def _watch(self) -> None:
        """Look at what is new at once, and at everything every `LOOK_SECONDS`."""
        loop = asyncio.get_running_loop()
        everything_at = loop.time() + LOOK_SECONDS
        # Ends: when the server cancels the task. It waits for news, or LOOK_SECONDS, between two
        # turns.
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(everything_at if self._waiting else None):
                    await self._news.wait()
            self._news.clear()
            if loop.time() >= everything_at:
                self._to_look_at.update(self._waiting)
                await self._look_at_tenants()
                everything_at = loop.time() + LOOK_SECONDS
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
            except Exception as error:  # those who wait are looked at again soon
                logger.warning("Messages that are waited for cannot be looked at: %s", error)
                return
            for message_id in settled:
                self._wake((tenant_id, message_id))
