"""Processes that die with their parent, and the ending of those that will not."""

import fcntl
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from konstruct.processes import end, is_alive, wait_for_migrations
from tests.konstruct.running import PROJECT, eventually, kill

pytestmark = pytest.mark.slow

SLEEP = "import time; print('up', flush=True); time.sleep(600)"
# Written without a buffer: the signal may come while "up" is still being printed.
ENDS_IN_ORDER = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b"in order\\n"), sys.exit()))
os.write(1, b"up\\n")
time.sleep(600)
"""
STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
time.sleep(600)
"""


def started(code: str) -> subprocess.Popen[str]:
    """Run Python code, its output to be read."""
    return subprocess.Popen(
        [sys.executable, "-c", code], cwd=PROJECT, stdout=subprocess.PIPE, text=True
    )


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_a_command_that_dies_with_its_parent_is_killed() -> None:
    command = [sys.executable, "-m", "konstruct.local.die_with_parent", sys.executable, "-c", SLEEP]
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


def test_a_child_that_is_bound_by_a_gentler_signal_ends_in_order() -> None:
    parent = started(
        "import signal, subprocess, time\n"
        "from konstruct.processes import bound_to_this_process\n"
        f"command = {[sys.executable, '-c', ENDS_IN_ORDER]!r}\n"
        "subprocess.Popen(command, preexec_fn=bound_to_this_process(signal.SIGTERM))\n"
        "time.sleep(600)\n"
    )
    assert line_of(parent) == "up\n"
    parent.kill()
    assert line_of(parent) == "in order\n"
    parent.communicate()


def test_process_that_ignores_sigterm_is_killed() -> None:
    stubborn = started(STUBBORN)
    line_of(stubborn)
    stubborn.terminate()
    assert end([psutil.Process(stubborn.pid)], seconds=0.2) == []
    stubborn.communicate()
    assert stubborn.returncode == -signal.SIGKILL


def test_a_zombie_is_not_alive() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    zombie = psutil.Process(process.pid)
    eventually(lambda: zombie.status() == psutil.STATUS_ZOMBIE)
    assert not is_alive(zombie)
    process.wait()


def test_process_waits_for_the_migrations_of_serve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_for_migrations()  # where nobody serves
    monkeypatch.setenv("KONSTRUCT_MIGRATING", str(tmp_path / "lock"))
    with (tmp_path / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        waiting = threading.Thread(target=wait_for_migrations)
        waiting.start()
        waiting.join(0.05)
        assert waiting.is_alive()
    waiting.join()
