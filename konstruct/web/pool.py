"""A bounded pool of threads for synchronous requests, shared between callers by turns."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

# One verified share has at most half of the threads, and all unverified shares together an eighth:
# two of 16, so that one slow request does not stop the others.
MAX_FRACTION_OF_ONE_SHARE: Final = 1 / 2
MAX_FRACTION_UNVERIFIED: Final = 1 / 8


class Overloaded(Exception):
    """The request is refused, because too many requests wait for a thread."""


@dataclass(frozen=True)
class Share:
    """A caller, for which running and queued requests are counted."""

    name: str
    """A tenant's id, or the address of a client."""
    is_verified: bool
    """Whether a key, a session or a signature has identified the caller."""


@dataclass(eq=False)
class _Group:
    """The verified shares, or the unverified ones: their threads and their queues."""

    max_running: int
    max_running_of_one: int
    max_queued: int | None
    max_queued_of_one: int
    running: int = 0
    running_by_name: Counter[str] = field(default_factory=Counter)
    queued: int = 0
    queues: "dict[str, deque[asyncio.Future[None]]]" = field(default_factory=dict)

    def has_thread_for(self, name: str) -> bool:
        return (
            self.running < self.max_running and self.running_by_name[name] < self.max_running_of_one
        )

    def acquire(self, name: str) -> None:
        self.running += 1
        self.running_by_name[name] += 1

    def release(self, name: str) -> None:
        self.running -= 1
        self.running_by_name[name] -= 1
        if not self.running_by_name[name]:
            del self.running_by_name[name]

    def enqueue(self, name: str) -> "asyncio.Future[None]":
        """Queue a request; return a future that is done when it has a thread. Raises Overloaded."""
        length = len(self.queues.get(name, ()))
        if length >= self.max_queued_of_one:
            raise Overloaded(name)
        if self.queued == self.max_queued:
            self._drop_from_longest(longer_than=length)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.queues.setdefault(name, deque()).append(turn)
        self.queued += 1
        return turn

    def _drop_from_longest(self, *, longer_than: int) -> None:
        """Drop the last request of the share with the longest queue."""
        longest = max(self.queues, key=lambda name: len(self.queues[name]))
        if len(self.queues[longest]) <= longer_than:
            raise Overloaded(longest)
        dropped = self.queues[longest][-1]
        self.remove(longest, dropped)
        if not dropped.done():
            dropped.set_exception(Overloaded(longest))

    def remove(self, name: str, turn: "asyncio.Future[None]") -> None:
        """Remove a turn from the queue, if it is still there."""
        queue = self.queues.get(name)
        if queue is None or turn not in queue:
            return
        queue.remove(turn)
        self.queued -= 1
        if not queue:
            del self.queues[name]

    def serve_next(self) -> bool:
        """Give a thread to the next queue that may have one, and move that queue to the end."""
        if self.running >= self.max_running:
            return False
        for name in list(self.queues):
            if not self.has_thread_for(name):
                continue
            queue, turn = self.queues.pop(name), None
            while queue and (turn is None or turn.done()):  # skips disconnected clients
                turn = queue.popleft()
                self.queued -= 1
            if queue:
                self.queues[name] = queue
            if turn is not None and not turn.done():
                self.acquire(name)
                turn.set_result(None)
                return True
        return False


class Pool:
    """Threads for requests. Use it in one event loop: only the loop's thread changes the counts.

    A request that finds no free thread waits in the queue of its share. Verified and unverified
    shares take turns, and so do the queues of each.
    """

    def __init__(self, *, threads: int, max_queued: int, max_queued_unverified: int) -> None:
        """Make a pool. Its threads start when they are needed.

        Args:
            threads: the maximum number of threads.
            max_queued: requests of one verified share that may wait.
            max_queued_unverified: requests of all unverified shares together that may wait. Above
                it, the last request of the share with the longest queue is dropped.
        """
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="web")
        self._free = threads
        unverified = max(1, int(threads * MAX_FRACTION_UNVERIFIED))
        self._groups = {
            True: _Group(
                threads, max(1, int(threads * MAX_FRACTION_OF_ONE_SHARE)), None, max_queued
            ),
            False: _Group(unverified, unverified, max_queued_unverified, max_queued_unverified),
        }
        self._rotation = deque(self._groups.values())

    async def run(
        self, share: Share, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call the function in a thread, and return its result.

        Cancelling removes the call from the queue. A running call continues, and keeps its thread
        until it ends.

        Raises:
            Overloaded: too many requests of the share wait, or of all unverified shares.
        """
        await self._acquire(share)
        loop = asyncio.get_running_loop()
        call = loop.run_in_executor(self._executor, lambda: function(*args, **kwargs))
        call.add_done_callback(lambda done: self._on_done(share, done))
        return await asyncio.shield(call)

    def running(self, *, is_verified: bool) -> int:
        """Return how many threads the verified or the unverified shares have."""
        return self._groups[is_verified].running

    def close(self) -> None:
        """Accept no more calls. Running calls continue."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def _acquire(self, share: Share) -> None:
        """Wait for a thread for the share, and count it as running."""
        group = self._groups[share.is_verified]
        if self._free and group.has_thread_for(share.name):
            self._free -= 1
            group.acquire(share.name)
            return
        turn = group.enqueue(share.name)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                group.remove(share.name, turn)
            elif turn.exception() is None:  # the turn had come
                self._release(share)
            raise

    def _on_done(self, share: Share, call: "asyncio.Future[T]") -> None:
        if not call.cancelled():
            call.exception()  # retrieved, even if the caller has disconnected
        self._release(share)

    def _release(self, share: Share) -> None:
        self._free += 1
        self._groups[share.is_verified].release(share.name)
        while self._free and self._serve_next():
            self._free -= 1

    def _serve_next(self) -> bool:
        """Give a thread to the next group that can use it, and move that group to the end."""
        for group in list(self._rotation):
            if group.serve_next():
                self._rotation.remove(group)
                self._rotation.append(group)
                return True
        return False
