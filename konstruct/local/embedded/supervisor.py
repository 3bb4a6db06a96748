"""The process that starts one embedded service, restarts it when it dies, and stops it in the end.

It ends with the last user, on SIGTERM, or when the home is removed. Users spawn it (users.py);
nobody waits for it. What the supervisor writes into its lock file, `<process id> <status>`, is true
as long as the file is locked; "failed" stays there for the users to read.
"""

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
import traceback
from pathlib import Path
from types import FrameType

from konstruct.local.embedded.errors import EmbeddedError
from konstruct.local.embedded.locks import is_file, try_lock
from konstruct.local.embedded.paths import make_home, make_socket_directory
from konstruct.local.embedded.service import Service

TICK_STARTING = 0.05
TICK_RUNNING = 0.25
STOP_SECONDS = 30
# A server that dies this many times without having answered is not started again.
ATTEMPTS = 3


def supervise(service: Service) -> int:
    """Run the service until nobody uses it; the exit status."""
    make_home()
    lock = _patient_lock(service.supervisor, seconds=0.5)
    if lock is None:
        return 0  # another supervisor was faster
    try:
        _Supervisor(service, lock).run()
    except Exception:  # whatever it is, the users are waiting to be told
        traceback.print_exc()
        _write_status(lock, "failed")
        return 1
    return 0


class _Supervisor:
    def __init__(self, service: Service, lock: int) -> None:
        self.service = service
        self.lock = lock
        self.process: subprocess.Popen[bytes] | None = None
        self.ready = False
        self.stopping = False
        self.wakes, wake = socket.socketpair()
        for end in (self.wakes, wake):
            end.setblocking(False)
        self.wake = wake  # kept open
        signal.set_wakeup_fd(wake.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._ask_to_stop)

    def _ask_to_stop(self, number: int, frame: FrameType | None) -> None:
        self.stopping = True

    def run(self) -> None:
        """Supervise, then stop the service while no new user can come in."""
        self._status("starting")
        socket_lock, socket_lock_path = _lock_sockets(self.service.name)
        users = None
        failures = 0
        try:
            while not self.stopping:
                if not is_file(self.lock, self.service.supervisor):
                    return  # the home was removed: nobody can find this service any more
                if not is_file(socket_lock, socket_lock_path):
                    return  # the sockets were: the next user starts another supervisor
                users = try_lock(self.service.users, shared=False)
                if users is not None:
                    return
                if self.process is None or self.process.poll() is not None:
                    if self.process is not None and not self.ready:
                        failures += 1
                    if failures == ATTEMPTS:
                        raise EmbeddedError(f"{self.service.name} does not start")
                    self._status("starting")
                    self.ready = False
                    self.service.prepare()
                    self.process = self.service.launch()
                elif not self.ready and self.service.answers():
                    self.service.settle()
                    self.ready = True
                    failures = 0
                    self._status("ready")
                self._wait(TICK_RUNNING if self.ready else TICK_STARTING)
        finally:
            self._stop()
            _remove_sockets(socket_lock, socket_lock_path)
            # Locked until here, so that no new user takes a stopping server for a running one.
            if users is not None:
                os.close(users)

    def _stop(self) -> None:
        if self.process is None or self.process.poll() is not None:
            return
        if is_file(self.lock, self.service.supervisor):
            self._status("stopping")
        self.process.send_signal(self.service.stop_signal)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _status(self, status: str) -> None:
        _write_status(self.lock, status)

    def _wait(self, seconds: float) -> None:
        """Until something happens to the server or to us, at most so long."""
        select.select([self.wakes], [], [], seconds)
        with contextlib.suppress(BlockingIOError):
            self.wakes.recv(64)


def _write_status(lock: int, status: str) -> None:
    # Of one length, so that a reader never sees the end of an older one.
    os.pwrite(lock, f"{os.getpid()} {status}".ljust(32).encode(), 0)


def _lock_sockets(name: str) -> tuple[int, Path]:
    """A lock in the directory of the sockets, where a supervisor of a removed home may still be."""
    deadline = time.monotonic() + STOP_SECONDS
    # Ends: at the deadline.
    while True:
        with contextlib.suppress(FileNotFoundError):  # another supervisor removed the directory
            path = make_socket_directory() / f"{name}.lock"
            descriptor = try_lock(path, shared=False)
            if descriptor is not None:
                return descriptor, path
        if time.monotonic() > deadline:
            raise EmbeddedError(f"{path} is locked: is another {name} on it?")
        time.sleep(TICK_STARTING)


def _remove_sockets(lock: int, path: Path) -> None:
    """Remove our lock, and the directory with the last one."""
    if is_file(lock, path):
        path.unlink()
    with contextlib.suppress(OSError):
        path.parent.rmdir()


def _patient_lock(path: Path, seconds: float) -> int | None:
    """An exclusive lock, tried for a while: users probe the supervisor's lock now and then."""
    deadline = time.monotonic() + seconds
    # Ends: at the deadline.
    while True:
        descriptor = try_lock(path, shared=False)
        if descriptor is not None or time.monotonic() > deadline:
            return descriptor
        time.sleep(0.02)


def detach() -> None:
    """Go on in a child of nobody: a user must neither wait for its supervisor nor be waited for."""
    if os.fork():
        os._exit(0)
    os.setsid()
    sys.stdout.flush()
