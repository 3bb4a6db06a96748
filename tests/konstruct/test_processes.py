"""Processes that die with their parent, and stopping unresponsive ones."""

import ctypes
import fcntl
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from konstruct.processes import is_alive, terminate_all, wait_for_migrations
from tests.konstruct.running import PROJECT, eventually, kill

pytestmark = pytest.mark.long
needs_glibc = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_info"), reason="only glibc has such heaps"
)

SLEEP = "import time; print('up', flush=True); time.sleep(600)"
# Written without a buffer: the signal may arrive while "up" is still being printed.
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

# Eight threads that allocate at once; glibc writes a <heap> for each heap.
ALLOCATING_THREADS = """
import ctypes, threading
from konstruct.processes import share_malloc_heaps
share_malloc_heaps()
libc, together = ctypes.CDLL(None), threading.Barrier(8)
libc.fdopen.restype = libc.malloc.restype = ctypes.c_void_p
def allocate():
    together.wait()
    libc.malloc(100_000)
    together.wait()
threads = [threading.Thread(target=allocate) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
output = ctypes.c_void_p(libc.fdopen(1, b"w"))
libc.malloc_info(0, output)
libc.fflush(output)
"""

# 40 MB of blocks; the last one is kept, so that none of the freed pages is at the end of the heap.
FREEING = """
import ctypes, pathlib, re, time
from konstruct import processes
def anonymous():
    held = pathlib.Path("/proc/self/smaps_rollup").read_text()
    return int(re.search(r"Pss_Anon: *([0-9]+)", held)[1])
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
blocks = [libc.malloc(10_000) for _ in range(4_000)]
for block in blocks: ctypes.memset(block, 1, 10_000)
for block in blocks[:-1]: libc.free(block)
before = anonymous()
processes.TRIM_SECONDS = 0.01
processes.return_freed_memory()
deadline = time.monotonic() + 60
while before - anonymous() < 35_000 and time.monotonic() < deadline:
    time.sleep(0.01)
print(before - anonymous())
"""


def started(code: str) -> subprocess.Popen[str]:
    """Start Python code with readable output."""
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
    assert terminate_all([psutil.Process(stubborn.pid)], seconds=0.2) == []
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
    wait_for_migrations()  # without a server there
    monkeypatch.setenv("KONSTRUCT_MIGRATING", str(tmp_path / "lock"))
    with (tmp_path / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        waiting = threading.Thread(target=wait_for_migrations)
        waiting.start()
        waiting.join(0.05)
        assert waiting.is_alive()
    waiting.join()


@needs_glibc
@pytest.mark.parametrize(("chosen", "heaps"), [("", 2), ("4", 4)])
def test_threads_share_two_heaps_unless_the_environment_says_how_many(
    chosen: str, heaps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MALLOC_ARENA_MAX", chosen)
    if not chosen:
        monkeypatch.delenv("MALLOC_ARENA_MAX")
    info, _ = started(ALLOCATING_THREADS).communicate()
    assert info.count("<heap ") == heaps


@needs_glibc
def test_pages_that_are_freed_within_a_heap_are_returned() -> None:
    returned_kb, _ = started(FREEING).communicate()
    assert int(returned_kb) >= 35_000
