"""The gate of a worker: it takes tasks only while its database is usable."""

import asyncio
import configparser
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connections
from django_redis import get_redis_connection
from kombu import Connection, Consumer, Queue

from konstruct.celery import app
from konstruct.heartbeats import OWNER, WEB, has_heartbeat, write_heartbeat
from konstruct.web.application import Application
from konstruct.worker import DatabaseGate
from tenants import jobs
from tests.konstruct.running import PROJECT

NAMES = ["test-of-the-gate-1", "test-of-the-gate-2"]


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record when this process would register itself as a worker, and start no thread for it."""
    calls: list[str] = []
    monkeypatch.setattr(jobs, "start_worker", lambda: calls.append("started"))
    return calls


@pytest.fixture
def broker() -> Iterator[Connection]:
    with app.connection_for_read() as connection:
        yield connection
        for name in NAMES:
            connection.default_channel.queue_delete(name)


@pytest.fixture
def consumer(broker: Connection) -> SimpleNamespace:
    """The part of Celery's consumer that the gate needs: real queues of a real broker."""
    tasks = Consumer(broker, [Queue(name, routing_key=name) for name in NAMES], on_message=print)
    timer = SimpleNamespace(call_repeatedly=lambda *given: SimpleNamespace(cancel=lambda: None))
    return SimpleNamespace(task_consumer=tasks, timer=timer)


def test_worker_takes_no_task_without_the_database(
    transactional_db: None,
    consumer: Any,
    caplog: pytest.LogCaptureFixture,
    started: list[str],
    settings: Any,
    tmp_path: Path,
) -> None:
    settings.HEARTBEAT_FILE = tmp_path / "heartbeat"
    get_redis_connection().delete(*(f"public:heartbeat:{name}" for name in NAMES))
    tasks, gate = consumer.task_consumer, DatabaseGate(consumer)
    options = connections["default"].settings_dict
    before = options["HOST"]
    options["HOST"] = "/nonexistent"
    try:
        gate.start(consumer)
        tasks.consume()  # as Celery does after the start
        assert [tasks.consuming_from(name) for name in NAMES] == [False, False]
        gate._check_database(consumer)
        assert not any(map(has_heartbeat, NAMES))
        assert not started
        # It waits, and a container's health check does not end it.
        assert settings.HEARTBEAT_FILE.exists()
    finally:
        options["HOST"] = before
    gate._check_database(consumer)
    assert [tasks.consuming_from(name) for name in NAMES] == [True, True]
    assert all(map(has_heartbeat, NAMES))
    assert started
    first, last = caplog.messages
    assert first.startswith("Taking no tasks until the database is back: OperationalError: ")
    assert last == "Taking tasks again: the database is back"


@pytest.mark.parametrize(("overdue", "is_ended"), [(1, False), (2, True)])
def test_a_process_ends_when_half_of_its_jobs_take_too_long(
    transactional_db: None,
    consumer: Any,
    monkeypatch: pytest.MonkeyPatch,
    settings: Any,
    overdue: int,
    is_ended: bool,
) -> None:
    ended: list[int] = []
    monkeypatch.setattr("konstruct.worker.end_process", ended.append)
    settings.JOB_SLOTS = {NAMES[0]: (3, 0), NAMES[1]: (1, 0)}
    now, limit = time.monotonic(), settings.TASK_TIME_LIMIT
    ages = [limit + 1] * overdue + [limit - 60] * (4 - overdue)
    monkeypatch.setattr(jobs, "_begun", {n: now - age for n, age in enumerate(ages)})
    gate = DatabaseGate(consumer)
    gate.start(consumer)
    assert ended == [1] * is_ended


def test_serve_restarts_each_process_whatever_its_exit_status() -> None:
    parser = configparser.RawConfigParser()
    parser.read(PROJECT / "deploy" / "supervisord.conf")
    programs = [name for name in parser.sections() if name.startswith("program:")]
    assert {parser[name]["autorestart"] for name in programs} == {"true"}


@pytest.fixture
def full_cache() -> Iterator[None]:
    """A readable cache that refuses each write, like one without free memory."""
    cache = get_redis_connection()
    cache.delete(f"public:heartbeat:{OWNER}")
    limit = cache.config_get("maxmemory")["maxmemory"]
    cache.config_set("maxmemory", 1)
    try:
        yield
    finally:
        cache.config_set("maxmemory", limit)


def test_a_cache_that_takes_no_writes_ends_no_process(
    full_cache: None, settings: Any, tmp_path: Path
) -> None:
    settings.HEARTBEAT_FILE = tmp_path / "heartbeat"
    write_heartbeat(OWNER)
    assert settings.HEARTBEAT_FILE.exists()
    assert not has_heartbeat(OWNER)


def test_a_web_process_has_a_heartbeat_while_it_serves() -> None:
    get_redis_connection().delete(f"public:heartbeat:{WEB}")
    received = iter(["lifespan.startup"])
    sent = list[str]()

    async def receive() -> dict[str, str]:
        if (kind := next(received, "")) == "":
            async with asyncio.timeout(60):
                while not has_heartbeat(WEB):
                    await asyncio.sleep(0.05)
            kind = "lifespan.shutdown"
        return {"type": kind}

    async def send(message: Any) -> None:
        sent.append(message["type"])

    asyncio.run(Application()({"type": "lifespan", "state": {}}, receive, send))
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert has_heartbeat(WEB)
