"""The base class of the embedded services, which are programs of supervisord."""

import abc
import contextlib
import os
from pathlib import Path
from signal import Signals

import psutil

from konstruct.local.embedded.paths import EmbeddedError, home, supervisor_pid_file
from konstruct.processes import bind_to_parent, processes_in, terminate_all

LEFTOVER_SECONDS = 10


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
        return home() / self.name

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
        supervisord = int(supervisor_pid_file().read_text())
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
