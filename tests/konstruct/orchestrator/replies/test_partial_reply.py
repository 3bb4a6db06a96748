"""The text of a reply in progress, from its publisher to its subscribers."""

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from unittest.mock import AsyncMock, Mock
from uuid import UUID, uuid4

import pytest
from django.conf import settings
from django_redis import get_redis_connection

from konstruct.orchestrator import replies
from konstruct.orchestrator.replies import announced_message, stream_reply, watch
from konstruct.web.replies import Replies
from tenants.redis_keys import partial_reply_key

TENANT, OTHER = uuid4(), uuid4()
attempts = count(1)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replies, "MIN_PAUSE_SECONDS", 0)
    monkeypatch.setattr(replies, "PAUSE_SECONDS_PER_STREAM", 0)


def publish(message_id: UUID, *texts: str, error: Exception | None = None) -> None:
    """Publish an attempt at a reply."""
    with stream_reply(TENANT, message_id, next(attempts)) as write:
        assert write is not None
        for text in texts:
            write(text)
        if error is not None:
            raise error


def watched(message_id: UUID, *steps: Callable[[], None], tenant: UUID = TENANT) -> list[str]:
    """Return the texts after each step for a subscriber from the start; "!" is broken."""

    async def follow() -> list[str]:
        replies = Replies(str(settings.CACHES["default"]["LOCATION"]), AsyncMock())
        received = list[str]()
        with replies.watch(tenant, message_id) as watch:
            for step in steps:
                await asyncio.to_thread(step)
                await replies._read_texts([watch])
                received.append(watch.take() + ("!" if watch.is_broken else ""))
        await replies.close()
        return received

    return asyncio.run(follow())


def broken(message_id: UUID, *texts: str) -> Callable[[], None]:
    def attempt() -> None:
        with pytest.raises(ValueError, match="lost"):
            publish(message_id, *texts, error=ValueError("lost"))

    return attempt


def again_of(message: UUID) -> Callable[[], None]:
    return lambda: publish(message, "Bonjour")


def test_no_text_is_published_without_a_subscriber() -> None:
    message = uuid4()
    with stream_reply(TENANT, message, next(attempts)) as write:
        assert write is None
    assert get_redis_connection().exists(partial_reply_key(TENANT, message)) == 0


def test_subscriber_receives_text_as_it_is_published() -> None:
    message = uuid4()
    watch(TENANT, message)
    with ExitStack() as stack:
        write = stack.enter_context(stream_reply(TENANT, message, next(attempts)))
        assert write is not None
        steps = [lambda: write("Hel"), lambda: write("lo ä"), lambda: None, stack.close]
        assert watched(message, *steps) == ["Hel", "lo ä", "", ""]
        # A later subscriber starts at the beginning.
        assert watched(message, lambda: None) == ["Hello ä"]


def test_texts_of_all_replies_are_read_with_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    messages = [uuid4() for _ in range(50)]
    for message in messages:
        watch(TENANT, message)

    async def follow() -> None:
        replies = Replies(str(settings.CACHES["default"]["LOCATION"]), AsyncMock())
        xread = Mock(side_effect=replies._cache.xread)
        monkeypatch.setattr(replies._cache, "xread", xread)
        with ExitStack() as stack:
            watches = [stack.enter_context(replies.watch(TENANT, each)) for each in messages]
            for message in messages:
                await asyncio.to_thread(publish, message, f"Hello {message}")
            await replies._read_texts(watches)
            assert [each.take() for each in watches] == [f"Hello {each}" for each in messages]
            late = stack.enter_context(replies.watch(TENANT, messages[0]))
            await replies._read_texts([watches[0], late])
            assert (watches[0].take(), late.take()) == ("", f"Hello {messages[0]}")
        assert xread.call_count == 2
        await replies.close()

    asyncio.run(follow())


def test_other_tenant_receives_no_text() -> None:
    message = uuid4()
    watch(TENANT, message)
    assert watched(message, lambda: publish(message, "Hello"), tenant=OTHER) == [""]


def test_subscriber_with_text_of_a_failed_attempt_gets_a_reset() -> None:
    message = uuid4()
    watch(TENANT, message)
    assert watched(message, broken(message, "Hel"), again_of(message)) == ["", "Bonjour"]
    message = uuid4()
    watch(TENANT, message)
    with stream_reply(TENANT, message, next(attempts)) as write:  # a worker that is killed here
        assert write is not None
        assert watched(message, lambda: write("Hel"), again_of(message))[1] == "Bonjour!"


def test_attempt_without_text_breaks_no_stream() -> None:
    message = uuid4()
    watch(TENANT, message)
    assert watched(message, broken(message), again_of(message)) == ["", "Bonjour"]


def test_no_text_is_published_without_the_cache(
    settings: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost() -> object:
        raise replies.RedisError("lost")

    monkeypatch.setattr(replies, "get_redis_connection", lost)
    watch(TENANT, uuid4())
    with stream_reply(TENANT, uuid4(), next(attempts)) as write:
        assert write is None


def test_a_channel_names_tenant_and_message() -> None:
    message = uuid4()
    assert announced_message(partial_reply_key(TENANT, message).encode()) == (TENANT, message)
    assert announced_message(f"{TENANT}:reply:{message}".encode()) is None


def test_attempt_with_a_lost_lease_adds_no_text() -> None:
    message = uuid4()
    watch(TENANT, message)
    with stream_reply(TENANT, message, 1) as late:
        assert late is not None
        late("Hel")
        with stream_reply(TENANT, message, 2) as write:
            assert write is not None
            late("lo")
            write("Bonjour")
            late(", late")
            assert replies.text_so_far(TENANT, message) == "Bonjour"
    assert replies.text_so_far(TENANT, message) == "Bonjour"
    with stream_reply(TENANT, message, 1) as late:
        assert late is not None
        late("again")
    assert replies.text_so_far(TENANT, message) == "Bonjour"


def test_erased_stream_gets_no_text() -> None:
    message = uuid4()
    watch(TENANT, message)
    with stream_reply(TENANT, message, 1) as write:
        assert write is not None
        write("secret")
        get_redis_connection().delete(partial_reply_key(TENANT, message))
        write("more")
    assert not get_redis_connection().exists(partial_reply_key(TENANT, message))
