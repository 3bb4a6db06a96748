"""The gate of a worker: it takes tasks while its database can be used, and only then."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connections
from kombu import Connection, Consumer, Queue

from konstruct.celery import app
from konstruct.heartbeats import WORKER, has_heartbeat
from konstruct.worker import DatabaseGate
from tests.konstruct.running import forget_heartbeats

NAMES = ["test-of-the-gate-1", "test-of-the-gate-2"]


@pytest.fixture
def broker() -> Iterator[Connection]:
    with app.connection_for_read() as connection:
        yield connection
        for name in NAMES:
            connection.default_channel.queue_delete(name)


@pytest.fixture
def consumer(broker: Connection) -> SimpleNamespace:
    """What the gate needs of Celery's consumer: real queues of a real broker."""
    tasks = Consumer(broker, [Queue(name, routing_key=name) for name in NAMES], on_message=print)
    timer = SimpleNamespace(call_repeatedly=lambda *given: SimpleNamespace(cancel=lambda: None))
    return SimpleNamespace(task_consumer=tasks, timer=timer)


def test_no_task_is_taken_while_the_database_is_down(
    transactional_db: None, consumer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    forget_heartbeats()
    tasks, gate = consumer.task_consumer, DatabaseGate(consumer)
    given = connections["default"].settings_dict
    before = given["HOST"]
    given["HOST"] = "/nonexistent"
    try:
        gate.start(consumer)
        tasks.consume()  # as Celery does once all is started
        assert [tasks.consuming_from(name) for name in NAMES] == [False, False]
        gate._look(consumer)
        assert not has_heartbeat(WORKER)
    finally:
        given["HOST"] = before
    gate._look(consumer)
    assert [tasks.consuming_from(name) for name in NAMES] == [True, True]
    assert has_heartbeat(WORKER)
    first, last = caplog.messages
    assert first.startswith("Taking no tasks until the database is back: OperationalError: ")
    assert last == "Taking tasks again: the database is back"


def test_tasks_are_taken_no_more_once_the_database_takes_no_writes(
    transactional_db: None, consumer: Any
) -> None:
    tasks, gate = consumer.task_consumer, DatabaseGate(consumer)
    gate.start(consumer)
    tasks.consume()
    assert [tasks.consuming_from(name) for name in NAMES] == [True, True]
    given = connections["default"].settings_dict
    before = given["OPTIONS"]
    given["OPTIONS"] = before | {"options": "-c default_transaction_read_only=on"}
    try:
        gate._look(consumer)
    finally:
        given["OPTIONS"] = before
    assert [tasks.consuming_from(name) for name in NAMES] == [False, False]
