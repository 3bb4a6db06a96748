"""A deployment for the doctor: the tests' Postgres and cache, with a heartbeat of each process."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from konstruct.heartbeats import BEAT, OWNER, QUEUES, write_heartbeat
from tests import database
from tests.konstruct.running import forget_heartbeats

# A busy machine must not change the results.
PATIENT = 120


@pytest.fixture
def heartbeats(transactional_db: None) -> Iterator[None]:
    """A heartbeat of each process. They are removed with the settings of the test."""
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
    """Run the command with --json. Return the answers with a status, by default those not ok."""

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


def texts_of_check(answers: list[dict[str, str]], check: str) -> list[str]:
    """Return the texts of a check's answers."""
    return [answer["text"] for answer in answers if answer["check"] == check]


@contextmanager
def silent_server() -> Iterator[int]:
    """Run a server that accepts connections and never answers. Yield its port."""
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
        for name in kept:
            name.close()
