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
MAX_PART_OF_ONE_SHARE: Final = 1 / 2
MAX_PART_UNVERIFIED: Final = 1 / 8


class Overloaded(Exception):
    """Too many requests wait for a thread; this one is not taken."""


@dataclass(frozen=True)
class Share:
    """The caller for which requests are counted."""

    name: str
    """A tenant's id, or the address of a client."""
    is_verified: bool
    """Whether a key, a session or a signature has proved who sends the requests."""


@dataclass(eq=False)
class _Group:
    """The verified shares, or the unverified ones: their threads and their queues."""

    max_running: int
    max_running_of_one: int
    max_queued: int | None
    max_queued_of_one: int
    running: int = 0
    running_of: Counter[str] = field(default_factory=Counter)
    queued: int = 0
    queues: "dict[str, deque[asyncio.Future[None]]]" = field(default_factory=dict)

    def has_thread_for(self, name: str) -> bool:
        return self.running < self.max_running and self.running_of[name] < self.max_running_of_one

    def take(self, name: str) -> None:
        self.running += 1
        self.running_of[name] += 1

    def give_back(self, name: str) -> None:
        self.running -= 1
        self.running_of[name] -= 1
        if not self.running_of[name]:
            del self.running_of[name]

    def enqueue(self, name: str) -> "asyncio.Future[None]":
        """Return a future that is done when the turn has come. Raises Overloaded."""
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
        """Make room at the expense of the share that has the most requests in its queue."""
        longest = max(self.queues, key=lambda name: len(self.queues[name]))
        if len(self.queues[longest]) <= longer_than:
            raise Overloaded(longest)
        dropped = self.queues[longest][-1]
        self.leave(longest, dropped)
        if not dropped.done():
            dropped.set_exception(Overloaded(longest))

    def leave(self, name: str, turn: "asyncio.Future[None]") -> None:
        """Take a turn out of the queue, if it is still there."""
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
            while queue and (turn is None or turn.done()):  # skips clients that are gone
                turn = queue.popleft()
                self.queued -= 1
            if queue:
                self.queues[name] = queue
            if turn is not None and not turn.done():
                self.take(name)
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
            max_queued_unverified: requests of all unverified shares together that may wait. Beyond
            it the
                share with the longest queue loses its latest request.
        """
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="web")
        self._free = threads
        unverified = max(1, int(threads * MAX_PART_UNVERIFIED))
        self._groups = {
            True: _Group(threads, max(1, int(threads * MAX_PART_OF_ONE_SHARE)), None, max_queued),
            False: _Group(unverified, unverified, max_queued_unverified, max_queued_unverified),
        }
        self._groups_in_turn = deque(self._groups.values())

    async def run(
        self, share: Share, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call the function in a thread, and return its result.

        Cancelling removes the call from the queue. A running call continues, and keeps its thread
        until it ends.

        Raises:
            Overloaded: too many requests of the share wait, or of all unverified shares.
        """
        await self._turn(share)
        loop = asyncio.get_running_loop()
        call = loop.run_in_executor(self._executor, lambda: function(*args, **kwargs))
        call.add_done_callback(lambda done: self._ended(share, done))
        return await asyncio.shield(call)

    def running(self, *, is_verified: bool) -> int:
        """Return how many threads the verified or the unverified shares have."""
        return self._groups[is_verified].running

    def queued(self, *, is_verified: bool) -> int:
        """Return how many requests of the verified or the unverified shares wait."""
        return self._groups[is_verified].queued

    def close(self) -> None:
        """Take nothing more; threads end after what they are doing."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def _turn(self, share: Share) -> None:
        """Return when a thread is free for the share, and counted as taken."""
        group = self._groups[share.is_verified]
        if self._free and group.has_thread_for(share.name):
            self._free -= 1
            group.take(share.name)
            return
        turn = group.enqueue(share.name)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                group.leave(share.name, turn)
            elif turn.exception() is None:  # the turn had come
                self._give_back(share)
            raise

    def _ended(self, share: Share, call: "asyncio.Future[T]") -> None:
        if not call.cancelled():
            call.exception()  # retrieved, even if the caller has disconnected
        self._give_back(share)

    def _give_back(self, share: Share) -> None:
        self._free += 1
        self._groups[share.is_verified].give_back(share.name)
        while self._free and self._serve_next():
            self._free -= 1

    def _serve_next(self) -> bool:
        """Give a thread to the next group that can use it, and move that group to the end."""
        for group in list(self._groups_in_turn):
            if group.serve_next():
                self._groups_in_turn.remove(group)
                self._groups_in_turn.append(group)
                return True
        return False
