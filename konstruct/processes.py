"""Processes that must not outlive what they belong to, and ending those that did."""

import ctypes
import fcntl
import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from signal import Signals

import psutil

PR_SET_PDEATHSIG = 1
# Looked up once, for little is safe between fork and exec. Linux only; elsewhere nothing is bound,
# and what a killed parent left is cleared at the next start.
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def bind_to_parent(signal: Signals, parent: int) -> None:
    """Let the kernel send this process the signal when its parent dies, even by SIGKILL."""
    if _prctl is None:
        return
    _prctl(PR_SET_PDEATHSIG, int(signal), 0, 0, 0)
    if os.getppid() != parent:  # died before this was arranged
        os._exit(1)


def bound_to_us(signal: Signals) -> Callable[[], None]:
    """A `preexec_fn` that binds the child to this process."""
    parent = os.getpid()
    return lambda: bind_to_parent(signal, parent)


def wait_for_migrations() -> None:
    """Wait while `manage.py serve`, which starts its processes first, migrates.

    It holds a lock on the file that it names to them. Anywhere else there is nothing to wait for.
    """
    if path := os.environ.get("KONSTRUCT_MIGRATING"):
        with open(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH)


def is_alive(process: psutil.Process) -> bool:
    """Whether it still runs. A zombie does not: a container's first process may keep it."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def end(processes: Iterable[psutil.Process], *, seconds: float) -> list[psutil.Process]:
    """Wait so long for the processes to end, then kill them; those that even survived that."""
    processes = list(processes)
    for _ in range(2):
        deadline = time.monotonic() + seconds
        while alive := [process for process in processes if is_alive(process)]:
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)
        for process in alive:
            process.kill()
    return alive


def working_in(directory: Path, name: str) -> list[psutil.Process]:
    """The processes of that name with this working directory."""
    return [
        process
        for process in psutil.process_iter(["name", "cwd"])
        if process.info["name"] == name and process.info["cwd"] == str(directory)
    ]
