"""A home of the embedded services, and other processes that use it."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from konstruct.local import embedded
from tests.konstruct.local.embedded.services import USER, wait_ready
from tests.konstruct.running import PROJECT, eventually, processes_in


@pytest.fixture(scope="session")
def cluster_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("embedded") / "home"


@pytest.fixture(autouse=True)
def suites_services() -> Iterator[None]:
    """Keep the services of the test run in use, even if a test releases them."""
    held = dict(embedded._held)
    embedded._held.clear()
    yield
    embedded.release()
    embedded._held.update(held)


@pytest.fixture
def home(cluster_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home with a cluster and no running process."""
    monkeypatch.setenv("KONSTRUCT_HOME", str(cluster_home))
    yield cluster_home
    embedded.stop()
    eventually(lambda: processes_in(cluster_home) == [])


@pytest.fixture
def new_user() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start another process that uses the services until its standard input is closed."""
    started = []

    def start(home: Path, *, wait: bool = True) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", USER],
            cwd=PROJECT,
            env={**os.environ, "KONSTRUCT_HOME": str(home)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        if wait:
            wait_ready(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
