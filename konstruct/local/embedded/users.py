"""The users' side of the embedded services: register, start a supervisor, await readiness, leave.

A user holds a shared lock on `<service>.users` in the home. The kernel frees it when the process
dies, and a forked child inherits it.
"""

import contextlib
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from konstruct.local.embedded import paths
from konstruct.local.embedded.errors import EmbeddedError
from konstruct.local.embedded.locks import is_file, is_locked, try_lock
from konstruct.local.embedded.postgres import Postgres
from konstruct.local.embedded.service import Service
from konstruct.local.embedded.valkey import Valkey

SERVICES: dict[str, Service] = {service.name: service for service in (Postgres(), Valkey())}
START_SECONDS = 180  # a first start on a busy machine; what fails is told at once
STOP_SECONDS = 60
POLL_SECONDS = 0.05

# The descriptors of this process's user locks, by lock file (a test may change KONSTRUCT_HOME).
_held: dict[str, int] = {}
_registering = threading.Lock()


def _forget_threads() -> None:
    """In a forked child no other thread is left that could free the lock."""
    global _registering
    _registering = threading.Lock()


os.register_at_fork(after_in_child=_forget_threads)


def ensure_postgres() -> None:
    """Return when the embedded Postgres takes connections; starts it if need be."""
    _ensure(SERVICES["postgres"])


def ensure_valkey() -> None:
    """Return when the embedded Valkey takes connections; starts it if need be."""
    _ensure(SERVICES["valkey"])


def ensure() -> None:
    """Return when both services take connections."""
    ensure_postgres()
    ensure_valkey()


def release() -> None:
    """Stop being a user. Children forked before are still users themselves."""
    while _held:
        _, descriptor = _held.popitem()
        with contextlib.suppress(OSError):
            os.close(descriptor)  # never LOCK_UN: that would free the forked children's lock too


def wait_stopped() -> bool:
    """Release, and wait until the services are gone; False when somebody else still uses one."""
    release()
    stopped = [_wait_stopped(service) for service in SERVICES.values()]
    return all(stopped)


def stop() -> bool:
    """Stop this home's server and services, whoever uses them; whether there was any."""
    release()
    # The server first: it would start the services again.
    holders = [paths.serve_lock(), *(service.supervisor for service in SERVICES.values())]
    stopped = [_stop_holder(lock) for lock in holders]
    return any(stopped)


def _stop_holder(lock: Path) -> bool:
    """End the process that holds the lock, whose id is in it; whether there was one."""
    if not is_locked(lock):
        return False
    deadline = time.monotonic() + STOP_SECONDS
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(int(lock.read_text().split()[0])).terminate()
    while is_locked(lock):
        if time.monotonic() > deadline:
            raise EmbeddedError(f"{lock} is still held by process {lock.read_text()}")
        time.sleep(POLL_SECONDS)
    return True


@dataclass(frozen=True)
class _Status:
    """What the supervisor wrote last, and when (0: never)."""

    pid: int = 0
    word: str = ""
    written: int = 0


def _status(service: Service) -> _Status:
    try:
        written = service.supervisor.stat().st_mtime_ns
        pid, word = service.supervisor.read_text().split()
        return _Status(int(pid), word, written)
    except (FileNotFoundError, ValueError):
        return _Status()


def _ensure(service: Service) -> None:
    deadline = time.monotonic() + START_SECONDS
    paths.make_home()
    _register(service, deadline)
    before = _status(service)
    # Ends: at the deadline.
    while True:
        status = _status(service)
        if is_locked(service.supervisor):
            if status.word == "ready" and service.answers():
                return
        elif status.word == "failed" and status.written != before.written:
            raise EmbeddedError(
                f"the embedded {service.name} did not start; {service.log} ends with:\n"
                f"{service.log_tail()}"
            )
        else:
            _spawn_supervisor(service)
        if time.monotonic() > deadline:
            raise EmbeddedError(
                f"the embedded {service.name} is not ready after {START_SECONDS} seconds; "
                f"{service.log} ends with:\n{service.log_tail()}"
            )
        time.sleep(POLL_SECONDS)


def _register(service: Service, deadline: float) -> None:
    """Hold the user's lock; waits while a supervisor that found no user is stopping the service."""
    key = str(service.users)
    with _registering:
        if key in _held and is_file(_held[key], service.users):
            return
        _held.pop(key, None)  # removed, or closed by a program that closes all files after a fork
        # Ends: at the deadline.
        while True:
            descriptor = try_lock(service.users, shared=True)
            if descriptor is not None:
                _held[key] = descriptor
                return
            if time.monotonic() > deadline:
                raise EmbeddedError(f"{service.users} stays locked:\n{service.log_tail()}")
            time.sleep(POLL_SECONDS)


def _spawn_supervisor(service: Service) -> None:
    """Start a supervisor; when several users do, one of them wins and the others' end at once."""
    with service.open_log() as log:
        subprocess.run(
            [sys.executable, "-m", "konstruct.local.embedded", "supervise", service.name],
            cwd=paths.PROJECT,
            env={**os.environ, "KONSTRUCT_HOME": str(paths.home())},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            check=True,
        )


def _wait_stopped(service: Service) -> bool:
    deadline = time.monotonic() + STOP_SECONDS
    while is_locked(service.supervisor):
        mine = try_lock(service.users, shared=True)
        if mine is not None:
            os.close(mine)
            sole = try_lock(service.users, shared=False)
            if sole is None:
                return False
            os.close(sole)
        if time.monotonic() > deadline:
            raise EmbeddedError(f"{service.name} does not stop:\n{service.log_tail()}")
        time.sleep(POLL_SECONDS)
    return True
