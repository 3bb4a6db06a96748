"""A thread that waits for a language model holds no database connection and no transaction."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import ProgrammingError, connections
from psycopg_pool import ConnectionPool

from konstruct.llm.client import HttpLanguageModel
from konstruct.llm.completions import CompletionRequest
from tenants import transaction
from tenants.context import tenant_scope
from tenants.models import Tenant
from tenants.servers import MAIN
from tests import database
from tests.servers.llm import Answer, LLMServer, Request, streamed

pytestmark = pytest.mark.django_db(transaction=True)

CONCURRENT_REQUESTS = 20
SIZE = 2
REQUEST = CompletionRequest([{"role": "user", "content": "Hi"}], model="", tier="fast")


@pytest.fixture
def pool() -> Iterator[ConnectionPool[Any]]:
    with database.pools(SIZE) as made:
        yield made[MAIN]


def checked_out(pool: ConnectionPool[Any]) -> int:
    stats = pool.get_stats()
    return stats["pool_size"] - stats["pool_available"]


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def open_transactions() -> int:
    with psycopg.connect(database.url_of("superuser")) as superuser:
        (found,) = superuser.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE usename = 'konstruct_app'"
            " AND datname = current_database() AND xact_start IS NOT NULL"
        ).fetchone()  # type: ignore[misc]
        return int(found)


def names() -> list[str]:
    return list(User.objects.values_list("username", flat=True))


def reply_to(request: Request) -> Answer:
    if request.body.get("stream"):
        return streamed("Yes", ", indeed.", wait=True)
    return Answer({"content": "Yes, indeed."}, wait=True)


def converse(server: LLMServer, tenant: Tenant, number: int, read: list[str]) -> str:
    """Read before, while the answer streams, and after it, as a reply does."""
    model = HttpLanguageModel(server.url, api="openai" if number % 2 else "pool")
    try:
        with tenant_scope(tenant.id):
            read += names()
            on_text = (lambda _: read.extend(names())) if number % 2 else None
            text = model.complete(REQUEST, on_text).text
            with transaction.atomic():
                read += names()
            return text
    finally:
        connections.close_all()


def test_many_wait_on_few_connections_and_hold_none(
    pool: ConnectionPool[Any],
    llm_server: LLMServer,
    tenant_a: Tenant,
    tenant_b: Tenant,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tenants = (tenant_a, tenant_b)
    for tenant in tenants:
        with tenant_scope(tenant.id):
            User.objects.create(username=f"of-{tenant.slug}")
    connections.close_all()
    monkeypatch.setattr(llm_server, "reply_to", reply_to)
    read: list[list[str]] = [[] for _ in range(CONCURRENT_REQUESTS)]
    with ThreadPoolExecutor(CONCURRENT_REQUESTS) as threads:
        answers = [
            threads.submit(converse, llm_server, tenants[number % 4 // 2], number, read[number])
            for number in range(CONCURRENT_REQUESTS)
        ]
        try:
            llm_server.wait_for_requests(CONCURRENT_REQUESTS)
            wait_until(
                lambda: all(len(pieces) == 2 for pieces in read[1::2])
            )  # a piece has arrived
            wait_until(lambda: checked_out(pool) == 0)
            assert open_transactions() == 0
        finally:
            llm_server.release()
        for number, answer in enumerate(answers):
            assert answer.result() == "Yes, indeed."
            times = 4 if number % 2 else 2
            assert read[number] == [f"of-{tenants[number % 4 // 2].slug}"] * times
    assert pool.get_stats()["pool_size"] <= SIZE
    assert checked_out(pool) == 0


def test_between_tries_no_connection_is_held(
    pool: ConnectionPool[Any], llm_server: LLMServer, tenant_a: Tenant
) -> None:
    held: list[int] = []
    llm_server.answers = [Answer("busy", 503)]
    with tenant_scope(tenant_a.id):
        names()
        assert checked_out(pool) == 1
        model = HttpLanguageModel(
            llm_server.url, api="pool", sleep=lambda _: held.append(checked_out(pool))
        )
        assert model.complete(REQUEST).text == "Noted."
    assert held == [0]


def test_no_model_is_asked_in_a_transaction(
    pool: ConnectionPool[Any], llm_server: LLMServer, tenant_a: Tenant
) -> None:
    with (
        tenant_scope(tenant_a.id),
        pytest.raises(ProgrammingError, match="end it before you wait"),
        transaction.atomic(),
    ):
        HttpLanguageModel(llm_server.url, api="pool").complete(REQUEST)
