"""Waits in the event loop for messages to be settled, and for the text of partial replies.

One subscription to the cache serves all waiting requests, and one command reads the new text of
all watched replies. Announcements can be lost with the cache, so every POLL_SECONDS one query for
each tenant checks all messages that requests wait for.
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
# The pause after a failed read of partial replies.
RETRY_SECONDS: Final = 1.0
# A comment of server-sent events, so that no proxy closes a silent connection.
KEEP_ALIVE: Final = b": waiting\n\n"
KEEP_ALIVE_SECONDS: Final = 10.0
START: Final[EntryId] = (0, 0)

Key = tuple[UUID, UUID]
FindSettled = Callable[[UUID, Collection[UUID]], Awaitable[Collection[UUID]]]


class WatchedReply:
    """The growing text of one reply, for one reader."""

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self.is_broken = False
        """Whether `take` has returned text of an attempt that failed."""
        self.place = START
        self._attempt = b""
        self._text: list[str] = []
        self._has_sent = False

    def take(self) -> str:
        """Return the text since the last call, or ""."""
        text = "".join(self._text)
        self._text.clear()
        self._has_sent = self._has_sent or bool(text)
        return text

    def add(self, chunks: Iterable[ReplyChunk]) -> None:
        """Add chunks of the reply; chunks that were added before are ignored."""
        for chunk in chunks:
            if chunk.entry_id <= self.place:
                continue
            self.place = chunk.entry_id
            if chunk.attempt != self._attempt or chunk.is_failed:
                self.is_broken = self.is_broken or self._has_sent
                self._attempt = b"" if chunk.is_failed else chunk.attempt
                self._text.clear()
            if not chunk.is_failed:
                self._text.append(chunk.text)
            self.changed.set()


class PartialReplies:
    """Reads the text of watched replies. Use it in one event loop."""

    def __init__(self, cache_url: str) -> None:
        self._cache_url = cache_url
        self._watching: defaultdict[str, list[WatchedReply]] = defaultdict(list)
        self._to_read: set[str] = set()
        self._wakeup = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def watch(self, tenant_id: UUID, message_id: UUID) -> Iterator[WatchedReply]:
        """Watch the reply of a message inside the block."""
        if self._task is None:
            # In an empty context: its log lines must not name the first request.
            self._task = asyncio.create_task(self._read(), context=Context())
        key, watched = partial_reply_key(tenant_id, message_id), WatchedReply()
        self._watching[key].append(watched)
        self._request_read([key])
        try:
            yield watched
        finally:
            self._watching[key].remove(watched)
            if not self._watching[key]:
                del self._watching[key]

    def read_announced(self, tenant_id: UUID, message_id: UUID) -> None:
        """Read the new text of an announced reply, if it is watched."""
        key = partial_reply_key(tenant_id, message_id)
        if key in self._watching:
            self._request_read([key])

    def read_all(self) -> None:
        """Read the new text of every watched reply: announcements may have been lost."""
        self._request_read(self._watching)

    async def close(self) -> None:
        """Stop reading."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def _request_read(self, keys: Iterable[str]) -> None:
        self._to_read.update(keys)
        self._wakeup.set()

    async def _read(self) -> None:
        async with redis.asyncio.from_url(self._cache_url) as cache:
            # Ends: when the server cancels the task. Each iteration waits for a request to read.
            while True:
                await self._wakeup.wait()
                self._wakeup.clear()
                keys, self._to_read = self._to_read & self._watching.keys(), set()
                if not keys:
                    continue
                try:
                    await self._read_from(cache, keys)
                except Exception as error:  # a dead task would end every stream of the process
                    logger.warning("Partial replies cannot be read: %s", error)
                    await asyncio.sleep(RETRY_SECONDS)

    async def _read_from(self, cache: "redis.asyncio.Redis", keys: Iterable[str]) -> None:
        places = {key: min(watched.place for watched in self._watching[key]) for key in keys}
        found = await cache.xread({key: "{}-{}".format(*place) for key, place in places.items()})
        for key, chunks in read_chunks(found):
            for watched in self._watching.get(key, ()):
                watched.add(chunks)


