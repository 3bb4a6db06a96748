"""A worker survives the loss of its broker with any state on the lost connection."""

import logging
import os
import pickle
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from celery import Celery
from celery.beat import ScheduleEntry
from celery.schedules import schedule
from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore
from django.core import signing
from django.core.cache import cache
from django_redis import get_redis_connection
from kombu import Connection
from kombu.exceptions import ContentDisallowed, OperationalError
from kombu.message import Message
from redis import Redis
from redis.exceptions import ReadOnlyError

from konstruct.celery import Scheduler, app
from konstruct.heartbeats import BEAT, has_heartbeat
from tenants.context import tenant_scope
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


class Runs:
    """Creates a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def test_a_pickle_in_the_cache_is_not_loaded(tmp_path: Path) -> None:
    attack = pickle.dumps(Runs(tmp_path / "made"))
    with tenant_scope(uuid4()):
        cache.set("key", {"a": [1, "b"]})
        assert cache.get("key") == {"a": [1, "b"]}
        get_redis_connection("default").set(cache.make_key("key"), attack)
        with pytest.raises(ValueError, match="decode"):
            cache.get("key")
        assert not (tmp_path / "made").exists()
        cache.delete("key")


def test_a_pickle_in_the_broker_is_not_loaded(tmp_path: Path) -> None:
    message = Message(
        body=pickle.dumps(((), {}, Runs(tmp_path / "made"))),
        content_type="application/x-python-serialize",
        content_encoding="binary",
        accept=app.conf.accept_content,
    )
    with Connection("memory://"), pytest.raises(ContentDisallowed):
        message.decode()
    assert app.conf.accept_content == ["json"]
    assert app.conf.task_serializer == "json"
    assert not (tmp_path / "made").exists()


@pytest.mark.django_db
def test_a_pickle_in_a_login_session_is_not_loaded(tmp_path: Path) -> None:
    class Pickled:
        def dumps(self, value: Any) -> bytes:
            return pickle.dumps(value)

    row = signing.dumps(
        Runs(tmp_path / "made"), salt="django.contrib.sessions.SessionStore",
        serializer=Pickled, compress=True,
    )  # fmt: skip
    assert SessionStore().decode(row) == {}
    assert not (tmp_path / "made").exists()
    assert settings.SESSION_SERIALIZER.endswith(".JSONSerializer")
