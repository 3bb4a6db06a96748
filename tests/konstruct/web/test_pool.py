"""The pool of threads: bounded, and shared by turns."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

import pytest

from konstruct.web.pool import Overloaded, Pool


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 60))


class Work:
    """Calls that last until they are let go, and who began them, in order."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self._let_go = {name: threading.Event() for name in ("a", "b", "c")}

    def call(self, name: str) -> str:
        self.begun.append(name)
        assert self._let_go[name].wait(60)
        return name

    def let_go(self, *names: str) -> None:
        for name in names:
            self._let_go[name].set()

    async def until_begun(self, *names: str) -> None:
        while sorted(self.begun) != sorted(names):
            await asyncio.sleep(0.001)


def test_one_share_has_at_most_half_of_the_threads() -> None:
    async def test() -> None:
        pool, work = Pool(threads=4, longest_queue=100), Work()
        of_a = [asyncio.create_task(pool.run("a", work.call, "a")) for _ in range(10)]
        await work.until_begun("a", "a")
        of_b = [asyncio.create_task(pool.run("b", work.call, "b")) for _ in range(10)]
        await work.until_begun("a", "a", "b", "b")
        work.let_go("b")
        assert await asyncio.gather(*of_b) == ["b"] * 10
        assert work.begun.count("a") == 2
        work.let_go("a")
        assert await asyncio.gather(*of_a) == ["a"] * 10
        pool.close()

    run(test())


def test_queues_are_served_in_turn() -> None:
    async def test() -> None:
        pool, work = Pool(threads=1, longest_queue=100), Work()
        first = asyncio.create_task(pool.run("c", work.call, "c"))
        await work.until_begun("c")
        rest = [asyncio.create_task(pool.run("a", work.call, "a")) for _ in range(3)]
        await asyncio.sleep(0)
        rest += [asyncio.create_task(pool.run("b", work.call, "b")) for _ in range(2)]
        await asyncio.sleep(0)
        work.let_go("a", "b", "c")
        await asyncio.gather(first, *rest)
        assert "".join(work.begun) == "cababa"
        pool.close()

    run(test())


def test_a_full_queue_is_its_shares_own() -> None:
    async def test() -> None:
        pool, work = Pool(threads=2, longest_queue=1), Work()
        running = [asyncio.create_task(pool.run("a", work.call, "a")) for _ in range(2)]
        await work.until_begun("a")
        with pytest.raises(Overloaded):
            await pool.run("a", work.call, "a")
        work.let_go("a", "b")
        assert await pool.run("b", work.call, "b") == "b"
        await asyncio.gather(*running)
        pool.close()

    run(test())


def test_who_goes_leaves_the_queue_and_a_call_that_has_begun_keeps_its_thread() -> None:
    async def test() -> None:
        pool, work = Pool(threads=1, longest_queue=1), Work()
        begun = asyncio.create_task(pool.run("a", work.call, "a"))
        await work.until_begun("a")
        queued = asyncio.create_task(pool.run("b", work.call, "b"))
        await asyncio.sleep(0)
        for task in (queued, begun):
            task.cancel()
        await asyncio.gather(begun, queued, return_exceptions=True)
        another = asyncio.create_task(pool.run("b", work.call, "b"))
        await asyncio.sleep(0.01)
        assert work.begun == ["a"]
        work.let_go("a", "b")
        assert await another == "b"
        assert work.begun == ["a", "b"]
        pool.close()

    run(test())


def test_what_a_call_raises_is_raised_and_its_thread_is_free_again() -> None:
    async def test() -> None:
        pool = Pool(threads=1, longest_queue=1)
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                await pool.run("a", lambda: 1 // 0)
        pool.close()

    run(test())
