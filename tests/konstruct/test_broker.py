"""A worker survives the loss of its broker with any state on the lost connection."""

import logging
import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from celery.beat import ScheduleEntry
from celery.schedules import schedule
from kombu import Connection
from kombu.exceptions import OperationalError
from redis import Redis
from redis.exceptions import ReadOnlyError

from konstruct.celery import Scheduler, app
from konstruct.heartbeats import BEAT, has_heartbeat
from tests.konstruct.running import forget_heartbeats, run_python
from tests.servers.tls import tls_in_front
from tests.servers.valkey import free_port, own_valkey

QUEUE = "test-of-the-broker"
logger = logging.getLogger(__name__)


@pytest.fixture
def connection() -> Iterator[Connection]:
    """A connection to the broker, with one message that is not acknowledged."""
    with app.connection_for_write() as made:
        with made.SimpleQueue(QUEUE) as queue:
            queue.put({"n": 1})
        yield made
    with app.connection_for_write() as cleaning:
        cleaning.default_channel.queue_delete(QUEUE)


def take(connection: Connection) -> Any:
    message = connection.default_channel.basic_get(QUEUE)
    assert message is not None
    return message


def beat(broker: str) -> tuple[Scheduler, ScheduleEntry]:
    application = Celery("beat", broker=broker, set_as_current=False)
    application.conf.broker_transport_options = app.conf.broker_transport_options
    entry = ScheduleEntry(
        "sweep", "tenants.tasks.sweep", schedule=schedule(timedelta(seconds=5)), app=application,
        options={"queue": QUEUE},
    )  # fmt: skip
    return Scheduler(app=application, lazy=True), entry


@pytest.mark.slow
def test_beat_logs_a_lost_broker_once_and_has_no_heartbeat(
    caplog: pytest.LogCaptureFixture,
) -> None:
    forget_heartbeats()
    scheduler, entry = beat("redis+socket:///nonexistent")
    for _ in range(3):
        scheduler.apply_entry(entry)
    (line,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert line.getMessage().startswith("No task can be sent: SchedulingError: ")
    assert line.exc_info is None
    assert not has_heartbeat(BEAT)


@pytest.mark.slow
def test_a_broker_that_refuses_writes_is_connected_to_again(tmp_path: Path) -> None:
    with own_valkey(tmp_path) as (_, url), Connection(url) as connection:
        broker = Redis.from_url(url)
        broker.replicaof("127.0.0.1", "1")  # as in a failover
        with pytest.raises(OperationalError, match="read only replica"):
            connection.ensure_connection(max_retries=1)
        broker.replicaof("NO", "ONE")
        connection.ensure_connection(max_retries=1)
        assert issubclass(ReadOnlyError, connection.connection_errors)


CONNECT = """
import django

django.setup()
from django_redis import get_redis_connection

from konstruct.celery import app

for connect in (get_redis_connection, lambda: app.connection_for_write().default_channel.client):
    try:
        print(connect().ping())
    except Exception as error:
        print(type(error).__name__, error)
"""


@pytest.mark.slow
def test_tls_to_cache_and_broker_verifies_the_certificate(tmp_path: Path) -> None:
    """Without TLS options in the URL kombu would accept each certificate."""

    def connect(url: str) -> list[str]:
        environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "konstruct.settings"}
        ran = run_python(
            "-c",
            CONNECT,
            env={**environment, "REDIS_URL": url, "CELERY_BROKER_URL": ""},
            check=True,
        )
        return ran.stdout.splitlines()

    port = free_port()
    with own_valkey(tmp_path, port=port), tls_in_front(port, tmp_path) as tls:
        trusted = f"ssl_ca_certs={tmp_path}/certificate.pem"
        assert connect(f"rediss://localhost:{tls}/0?{trusted}") == ["True", "True"]
        assert connect(f"rediss://localhost:{tls}/0?ssl_cert_reqs=none") == ["True", "True"]
        for url in (
            f"rediss://localhost:{tls}/0",  # by the certificates of this machine
            f"rediss://127.0.0.1:{tls}/0?{trusted}",  # not the host of the certificate
        ):
            refused = connect(url)
            assert ["certificate verify failed: " in reason for reason in refused] == [True, True]
