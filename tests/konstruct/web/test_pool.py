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


def test_cancelled_call_leaves_the_queue_and_a_running_call_keeps_its_thread() -> None:
    async def test() -> None:
        pool, work = pool_of(1, max_queued=1), Work()
        begun = asyncio.create_task(pool.run(A, work.call, "a"))
        await work.until_begun("a")
        queued = asyncio.create_task(pool.run(B, work.call, "b"))
        await asyncio.sleep(0)
        for task in (queued, begun):
            task.cancel()
        await asyncio.gather(begun, queued, return_exceptions=True)
        another = asyncio.create_task(pool.run(B, work.call, "b"))
        await asyncio.sleep(0.01)
        assert work.begun == ["a"]
        work.let_go("a", "b")
        assert await another == "b"
        assert work.begun == ["a", "b"]
        pool.close()

    run(test())


def test_exception_of_a_call_is_raised_and_its_thread_is_released() -> None:
    async def test() -> None:
        pool = pool_of(1, max_queued=1)
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                await pool.run(A, lambda: 1 // 0)
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
        assert (pool.running(is_verified=False), pool.queued(is_verified=False)) == (2, 58)
        work.let_go("a", "x")
        await asyncio.gather(*verified, *unverified)
        assert (pool.running(is_verified=False), pool.queued(is_verified=False)) == (0, 0)
        pool.close()

    run(test())


def test_unverified_requests_get_a_turn_beside_verified_requests() -> None:
    async def test() -> None:
        pool, work = pool_of(2), Work()
        running = [asyncio.create_task(pool.run(share, work.call, "c")) for share in (A, B)]
        await work.until_begun("c", "c")
        queued = [asyncio.create_task(pool.run(A, work.call, "a")) for _ in range(10)]
        queued += [asyncio.create_task(pool.run(B, work.call, "b")) for _ in range(10)]
        await asyncio.sleep(0)
        unverified = send_unverified(pool, work, 10, addresses=1)
        await asyncio.sleep(0)
        work.let_go("a", "b", "c", "x")
        await asyncio.gather(*running, *queued, *unverified)
        # Never two at once, and one after each verified request.
        assert set(work.begun[2:6]) >= {"x"}
        assert "xxx" not in "".join(work.begun)
        pool.close()

    run(test())


def test_one_address_does_not_keep_another_waiting() -> None:
    async def test() -> None:
        pool, work = pool_of(8), Work()
        flood = send_unverified(pool, work, 50, addresses=1)
        await work.until_begun("x")
        newcomer = asyncio.create_task(
            pool.run(Share("another address", is_verified=False), work.call, "a")
        )
        await asyncio.sleep(0)
        work.let_go("a", "x")
        await asyncio.gather(newcomer, *flood)
        assert work.begun.index("a") <= 2
        pool.close()

    run(test())


def test_full_queue_drops_the_last_of_the_longest_unverified_queue() -> None:
    async def test() -> None:
        pool, work = pool_of(8, max_queued=10), Work()
        flood = send_unverified(pool, work, 12, addresses=1)
        await work.until_begun("x")
        with pytest.raises(Overloaded):
            await flood[-1]
        newcomer = Share("another address", is_verified=False)
        tasks = [asyncio.create_task(pool.run(newcomer, work.call, "a")) for _ in range(5)]
        await asyncio.sleep(0)
        assert pool.queued(is_verified=False) == 10
        with pytest.raises(Overloaded):  # the queues are equal now, and it would be the longer one
            await pool.run(newcomer, work.call, "a")
        work.let_go("a", "x")
        assert await asyncio.gather(*tasks) == ["a"] * 5
        ended = await asyncio.gather(*flood, return_exceptions=True)
        assert [isinstance(outcome, Overloaded) for outcome in ended] == [False] * 6 + [True] * 6
        pool.close()

    run(test())


def test_disconnected_clients_leave_no_queue_entries() -> None:
    async def test() -> None:
        pool, work = pool_of(8), Work()
        flood = send_unverified(pool, work, 30, addresses=30)
        await work.until_begun("x")
        for task in flood[1:]:
            task.cancel()
        await asyncio.gather(*flood[1:], return_exceptions=True)
        assert pool.queued(is_verified=False) == 0
        work.let_go("a", "x")
        await flood[0]
        assert await pool.run(Share("another", is_verified=False), work.call, "a") == "a"
        pool.close()

    run(test())
