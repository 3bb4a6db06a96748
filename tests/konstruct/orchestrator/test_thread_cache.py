"""Cached copies of tables: never older than the table, also after races and kills."""

import pytest
from django_redis import get_redis_connection
from redis.exceptions import RedisError

from konstruct.orchestrator import thread_cache
from konstruct.orchestrator.thread_cache import invalidate, read_through
from tenants import transaction

KEY = "t:escalation:x"
pytestmark = pytest.mark.django_db(transaction=True)


def of_table(answer: dict[str, str], asked: list[int]) -> dict[str, str]:
    asked.append(1)
    return answer


def test_the_table_is_asked_once() -> None:
    calls: list[int] = []
    for _ in range(3):
        assert read_through(KEY, lambda: of_table({"1": "a"}, calls)) == {"1": "a"}
    assert len(calls) == 1
    assert 0 < get_redis_connection("default").ttl(KEY) <= thread_cache.TTL_SECONDS
    get_redis_connection("default").flushdb()
    assert read_through(KEY, lambda: of_table({}, calls)) == {}
    assert len(calls) == 2


def test_reader_from_before_a_change_does_not_cache_the_old_row() -> None:
    def overtaken() -> dict[str, str]:
        with transaction.atomic():
            invalidate(KEY)
        return {"1": "old"}

    read_through(KEY, overtaken)
    assert read_through(KEY, lambda: {"1": "new"}) == {"1": "new"}


def test_readers_use_the_table_between_a_change_and_its_commit() -> None:
    calls: list[int] = []
    read_through(KEY, lambda: {"1": "old"})
    with transaction.atomic():
        invalidate(KEY)
        for _ in range(2):
            assert read_through(KEY, lambda: of_table({"1": "new"}, calls)) == {"1": "new"}
        # A process killed here leaves the mark, and no copy.
        assert get_redis_connection("default").get(KEY) == thread_cache.CHANGING_MARKER
    assert len(calls) == 2
    assert get_redis_connection("default").get(KEY) is None


def test_without_the_cache_the_table_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(name: str) -> None:
        raise RedisError("away")

    monkeypatch.setattr(thread_cache, "get_redis_connection", away)
    with transaction.atomic():
        invalidate(KEY)
    assert read_through(KEY, lambda: {"1": "a"}) == {"1": "a"}
