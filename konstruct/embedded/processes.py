"""Processes that must not outlive what they belong to."""

import ctypes
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from signal import Signals

import psutil

from konstruct.embedded.errors import EmbeddedError

PR_SET_PDEATHSIG = 1
LEFTOVER_SECONDS = 10


def die_with_parent(signal: Signals) -> Callable[[], None]:
    """A `preexec_fn`: the kernel sends the child this signal when we die, even by SIGKILL.

    Linux only. Elsewhere it does nothing, and what was left is cleared at the next start.
    """
    if sys.platform != "linux":
        return lambda: None
    parent = os.getpid()
    prctl = ctypes.CDLL(None).prctl  # looked up here: little is safe between fork and exec

    def arrange() -> None:
        prctl(PR_SET_PDEATHSIG, int(signal), 0, 0, 0)
        if os.getppid() != parent:  # died before the arrangement
            os._exit(1)

    return arrange


def clear_leftovers(executable: str, directory: Path, stop_signal: Signals) -> None:
    """End the processes of that name whose working directory is this one: a dead guardian's."""
    found = [
        process
        for process in psutil.process_iter(["name", "cwd"])
        if process.info["name"] == executable and process.info["cwd"] == str(directory)
    ]
    # First the parents alone: a postmaster that is asked to stop ends its own children properly.
    parents = [one for one in found if one.ppid() not in {other.pid for other in found}]
    for processes, signal in ((parents, stop_signal), (found, Signals.SIGKILL)):
        for process in filter(is_alive, processes):
            process.send_signal(signal)
        deadline = time.monotonic() + LEFTOVER_SECONDS
        while any(map(is_alive, found)):
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)
        else:
            return
    raise EmbeddedError(f"cannot end the left-over {executable} in {directory}: {found}")


def is_alive(process: psutil.Process) -> bool:
    """Whether it still runs. A zombie does not: a container's first process may keep it."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
