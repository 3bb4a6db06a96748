"""Processes that die with their parent, and stopping unresponsive ones."""

import subprocess
import sys

import psutil
import pytest

from konstruct.processes import is_alive
from tests.konstruct.running import PROJECT, eventually, kill

pytestmark = pytest.mark.long

SLEEP = "import time; print('up', flush=True); time.sleep(600)"


def started(code: str) -> subprocess.Popen[str]:
    """Start Python code with readable output."""
    return subprocess.Popen(
        [sys.executable, "-c", code], cwd=PROJECT, stdout=subprocess.PIPE, text=True
    )


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_a_command_that_dies_with_its_parent_is_killed() -> None:
    command = [sys.executable, "-m", "konstruct.processes", sys.executable, "-c", SLEEP]
    parent = started(
        "import subprocess\n"
        f"child = subprocess.Popen({command!r}, stdout=subprocess.PIPE)\n"
        "child.stdout.readline()\n"
        "print(child.pid, flush=True)\n"
        "child.wait()\n"
    )
    child = psutil.Process(int(line_of(parent)))
    assert is_alive(child)
    kill(psutil.Process(parent.pid))
    eventually(lambda: not is_alive(child))
    parent.communicate()
