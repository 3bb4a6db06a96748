"""Connections to Postgres: the number of each process in docs/scaling.md, under any load."""

import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event, Thread
from uuid import UUID, uuid4

import psycopg
import pytest
from django.conf import settings
from django.db import connections

from konstruct.management.commands.owner_worker import LOOPS
from memory.context import SessionStore
from memory.conversations.transcript import record_message
from tenants import jobs
from tenants.checks import require_writable
from tenants.context import release_connections, tenant_scope
from tenants.models import Tenant
from tests import database

THREADS, UNITS, SIZE = 40, 5, 3
WORKER = "worker of replies, deliveries, embeddings or sweeps, each process"


def documented() -> dict[str, list[str]]:
    """Return the table of docs/scaling.md: by process, the cell of each kind of connection."""
    text = (settings.BASE_DIR / "docs" / "scaling.md").read_text()
    rows = re.findall(r"^\| (.+) \| (.+) \| (\d+) \| (\d+) \|$", text, re.MULTILINE)
    return {process: rest for process, *rest in rows}


def test_the_documented_numbers_are_those_of_the_code() -> None:
    documented_rows = documented()
    assert len(documented_rows) == 5
    assert documented_rows["beat"] == ["0", "0", "0"]
    assert [process for process, row in documented_rows.items() if row[2] != "0"] == [WORKER]
    assert documented_rows["owner worker"][0].startswith(
        f"{len(LOOPS)}, one for each of its threads"
    )


@contextmanager
def counting() -> Iterator[Counter[str]]:
    """Count the application's connections continuously. Yield the maximum of each kind."""
    most: Counter[str] = Counter()
    done = Event()

    def count() -> None:
        with psycopg.connect(database.url_of("superuser"), autocommit=True) as superuser:
            while not done.wait(0.005):
                for kind, found in superuser.execute(
                    "SELECT application_name, count(*) FROM pg_stat_activity"
                    " WHERE usename = 'konstruct_app' AND datname = current_database() GROUP BY 1"
                ).fetchall():
                    most[kind] = max(most[kind], found)

    thread = Thread(target=count)
    thread.start()
    try:
        yield most
    finally:
        done.set()
        thread.join()


@pytest.mark.django_db(transaction=True)
@pytest.mark.of_a_session
@pytest.mark.of_one_server(reason="connections to one server are counted")
def test_a_process_of_many_threads_has_no_more_connections_than_documented(
    tenant_a: Tenant, tenant_b: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, process = uuid4(), jobs._Process()
    heartbeat = Thread(target=process.run)
    monkeypatch.setattr(jobs, "_process", process)
    monkeypatch.setattr(jobs, "RENEW_SECONDS", 0.01)

    def converse(number: int) -> int:
        tenant_id: UUID = (tenant_a, tenant_b)[number % 2].id
        try:
            with tenant_scope(tenant_id):
                for unit in range(UNITS):
                    record_message(
                        tenant_id=tenant_id, agent_id=agent, user_id=f"user-{number}",
                        thread_id="t", channel="rest", role="user", content=f"Note {unit}.",
                    )  # fmt: skip
                    with release_connections():
                        assert SessionStore(tenant_id).get_session_messages(f"t-{number}") == []
        finally:
            connections.close_all()
        return number

    with database.pools(SIZE), counting() as most, ThreadPoolExecutor(THREADS) as threads:
        heartbeat.start()
        begun = [threads.submit(converse, number) for number in range(THREADS)]
        require_writable()  # the health check of a worker
        assert [future.result() for future in begun] == list(range(THREADS))
        process.ended.set()
        heartbeat.join()
    assert jobs.give_back_all() == 0
    _, health_checks, leases = documented()[WORKER]
    assert SIZE < most[""] <= SIZE + int(health_checks) + int(leases)
