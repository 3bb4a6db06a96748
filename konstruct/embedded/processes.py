"""Processes that must not outlive what they belong to."""

import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path
from signal import Signals

import psutil

from konstruct.embedded.errors import EmbeddedError

PR_SET_PDEATHSIG = 1


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
        for process in processes:
            if process.is_running():
                process.send_signal(signal)
        _, alive = psutil.wait_procs(found, timeout=10)
        if not alive:
            return
    raise EmbeddedError(f"cannot end the left-over {executable} in {directory}: {alive}")
