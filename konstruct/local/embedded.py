"""Starts and stops the embedded services, which one supervisord of each home runs.

`ensure_postgres` and `ensure_valkey` start a service that does not run, and register this process
as its user. A service stops when its last user has ended. docs/operations.md describes it.
`python -m konstruct.local.embedded` stops the services, or runs a tool on them.

A process that uses a service holds a shared lock on `users.lock` in the home. The kernel frees it
when the process ends, and a forked child inherits it. A program of supervisord (`watch_users`)
waits until it can lock the file exclusively, that is, until no process uses the services, and then
ends supervisord.
"""

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xmlrpc.client import Fault, ServerProxy

import psutil

from konstruct.local import services
from konstruct.local.services import EmbeddedError, Service
from konstruct.processes import bind_to_parent

SERVICES: dict[str, Service] = {
    service.name: service for service in (services.Postgres(), services.Valkey())
}
# Exit status of a service that cannot be started: see deploy/embedded.conf.
CANNOT_START = 78
# The end of a service's log, in the error that it does not start.
LOG_BYTES = 2000
START_SECONDS = 180  # a first start on a busy machine; a failure is reported at once
STOP_SECONDS = 60
POLL_SECONDS = 0.05
WATCH_SECONDS = 0.25

# The descriptors of this process's user locks, by lock file (a test may change KONSTRUCT_HOME).
_held: dict[Path, int] = {}


def ensure_postgres() -> None:
    """Start the embedded Postgres if necessary, and wait until it takes connections."""
    _ensure(SERVICES["postgres"])


def ensure_valkey() -> None:
    """Start the embedded Valkey if necessary, and wait until it takes connections."""
    _ensure(SERVICES["valkey"])


def ensure() -> None:
    """Start both services if necessary, and wait until they take connections."""
    ensure_postgres()
    ensure_valkey()


def release() -> None:
    """Unregister this process. Children that were forked before are users themselves."""
    while _held:
        _, descriptor = _held.popitem()
        with contextlib.suppress(OSError):
            os.close(descriptor)  # never LOCK_UN: that would free the forked children's lock too


def wait_stopped() -> bool:
    """Unregister, and wait until the services have stopped; False if another process uses them."""
    release()
    deadline = time.monotonic() + STOP_SECONDS
    while supervisor_runs():
        # If not even a shared lock is possible, `watch_users` is stopping the services.
        if shared := try_lock(services.users_lock(), shared=True):
            os.close(shared)
            exclusive = try_lock(services.users_lock(), shared=False)
            if exclusive is None:
                return False
            os.close(exclusive)
        _pause_until(deadline, "the embedded services do not stop")
    return True


def stop() -> bool:
    """Stop this home's server and services, even if they are in use; return whether any ran."""
    release()
    deadline = time.monotonic() + STOP_SECONDS
    # The server first: it would start the services again.
    was_serving, lock = is_locked(services.serve_lock()), services.serve_lock()
    if was_serving:
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(int(lock.read_text())).terminate()
        while is_locked(lock):
            _pause_until(deadline, f"{lock} is still held by process {lock.read_text()}")
    was_running = supervisor_runs()
    if was_running:
        with contextlib.suppress(OSError), _supervisor() as supervisor:
            supervisor.shutdown()
        while supervisor_runs():
            _pause_until(deadline, "the embedded services do not stop")
    return was_serving or was_running


def supervisor_runs() -> bool:
    """Return whether this home's supervisord answers; it does until its programs have stopped."""
    # A renamed home may still have its supervisord, on sockets with the same name.
    if not services.supervisor_pid_file().exists():
        return False
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(services.supervisor_socket())) == 0


def watch_users() -> None:
    """End supervisord, the parent process, with the last user or when the home was removed.

    supervisord stops this program last, so that the exclusive lock keeps new users waiting until
    the services have stopped.
    """
    # Not os.getppid(): if supervisord was just killed, that is the adopting process.
    supervisord = int(services.supervisor_pid_file().read_text())
    bind_to_parent(signal.SIGKILL, supervisord)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    path, exclusive = services.users_lock(), None
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while (
            exclusive is None
            and _is_file(descriptor, path)
            and services.supervisor_socket().exists()
        ):
            time.sleep(WATCH_SECONDS)
            with contextlib.suppress(FileNotFoundError):  # the home was removed
                exclusive = try_lock(path, shared=False)
        os.kill(supervisord, signal.SIGTERM)
        signal.pause()
    finally:
        with contextlib.suppress(OSError):
            services.socket_directory().rmdir()


