"""The memory of a process; processes that end with their parent; ending leftover processes."""

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from signal import Signals
from typing import Final

import psutil

PR_SET_PDEATHSIG = 1
# Looked up at import, because few calls are safe between fork and exec. Linux only; on other
# systems nothing is bound, and leftovers of a killed parent are ended at the next start.
_libc = ctypes.CDLL(None)
_prctl = _libc.prctl if sys.platform == "linux" else None

M_ARENA_MAX: Final = -8  # of malloc.h
# glibc has up to eight heaps for each core. What a thread frees, other heaps cannot use:
# docs/measurements.md, "Mixed load".
MALLOC_HEAPS: Final = 2
# A trim took 12 ms of CPU time where eight threads compute embeddings, at most 54 ms elsewhere, and
# mostly less than one. Every minute was too seldom for the owner worker, which erases within it.
TRIM_SECONDS: Final = 10.0


def share_malloc_heaps() -> None:
    """Let all threads of this process, and its forks, allocate from MALLOC_HEAPS heaps.

    Call it before there are threads. MALLOC_ARENA_MAX in the environment has precedence. Without
    glibc there are no such heaps, and nothing happens.
    """
    if hasattr(_libc, "mallopt") and "MALLOC_ARENA_MAX" not in os.environ:
        _libc.mallopt(M_ARENA_MAX, MALLOC_HEAPS)


def return_freed_memory() -> None:
    """Start a thread that returns freed pages to the kernel, every TRIM_SECONDS.

    By itself glibc returns only those at the end of a heap. Without glibc nothing happens.
    """
    if hasattr(_libc, "malloc_trim"):
        threading.Thread(target=_trim_heaps, name="trim-heaps", daemon=True).start()


def _trim_heaps() -> None:
    # Ends: with the process, of which this is a daemon thread. It pauses between two turns.
    while True:
        time.sleep(TRIM_SECONDS)
        _libc.malloc_trim(0)  # without the GIL


def bind_to_parent(signal: Signals, parent: int) -> None:
    """Let the kernel send this process the signal when its parent dies, even by SIGKILL."""
    if _prctl is None:
        return
    _prctl(PR_SET_PDEATHSIG, int(signal), 0, 0, 0)
    if os.getppid() != parent:  # it died before the call
        os._exit(1)


def bound_to_this_process(signal: Signals) -> Callable[[], None]:
    """Return a `preexec_fn` that binds the child to this process."""
    parent = os.getpid()
    return lambda: bind_to_parent(signal, parent)


def is_alive(process: psutil.Process) -> bool:
    """Return whether it still runs.

    A zombie does not: a container's first process may not reap it.
    """
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def terminate_all(processes: Iterable[psutil.Process], *, seconds: float) -> list[psutil.Process]:
    """Wait for the processes to end, then kill them; return those that are still alive."""
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


def processes_in(directory: Path, name: str) -> list[psutil.Process]:
    """Return the processes with this name and this working directory."""
    return [
        process
        for process in psutil.process_iter(["name", "cwd"])
        if process.info["name"] == name and process.info["cwd"] == str(directory)
    ]


if __name__ == "__main__":
    # `python -m konstruct.processes COMMAND …`: the kernel kills the command with its parent, so
    # that processes of a killed supervisor do not stay as orphans.
    # Process 1 is no supervisor here: it adopts processes whose parent has ended.
    parent = os.getppid()
    bind_to_parent(Signals.SIGKILL, -1 if parent == 1 else parent)
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 (the caller's command is the purpose)
