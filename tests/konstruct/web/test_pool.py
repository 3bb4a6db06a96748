"""The pool of threads: bounded, and shared in turns."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

import pytest

from konstruct.web.pool import Overloaded, Pool, Share

A, B, C = (Share(name, is_verified=True) for name in "abc")


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 60))


def pool_of(threads: int, *, max_queued: int = 100) -> Pool:
    return Pool(threads=threads, max_queued=max_queued, max_queued_unverified=max_queued)


class Work:
    """Calls that block until they are released, and their callers in order."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self._let_go = {name: threading.Event() for name in "abcx"}

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
        pool, work = pool_of(4, max_queued=100), Work()
        of_a = [asyncio.create_task(pool.run(A, work.call, "a")) for _ in range(10)]
        await work.until_begun("a", "a")
        of_b = [asyncio.create_task(pool.run(B, work.call, "b")) for _ in range(10)]
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
        pool, work = pool_of(1, max_queued=100), Work()
        first = asyncio.create_task(pool.run(C, work.call, "c"))
        await work.until_begun("c")
        rest = [asyncio.create_task(pool.run(A, work.call, "a")) for _ in range(3)]
        await asyncio.sleep(0)
        rest += [asyncio.create_task(pool.run(B, work.call, "b")) for _ in range(2)]
        await asyncio.sleep(0)
        work.let_go("a", "b", "c")
        await asyncio.gather(first, *rest)
        assert "".join(work.begun) == "cababa"
        pool.close()

    run(test())


def test_a_full_queue_is_its_shares_own() -> None:
    async def test() -> None:
        pool, work = pool_of(2, max_queued=1), Work()
        running = [asyncio.create_task(pool.run(A, work.call, "a")) for _ in range(2)]
        await work.until_begun("a")
        with pytest.raises(Overloaded):
            await pool.run(A, work.call, "a")
        work.let_go("a", "b")
        assert await pool.run(B, work.call, "b") == "b"
        await asyncio.gather(*running)
        pool.close()

    run(test())


def send_unverified(
    pool: Pool, work: Work, number: int, *, addresses: int
) -> "list[asyncio.Task[str]]":
    """Send the given number of unverified requests, in turns from the given number of addresses."""
    shares = [Share(f"address {n}", is_verified=False) for n in range(addresses)]
    return [
        asyncio.create_task(pool.run(shares[n % addresses], work.call, "x")) for n in range(number)
    ]


def test_unverified_requests_of_all_addresses_have_an_eighth_of_the_threads() -> None:
    async def test() -> None:
        pool, work = pool_of(16), Work()
        unverified = send_unverified(pool, work, 60, addresses=60)
        await work.until_begun("x", "x")
        verified = [asyncio.create_task(pool.run(A, work.call, "a")) for _ in range(8)]
        await work.until_begun(*"aaaaaaaaxx")
        assert pool.running(is_verified=False) == 2
        work.let_go("a", "x")
        await asyncio.gather(*verified, *unverified)
        assert pool.running(is_verified=False) == 0
        pool.close()

    run(test())