def try_lock(path: Path, *, shared: bool) -> int | None:
    """Lock the file, created if missing; return its descriptor, or None if another lock conflicts.

    The kernel frees the lock when its last holder ends. Forked children hold it too, executed
    programs do not.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def is_locked(path: Path) -> bool:
    """Return whether a process holds an exclusive lock on the file."""
    if not path.exists():
        return False
    descriptor = try_lock(path, shared=True)
    if descriptor is None:
        return True
    os.close(descriptor)
    return False


def _ensure(service: Service) -> None:
    """Register as a user, then start the service if it does not answer."""
    deadline = time.monotonic() + START_SECONDS
    services.make_home()
    with _starting():
        _register(deadline)
        is_requested = False
        while not (supervisor_runs() and service.is_ready()):
            if not supervisor_runs():
                _start_supervisor()
            with contextlib.suppress(OSError), _supervisor() as supervisor:
                process_info = supervisor.getProcessInfo(service.name)
                has_failed = process_info["statename"] == "FATAL" or (
                    process_info["statename"] == "EXITED"
                    and process_info["exitstatus"] == CANNOT_START
                )
                if is_requested and has_failed:
                    end = supervisor.readProcessStdoutLog(service.name, -LOG_BYTES, 0)
                    raise EmbeddedError(
                        f"the embedded {service.name} did not start; its log ends with:\n{end}"
                    )
                if has_failed or process_info["statename"] == "STOPPED":
                    supervisor.startProcess(service.name, False)
                is_requested = True
            _pause_until(
                deadline,
                f"the embedded {service.name} is not ready after {START_SECONDS} seconds: see "
                f"{services.home()}/{service.name}.log",
            )
        service.finish_setup()


@contextlib.contextmanager
def _starting() -> Iterator[None]:
    """Let one thread of one process of this home at a time start services."""
    with (services.home() / "starting.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            # Closing it would keep it locked as long as a child that was forked meanwhile.
            fcntl.flock(file, fcntl.LOCK_UN)


def _register(deadline: float) -> None:
    """Hold the user's lock; waits while supervisord stops the services after its last user."""
    path = services.users_lock()
    if path in _held and _is_file(_held[path], path):
        return
    _held.pop(path, None)  # removed, or closed by a program that closes all files after a fork
    while (descriptor := try_lock(path, shared=True)) is None:
        _pause_until(deadline, f"{path} stays locked")
    _held[path] = descriptor


def supervisord_command(configuration: str) -> list[str]:
    """Return the command of a supervisord with this file of deploy/."""
    command = [sys.executable, "-m", "supervisor.supervisord", "--configuration"]
    command.append(str(services.PROJECT / "deploy" / configuration))
    return [*command, "--user", "root"] if os.geteuid() == 0 else command  # otherwise it warns


def _start_supervisor() -> None:
    """Start supervisord, which detaches itself when its socket takes connections.

    Does nothing while the supervisord of a renamed or removed home is still stopping.
    """
    services.make_socket_directory()
    result = subprocess.run(
        supervisord_command("embedded.conf"),
        cwd=services.PROJECT,
        env={
            **os.environ,
            "KONSTRUCT_HOME": str(services.home()),
            "KONSTRUCT_SUPERVISOR": str(services.supervisor_socket()),
            "KONSTRUCT_PYTHON": sys.executable,
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode and "already listening" not in result.stdout + result.stderr:
        raise EmbeddedError(f"supervisord does not start: {result.stdout}{result.stderr}")


@contextlib.contextmanager
def _supervisor() -> Iterator[Any]:
    """Open the XML-RPC interface of supervisord, https://supervisord.org/api.html."""
    from supervisor.xmlrpc import Faults, SupervisorTransport  # not needed where it runs already

    transport = SupervisorTransport(serverurl=f"unix://{services.supervisor_socket()}")
    try:
        with ServerProxy("http://localhost", transport) as proxy:
            yield proxy.supervisor
    except Fault as fault:
        if fault.faultCode != Faults.SHUTDOWN_STATE:
            raise EmbeddedError(f"supervisord refuses: {fault.faultString}") from fault


def _is_file(descriptor: int, path: Path) -> bool:
    """Return whether the descriptor is open and is still this file."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def _pause_until(deadline: float, error: str) -> None:
    if time.monotonic() > deadline:
        raise EmbeddedError(error)
    time.sleep(POLL_SECONDS)


# --- The command ---------------------------------------------------------------------------------

USAGE = """usage: python -m konstruct.local.embedded stop
       python -m konstruct.local.embedded tool (psql | pg_dump | pg_restore | …) [arguments]"""


def run_tool(name: str, arguments: list[str]) -> int:
    """Run a program of Postgres as the superuser on the embedded database; return its exit
    status.
    """
    tool = services.binaries() / name
    if not tool.exists():
        names = ", ".join(sorted(path.name for path in services.binaries().iterdir()))
        raise EmbeddedError(f"there is no {name}; there are {names}")
    ensure_postgres()
    connection = {
        "PGHOST": str(services.socket_directory()),
        "PGPORT": services.SETTINGS["port"],
        "PGUSER": services.ROLES["superuser"],
        "PGPASSFILE": str(services.password_file("superuser")),
        "PGDATABASE": services.DATABASE,
    }
    # Not by exec, which would free the user's lock, and stop Postgres with its last user.
    return subprocess.run([tool, *arguments], env={**os.environ, **connection}).returncode


if __name__ == "__main__":
    try:
        match sys.argv[1:]:
            # The programs of deploy/embedded.conf.
            case ["run", name] if name in SERVICES:
                SERVICES[name].run()
            case ["watch"]:
                watch_users()
            case ["stop"]:
                stop()
            case ["tool", name, *arguments]:
                sys.exit(run_tool(name, arguments))
            case _:
                print(USAGE, file=sys.stderr)  # noqa: T201 (a command's usage)
                sys.exit(2)
    except EmbeddedError as error:
        print(f"konstruct.local.embedded: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(CANNOT_START if sys.argv[1] == "run" else 1)
