"""Requests that wait for messages, in one event loop, on the real cache."""

import asyncio
import uuid
from collections.abc import Collection, Coroutine
from typing import Any
from unittest.mock import AsyncMock
from uuid import UUID

import pytest
from django.conf import settings
from django_redis import get_redis_connection

from konstruct.orchestrator.replies import announce
from konstruct.web import replies as module

TENANT = uuid.UUID(int=1)


@pytest.fixture(autouse=True)
def _cache() -> None:
    get_redis_connection().ping()  # which starts the embedded one


class Looking:
    """The settled messages, and the sizes of the groups that were looked up together."""

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


def make(look: Any, url: str = "") -> module.Replies:
    replies = module.Replies(url or str(settings.CACHES["default"]["LOCATION"]), look)
    replies.start()
    return replies


async def wait(
    replies: module.Replies, message_id: UUID, seconds: float = 60, tenant_id: UUID = TENANT
) -> None:
    with replies.watch(tenant_id, message_id) as watch:
        await watch.over(seconds)


async def until(condition: Any) -> None:
    while not condition():
        await asyncio.sleep(0.005)


def test_announcement_wakes_only_its_waiters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POLL_SECONDS", 3600.0)

    async def test() -> None:
        replies = make(AsyncMock())
        one, other = uuid.uuid4(), uuid.uuid4()
        for_one = [asyncio.create_task(wait(replies, one)) for _ in range(50)]
        for_other = asyncio.create_task(wait(replies, other))
        await until(lambda: replies.is_subscribed)
        await asyncio.to_thread(announce, TENANT, one)
        await asyncio.gather(*for_one)
        assert not for_other.done()
        await replies.close()
        await for_other

    run(test())


def test_thousand_waiters_are_checked_in_one_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POLL_SECONDS", 0.05)

    async def test() -> None:
        looking = Looking()
        replies, messages = make(looking), [uuid.uuid4() for _ in range(1000)]
        waiting = [asyncio.create_task(wait(replies, message_id)) for message_id in messages]
        await until(lambda: looking.looks.count(1000) > 3)
        assert len(looking.looks) <= looking.looks.count(1000) + 3
        looking.settled = set(messages)
        await asyncio.gather(*waiting)
        await replies.close()

    run(test())


@pytest.mark.parametrize("url", ["", "redis://127.0.0.1:9/0"], ids=["lost", "no cache"])
def test_reply_is_found_without_an_announcement(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setattr(module, "POLL_SECONDS", 0.05)

    async def test() -> None:
        looking = Looking()
        replies, message = make(looking, url), uuid.uuid4()
        waiting = asyncio.create_task(wait(replies, message))
        await until(lambda: len(looking.looks) > 1)
        looking.settled = {message}
        await waiting
        await replies.close()

    run(test())


@pytest.mark.slow
def test_lost_subscription_is_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POLL_SECONDS", 3600.0)

    async def test() -> None:
        replies, message = make(AsyncMock()), uuid.uuid4()
        waiting = asyncio.create_task(wait(replies, message))
        await until(lambda: replies.is_subscribed)
        await asyncio.to_thread(get_redis_connection().client_kill_filter, _type="pubsub")
        await until(lambda: not replies.is_subscribed)
        await until(lambda: replies.is_subscribed)
        await asyncio.to_thread(announce, TENANT, message)
        await waiting
        await replies.close()

    run(test())


def test_waiting_ends_with_the_time_and_with_the_process() -> None:
    async def test() -> None:
        replies = make(AsyncMock())
        await wait(replies, uuid.uuid4(), 0.01)
        waiting = asyncio.create_task(wait(replies, uuid.uuid4()))
        await asyncio.sleep(0)
        replies.stop()
        await waiting
        await wait(replies, uuid.uuid4())
        await replies.close()

    run(test())


def test_a_tenant_that_cannot_be_read_does_not_delay_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "POLL_SECONDS", 0.01)

    async def test() -> None:
        async def look(tenant_id: UUID, message_ids: Collection[UUID]) -> Collection[UUID]:
            if tenant_id == TENANT:
                raise OSError("its server is down")
            return message_ids

        replies = make(look)
        unread = asyncio.create_task(wait(replies, uuid.uuid4()))
        await wait(replies, uuid.uuid4(), tenant_id=uuid.uuid4())
        assert not unread.done()
        await replies.close()
        await unread

    run(test())


def test_text_that_cannot_be_read_now_is_read_later(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        replies = make(AsyncMock())
        monkeypatch.setattr(replies._cache, "xread", AsyncMock(side_effect=ValueError("an entry")))
        with replies.watch(TENANT, uuid.uuid4()) as watch:
            await replies._read_texts([watch])
            assert watch.take() == ""
        await replies.close()

    run(test())
