"""Callers that wait for messages, in one event loop, on the real cache."""

import asyncio
import uuid
from collections.abc import Collection, Coroutine
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings
from django_redis import get_redis_connection

from konstruct.orchestrator.replies.reply_wait import announce
from konstruct.web import replies as module
from konstruct.web.replies import PartialReplies, ReplyWaiters

TENANT = uuid.UUID(int=1)


@pytest.fixture(autouse=True)
def _cache() -> None:
    get_redis_connection().ping()  # which starts the embedded one


class Looking:
    """The settled messages, and the groups of messages that were looked up together."""

    def __init__(self) -> None:
        self.settled: set[UUID] = set()
        self.looks: list[int] = []

    async def __call__(self, tenant_id: UUID, message_ids: Collection[UUID]) -> set[UUID]:
        assert tenant_id == TENANT
        self.looks.append(len(message_ids))
        await asyncio.sleep(0)
        return self.settled & set(message_ids)


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 60))


def make(look: Any, url: str = "") -> ReplyWaiters:
    url = url or str(settings.CACHES["default"]["LOCATION"])
    return ReplyWaiters(url, look, PartialReplies(url))


async def until(condition: Any) -> None:
    while not condition():
        await asyncio.sleep(0.005)


@pytest.fixture
def only_announcements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POLL_SECONDS", 3600.0)


def test_announcement_wakes_only_its_waiters(
    only_announcements: None,
) -> None:
    async def test() -> None:
        looking = Looking()
        waiters = make(looking)
        one, other = uuid.uuid4(), uuid.uuid4()
        for_one = [asyncio.create_task(waiters.wait(TENANT, one, 60)) for _ in range(50)]
        for_other = asyncio.create_task(waiters.wait(TENANT, other, 60))
        await until(waiters.is_listening)
        await asyncio.to_thread(announce, TENANT, one)
        await asyncio.gather(*for_one)
        assert (for_other.done(), len(waiters)) == (False, 1)
        for_other.cancel()
        await asyncio.wait([for_other])
        assert len(waiters) == 0
        await waiters.close()

    run(test())


def test_thousand_waiters_are_checked_in_one_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POLL_SECONDS", 0.05)

    async def test() -> None:
        looking = Looking()
        waiters, messages = make(looking), [uuid.uuid4() for _ in range(1000)]
        waiting = [
            asyncio.create_task(waiters.wait(TENANT, message_id, 60)) for message_id in messages
        ]
        await until(lambda: looking.looks.count(1000) > 3)
        assert len(looking.looks) <= looking.looks.count(1000) + 3
        looking.settled = set(messages)
        await asyncio.gather(*waiting)
        await waiters.close()

    run(test())


@pytest.mark.parametrize("url", ["", "redis://127.0.0.1:9/0"], ids=["lost", "no cache"])
def test_reply_is_found_without_an_announcement(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setattr(module, "POLL_SECONDS", 0.05)

    async def test() -> None:
        looking = Looking()
        waiters, message = make(looking, url), uuid.uuid4()
        waiting = asyncio.create_task(waiters.wait(TENANT, message, 60))
        await until(lambda: len(looking.looks) > 1)
        looking.settled = {message}
        await waiting
        await waiters.close()

    run(test())


@pytest.mark.slow
def test_lost_subscription_is_renewed_and_missed_changes_are_checked(
    only_announcements: None,
) -> None:
    async def test() -> None:
        looking = Looking()
        waiters, message = make(looking), uuid.uuid4()
        waiting = asyncio.create_task(waiters.wait(TENANT, message, 60))
        await until(waiters.is_listening)
        looking.settled = {message}  # and not announced
        await asyncio.to_thread(get_redis_connection().client_kill_filter, _type="pubsub")
        await waiting
        await waiters.close()

    run(test())


def test_waiting_ends_with_the_time_and_with_the_process() -> None:
    async def test() -> None:
        waiters = make(Looking())
        await waiters.wait(TENANT, uuid.uuid4(), 0.01)
        waiting = asyncio.create_task(waiters.wait(TENANT, uuid.uuid4(), 60))
        await until(lambda: len(waiters) == 1)
        waiters.stop()
        await waiting
        await waiters.wait(TENANT, uuid.uuid4(), 60)
        await waiters.close()

    run(test())


def test_a_tenant_that_cannot_be_read_does_not_delay_others() -> None:
    async def test() -> None:
        looked_up: list[UUID] = []

        async def look(tenant_id: UUID, message_ids: Collection[UUID]) -> Collection[UUID]:
            looked_up.append(tenant_id)
            if len(looked_up) == 1:
                raise OSError("its server is down")
            return message_ids

        waiters = make(look)
        tenants = [uuid.uuid4(), uuid.uuid4()]
        waits = [asyncio.create_task(waiters.wait(id, uuid.uuid4(), 60)) for id in tenants]
        await until(lambda: looked_up)
        for _ in range(10):
            await asyncio.sleep(0)
        assert {*looked_up} == {*tenants}  # the subscription asks for one more check
        await waiters.close()
        await asyncio.gather(*waits)

    run(test())


def test_reading_of_partial_replies_goes_on_after_any_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test() -> None:
        partial = PartialReplies(str(settings.CACHES["default"]["LOCATION"]))
        reads = []

        async def read(*_: Any) -> None:
            reads.append(1)
            raise ValueError("an entry that cannot be read")

        monkeypatch.setattr(module, "RETRY_SECONDS", 0)
        monkeypatch.setattr(partial, "_read_from", read)
        for count in (1, 2):
            with partial.watch(TENANT, uuid.uuid4()):
                for _ in range(20):
                    await asyncio.sleep(0)
            assert len(reads) >= count
        await partial.close()

    run(test())
