"""Helpers of tests with real processes: waiting, killing, and listing processes."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from django_redis import get_redis_connection

from konstruct.heartbeats import BEAT, OWNER, QUEUES
from konstruct.processes import is_alive

PROJECT = Path(__file__).resolve().parents[2]


def run_python(*arguments: Any, **options: Any) -> "subprocess.CompletedProcess[Any]":
    """Run Python at the root of the project. The options are those of `subprocess.run`."""
    usual: dict[str, Any] = {"cwd": PROJECT, "capture_output": True, "text": True, "check": False}
    return subprocess.run([sys.executable, *arguments], **usual | options)


def eventually(condition: Callable[[], bool]) -> None:
    """Wait for the condition. Two minutes without it are a failure on any machine."""
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in two minutes"
        time.sleep(0.05)


def forget_heartbeats() -> None:
    """Remove the heartbeats of workers, beat and owner worker until their next ones."""
    names = (*QUEUES, BEAT, OWNER)
    get_redis_connection().delete(*(f"public:heartbeat:{name}" for name in names))


def kill(process: psutil.Process) -> None:
    """Kill it, and wait until it is dead: a signal is only sent."""
    process.kill()
    eventually(lambda: not is_alive(process))


def processes_in(home: Path) -> list[str]:
    """Return names of the server processes of the home, and of its supervisord."""
    servers = [
        process.info["name"]
        for process in psutil.process_iter(["name", "cwd"])
        if Path(process.info["cwd"] or "/").is_relative_to(home.resolve())
    ]
    # supervisord removes the file when it ends, unless it was killed.
    pid_file = home / "supervisord.pid"
    if pid_file.exists() and psutil.pid_exists(int(pid_file.read_text())):
        servers.append("supervisord")
    return servers
