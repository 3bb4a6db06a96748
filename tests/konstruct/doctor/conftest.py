"""A deployment for the doctor: the tests' Postgres and cache, with a heartbeat of each process."""

import json
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from redis import Redis
from redis.exceptions import ConnectionError as NotYet

from konstruct.heartbeats import BEAT, OWNER, QUEUES, write_heartbeat
from konstruct.local.embedded.valkey import server
from tests import database
from tests.konstruct.running import eventually, forget_heartbeats

# However busy the machine is: these tests are about answers.
PATIENT = 120


@pytest.fixture
def heartbeats(transactional_db: None) -> Iterator[None]:
    """A heartbeat of each process. They are removed when the settings of the test are."""
    for process in (*QUEUES, BEAT, OWNER):
        write_heartbeat(process)
    yield
    forget_heartbeats()


@pytest.fixture(autouse=True)
def deployment(heartbeats: None, settings: Any) -> None:
    settings.APPLICATION_DATABASE_URL = database.url_of("app")
    settings.OWNER_DATABASE_URL = database.url_of("owner")


Examine = Callable[..., list[dict[str, str]]]


@pytest.fixture
def examine(capsys: pytest.CaptureFixture[str]) -> Examine:
    """Run the command with --json; return the answers of a status, by default those not ok."""

    def run(*options: str, status: str = "") -> list[dict[str, str]]:
        capsys.readouterr()
        with suppress(CommandError):
            call_command("doctor", "--json", f"--timeout={PATIENT}", *options)
        report = json.loads(capsys.readouterr().out)
        return [
            answer
            for answer in report["answers"]
            if (answer["status"] == status if status else answer["status"] != "ok")
        ]

    return run


def cache_at(url: str) -> dict[str, dict[str, Any]]:
    """Return the setting CACHES with another server."""
    return {"default": {**settings.CACHES["default"], "LOCATION": url}}


def told(answers: list[dict[str, str]], check: str) -> list[str]:
    """Return the texts of a check's answers."""
    return [answer["text"] for answer in answers if answer["check"] == check]


@contextmanager
def silent_server() -> Iterator[int]:
    """Run a server that takes connections and never answers; yield its port."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        kept: list[socket.socket] = []

        def take() -> None:
            while True:
                try:
                    kept.append(listening.accept()[0])
                except OSError:
                    return

        threading.Thread(target=take, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
        for each in kept:
            each.close()


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port: int = free.getsockname()[1]
    return port


@contextmanager
def own_valkey(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Run a Valkey with these options; yield its process and its URL."""
    port = free_port()
    command = [server(), "--port", str(port), "--bind", "127.0.0.1", "--dir", folder, *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        eventually(lambda: _answers(port))
        yield process, f"redis://127.0.0.1:{port}/0"
    finally:
        process.kill()
        process.wait()


def _answers(port: int) -> bool:
    with closing(Redis(port=port)) as client:
        try:
            return bool(client.ping())
        except NotYet:
            return False
