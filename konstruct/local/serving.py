"""Runs web, workers and beat on one machine, under supervisord, during a `with serving(…)` block.

supervisord restarts a process that dies; this process restarts supervisord and the supervisors of
the embedded services. Children of a killed process are killed too (see
konstruct/processes.py), so that there are no orphans.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
from django.conf import settings

from konstruct.heartbeats import WORKERS
from konstruct.local import embedded, services
from konstruct.logs import one_line
from konstruct.processes import bound_to_this_process
from tenants import checks, context
from tenants.exceptions import KonstructError
from tenants.management.base import SOME_TENANTS_FAILED

PROCESSES = ("web", *WORKERS, "beat", "owner")
READY_SECONDS = 120
STOP_SECONDS = 30
POLL_SECONDS = 1.0
ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class ServingError(KonstructError):
    """The server cannot start here. The message has the reason and the remedy."""


@contextlib.contextmanager
def serving(
    *, host: str, port: int, write_line: Callable[[str], None], shows_logs: bool = False
) -> Iterator["Processes"]:
    """Migrate and start; end all processes afterwards, except embedded services that others use.

    A signal to end raises KeyboardInterrupt in the block.

    Args:
        host: address of the web.
        port: of the web.
        write_line: called with each line of this process.
        shows_logs: print the output of the migration, and the lines of all logs as they come.
    """
    for number in ENDING_SIGNALS:
        signal.signal(number, signal.default_int_handler)
    with _only_server_of_this_home():
        _refuse_taken_port(host, port)
        if settings.METRICS_ADDRESS:
            _refuse_taken_port(*settings.METRICS_ADDRESS)
        try:
            for start in settings.EMBEDDED_SERVICES:
                start()
            _migrate(stdout=None if shows_logs else subprocess.DEVNULL)
            # Here, so that the reason is printed once and not in each process's log. The demo runs
            # as the owner, who provisions; its web and workers check the application's role.
            if settings.DB_ROLE == "app":
                checks.refuse_unsafe_role()
                context.connection.close()
            processes = Processes(host, port, write_line, shows_logs)
            try:
                yield processes
            finally:
                processes.stop()
        finally:
            if not embedded.wait_stopped():
                write_line("Postgres or Valkey go on, for another process uses them.")


class Processes:
    """The running processes, their logs under KONSTRUCT_HOME/log."""

    def __init__(
        self, host: str, port: int, write_line: Callable[[str], None], shows_logs: bool
    ) -> None:
        self._url = f"http://{'127.0.0.1' if host == '0.0.0.0' else host}:{port}"  # noqa: S104
        self._write_line = write_line
        self._logs = services.make_home() / "log"
        self._logs.mkdir(mode=0o700, exist_ok=True)
        self._environment = {
            **os.environ,
            "KONSTRUCT_HOST": host,
            "PORT": str(port),
            "KONSTRUCT_DB_ROLE": "app",
            "KONSTRUCT_LOGS": str(self._logs),
            "KONSTRUCT_PYTHON": sys.executable,
            "PYTHONUNBUFFERED": "1",
            # Celery's warning to root is superfluous here.
            "PYTHONWARNINGS": "ignore:You're running the worker with superuser privileges",
        }
        if settings.METRICS_DIR:
            self._environment["METRICS_DIR"] = str(settings.METRICS_DIR)
            for file in settings.METRICS_DIR.glob("*.db"):  # of earlier processes
                file.unlink()
        logs = [self._logs / f"{name}.log" for name in (*PROCESSES, "supervisord")]
        self._tail = subprocess.Popen(
            ["tail", "-F", "-n", "0", *logs],  # noqa: S607
            stdout=None if shows_logs else subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=bound_to_this_process(signal.SIGTERM),
        )
        self._supervisord = self._start()

    def wait_ready(self) -> None:
        """Wait until the web answers, and finds a heartbeat of each other process."""
        deadline = time.monotonic() + READY_SECONDS
        while not self._is_ready():
            self._check_processes()
            if time.monotonic() > deadline:
                raise ServingError(
                    f"{self._url} is not ready after {READY_SECONDS} seconds: see {self._logs}"
                )

    def wait(self) -> None:
        """Show the output of the processes and keep them running, until a signal."""
        # Ends: by a signal.
        while True:
            try:
                self._check_processes()
            except KonstructError as error:  # such as a full disk: it is tried until it is over
                self._write_line(one_line(f"Not all processes run: {error}"))

    def stop(self) -> None:
        """End all processes: in order, or immediately after a second signal."""
        with contextlib.suppress(BrokenPipeError):
            self._write_line(
                "Stopping: workers give their jobs back, Postgres and Valkey write their data: up "
                f"to {STOP_SECONDS} seconds. A second Ctrl-C kills the workers at once."
            )
        for number in ENDING_SIGNALS:
            signal.signal(number, lambda *_: self._supervisord.kill())
        self._supervisord.terminate()
        # It kills what has not ended in time. If it is killed itself, so are its children.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._supervisord.wait(STOP_SECONDS)
        self._supervisord.kill()
        self._supervisord.wait()
        time.sleep(POLL_SECONDS)  # for the last lines
        self._tail.terminate()
        self._tail.wait()

    def _start(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            embedded.supervisord_command("supervisord.conf"),
            cwd=settings.BASE_DIR,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for this process, which ends the others in order
            preexec_fn=bound_to_this_process(signal.SIGTERM),
        )

    def _check_processes(self) -> None:
        """Check all processes once, and restart ended ones."""
        time.sleep(POLL_SECONDS)
        if self._tail.poll() is not None:  # the output was closed, as by `serve | head`
            raise KeyboardInterrupt
        if self._supervisord.poll() is not None:
            status, self._supervisord = self._supervisord.returncode, self._start()
            if status > 0:
                raise ServingError(f"supervisord has ended: see {self._logs}")
        for start in settings.EMBEDDED_SERVICES:
            start()

    def _is_ready(self) -> bool:
        try:
            answer = httpx.get(f"{self._url}/health/ready", timeout=5)
        except httpx.TransportError:
            return False
        return answer.is_success and "missing" not in answer.text


@contextlib.contextmanager
def _only_server_of_this_home() -> Iterator[None]:
    """Hold the lock of this home's server, with the process id for `make stop`."""
    services.make_home()
    path = services.serve_lock()
    descriptor = embedded.try_lock(path, shared=False)
    if descriptor is None:
        raise ServingError(
            f"Konstruct already runs here (process {path.read_text().strip()}): `make stop` ends it"
        )
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _refuse_taken_port(host: str, port: int) -> None:
    """Raise if the web could not listen there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ServingError(
                f"cannot listen at {host}:{port} ({error.strerror}): "
                f"choose another port, for example PORT={port % 65535 + 1}"
            ) from error


def _migrate(stdout: int | None) -> None:
    """Migrate all schemas, in a process with the owner's role."""
    environment = {name: value for name, value in os.environ.items() if name != "KONSTRUCT_DB_ROLE"}
    migrated = subprocess.run(
        [sys.executable, Path(settings.BASE_DIR, "manage.py"), "migrate"],
        env=environment,
        stdout=stdout,
        start_new_session=True,
        preexec_fn=bound_to_this_process(signal.SIGTERM),
        check=False,
    )
    # A tenant that is behind is not served; the others are.
    if migrated.returncode not in (0, SOME_TENANTS_FAILED):
        raise ServingError("migrate failed, see above")