class ReplyWaiters:
    """The requests that wait for messages. Use it in one event loop."""

    def __init__(
        self, cache_url: str, find_settled: FindSettled, partial_replies: PartialReplies
    ) -> None:
        """Subscribe to nothing yet: the first `wait` does.

        Args:
            cache_url: the URL of the cache.
            find_settled: returns the settled messages among messages of a tenant.
            partial_replies: reads announced texts.
        """
        self._partial_replies = partial_replies
        self._cache_url = cache_url
        self._find_settled = find_settled
        self._waiting: dict[Key, set[asyncio.Future[None]]] = {}
        self._to_check: set[Key] = set()
        self._wakeup = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._is_stopping = False
        self._is_listening = False

    def __len__(self) -> int:
        """Return the number of waiting requests."""
        return sum(map(len, self._waiting.values()))

    def is_listening(self) -> bool:
        """Return whether it is subscribed to announcements."""
        return self._is_listening

    async def wait(self, tenant_id: UUID, message_id: UUID, seconds: float) -> None:
        """Return when the message may be settled, after `seconds`, or when the process stops."""
        if self._is_stopping:
            return
        self._start_tasks()
        key = tenant_id, message_id
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, set()).add(waiter)
        # The announcement may have been sent before this call.
        self._request_check({key})
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await waiter
        finally:
            self._remove(key, waiter)

    def stop(self) -> None:
        """Wake every waiting request."""
        self._is_stopping = True
        for key in list(self._waiting):
            self._wake(key)

    async def close(self) -> None:
        """Wake every waiting request, and end the subscription."""
        self.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start_tasks(self) -> None:
        if not self._tasks:
            # In empty contexts: log lines must not name the first request.
            self._tasks = [
                asyncio.create_task(work, context=Context())
                for work in (self._listen(), self._check_periodically())
            ]

    def _wake(self, key: Key) -> None:
        for waiter in self._waiting.get(key, ()):
            if not waiter.done():
                waiter.set_result(None)

    def _remove(self, key: Key, waiter: "asyncio.Future[None]") -> None:
        others = self._waiting[key]
        others.discard(waiter)
        if not others:
            del self._waiting[key]
            self._to_check.discard(key)

    def _request_check(self, keys: Collection[Key]) -> None:
        self._to_check.update(keys)
        self._wakeup.set()

    async def _listen(self) -> None:
        """Wake requests when their messages are announced; subscribe again after an error."""
        is_logged = False
        while not self._is_stopping:
            try:
                await self._receive_announcements()
            except Exception as error:  # a dead task would leave every request to polling
                if self._is_listening or not is_logged:
                    logger.warning("Requests wait for replies without the cache: %s", error)
                is_logged = True
            self._is_listening = False
            await asyncio.sleep(RECONNECT_SECONDS)

    async def _receive_announcements(self) -> None:
        async with (
            redis.asyncio.from_url(self._cache_url, health_check_interval=PING_SECONDS) as cache,
            cache.pubsub() as subscription,
        ):
            await subscription.psubscribe(ANNOUNCEMENTS_PATTERN, CHUNK_CHANNELS)
            while not self._is_stopping:
                message = await subscription.get_message(timeout=PING_SECONDS)
                if message is None:
                    continue
                if message["type"] == "psubscribe":  # earlier announcements were missed
                    self._is_listening = True
                    self._request_check(self._waiting)
                    self._partial_replies.read_all()
                elif (written := message_of_chunk(message["channel"])) is not None:
                    self._partial_replies.read_announced(*written)
                elif (key := announced_message(message["channel"])) is not None:
                    self._wake(key)

    async def _check_periodically(self) -> None:
        """Check new messages immediately, and all of them every POLL_SECONDS."""
        loop = asyncio.get_running_loop()
        next_full_check = loop.time() + POLL_SECONDS
        # Ends: when the server cancels the task. Each iteration waits.
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(next_full_check if self._waiting else None):
                    await self._wakeup.wait()
            self._wakeup.clear()
            if loop.time() >= next_full_check:
                self._to_check.update(self._waiting)
                await self._check_tenants()
                next_full_check = loop.time() + POLL_SECONDS
            else:
                await self._check_tenants()

    async def _check_tenants(self) -> None:
        by_tenant: defaultdict[UUID, set[UUID]] = defaultdict(set)
        for tenant_id, message_id in self._to_check:
            by_tenant[tenant_id].add(message_id)
        self._to_check.clear()
        for tenant_id, message_ids in by_tenant.items():
            try:
                settled = await self._find_settled(tenant_id, message_ids)
            except Exception as error:  # the next iteration checks again
                logger.warning("The states of messages cannot be read: %s", error)
                continue
            for message_id in settled:
                self._wake((tenant_id, message_id))


async def stream_reply(
    response: StreamingResponse,
    waiters: ReplyWaiters,
    partial_replies: PartialReplies,
    end: Callable[[str], Awaitable[bytes]],
    is_allowed: Callable[[], Awaitable[bool]],
) -> AsyncGenerator[bytes]:
    """Yield the body of a streaming response: the growing text, and then the end.

    Args:
        response: the response.
        waiters: to wait for the message.
        partial_replies: to read the text.
        end: returns the end of the body, for the text that was sent.
        is_allowed: returns whether the caller may still read. If not, the stream ends.
    """
    sent: list[str] = []
    allowed = True
    yield response.opening
    wait_call = waiters.wait(response.tenant_id, response.message_id, response.seconds)
    wait_task = asyncio.create_task(wait_call)
    try:
        with partial_replies.watch(response.tenant_id, response.message_id) as watched:
            wait_task.add_done_callback(lambda _: watched.changed.set())
            while not (wait_task.done() or watched.is_broken):
                has_changed = await _wait_for_change(watched)
                if not (allowed := await is_allowed()):
                    break
                if text := watched.take():
                    sent.append(text)
                    yield response.piece(text)
                elif not has_changed:
                    yield KEEP_ALIVE
    finally:
        wait_task.cancel()
    try:
        allowed = allowed and await is_allowed()
        yield await end("".join(sent)) if allowed else response.refused
    except Overloaded:
        yield response.overloaded


async def _wait_for_change(watched: WatchedReply) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(KEEP_ALIVE_SECONDS):
            await watched.changed.wait()
            watched.changed.clear()
            return True
    return False
