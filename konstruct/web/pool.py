"""A bounded pool of threads for synchronous requests, shared between tenants by turns."""

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Overloaded(Exception):
    """So many requests of this share wait for a thread that no more are taken."""


class Pool:
    """Threads for requests. Belongs to one event loop, whose thread alone changes what is counted.

    A share is whatever requests are counted by: a tenant. One share has at most half of the
    threads at once. What finds no free thread waits in its share's queue, and the queues are served
    in turn.
    """

    def __init__(self, *, threads: int, longest_queue: int) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="web")
        self._free = threads
        self._most_of_one_share = max(1, threads // 2)
        self._longest_queue = longest_queue
        self._running: Counter[str] = Counter()
        self._queues: dict[str, deque[asyncio.Future[None]]] = {}

    async def run(
        self, share: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call the function in a thread and return what it returns.

        Cancelling this takes the call out of the queue. A call that has begun goes on, and keeps
        its thread until it ends.

        Raises:
            Overloaded: the share's queue is full.
        """
        await self._turn(share)
        loop = asyncio.get_running_loop()
        call = loop.run_in_executor(self._executor, lambda: function(*args, **kwargs))
        call.add_done_callback(lambda done: self._ended(share, done))
        return await asyncio.shield(call)

    def close(self) -> None:
        """Take nothing more; threads end after what they are doing."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def _turn(self, share: str) -> None:
        """Return when a thread is free for the share, and counted as taken."""
        if self._free and self._running[share] < self._most_of_one_share:
            self._take(share)
            return
        queue = self._queues.setdefault(share, deque())
        if len(queue) >= self._longest_queue:
            raise Overloaded(share)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                with contextlib.suppress(ValueError):  # passed over already
                    queue.remove(turn)
            else:  # the turn had come
                self._give_back(share)
            raise

    def _take(self, share: str) -> None:
        self._free -= 1
        self._running[share] += 1

    def _ended(self, share: str, call: "asyncio.Future[T]") -> None:
        if not call.cancelled():
            call.exception()  # seen, even where nobody waits for it any more
        self._give_back(share)

    def _give_back(self, share: str) -> None:
        self._free += 1
        self._running[share] -= 1
        if not self._running[share]:
            del self._running[share]
        self._serve_queues()

    def _serve_queues(self) -> None:
        """Give free threads to the queues, one at a time, the share served last going last."""
        for share in list(self._queues):
            queue = self._queues[share]
            while queue and queue[0].done():  # whoever waited has gone
                queue.popleft()
            if not queue:
                del self._queues[share]
            elif self._free and self._running[share] < self._most_of_one_share:
                self._take(share)
                queue.popleft().set_result(None)
                self._queues[share] = self._queues.pop(share)
