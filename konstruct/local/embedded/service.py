"""What the supervisor and the users have to know of an embedded service, whichever it is."""

import abc
import contextlib
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from signal import Signals
from types import MappingProxyType
from typing import BinaryIO

import psutil

from konstruct.local.embedded.errors import EmbeddedError
from konstruct.local.embedded.paths import home, make_home
from konstruct.processes import bound_to_us, end, working_in

# Nothing of the caller's environment (PGPORT, PGDATA, LC_ALL ...) may change what a server does.
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C"}
LEFTOVER_SECONDS = 10
LARGEST_LOG = 10_000_000  # bytes; the log before it is kept as <name>.log.1


class Service(abc.ABC):
    """A server with its data directory, log and locks under the home."""

    name: str
    executable: str  # as the kernel calls the process
    stop_signal: Signals

    @property
    def data(self) -> Path:
        """The data directory, which is also the working directory of all its processes."""
        return home() / self.name

    @property
    def log(self) -> Path:
        """What the server and its supervisor print."""
        return home() / f"{self.name}.log"

    @property
    def users(self) -> Path:
        """Locked shared by every process that uses the service."""
        return home() / f"{self.name}.users"

    @property
    def supervisor(self) -> Path:
        """Locked by the one supervisor, which writes its process id and status into it."""
        return home() / f"{self.name}.guardian"  # so named by older versions that may be running

    @abc.abstractmethod
    def prepare(self) -> None:
        """Make the data directory if there is none, and clear away what a killed server left."""

    @abc.abstractmethod
    def launch(self) -> subprocess.Popen[bytes]:
        """Start the server; not waited for."""

    @abc.abstractmethod
    def answers(self) -> bool:
        """Whether the server takes connections now."""

    @abc.abstractmethod
    def settle(self) -> None:
        """Finish what needs an answering server, before anybody else may use it."""

    def clear_leftovers(self) -> None:
        """End what a killed supervisor or server left running on our data."""
        found = working_in(self.data, self.executable)
        # First the parents alone: a postmaster that is asked to stop ends its children properly.
        numbers = {process.pid for process in found}
        for process in found:
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.ppid() not in numbers:
                    process.send_signal(self.stop_signal)
        if survivors := end(found, seconds=LEFTOVER_SECONDS):
            raise EmbeddedError(f"{survivors} cannot be ended, and {self.data} is theirs")

    def spawn(
        self,
        command: list[str | Path],
        user: str | None = None,
        extra_environment: Mapping[str, str] = MappingProxyType({}),
    ) -> subprocess.Popen[bytes]:
        """Run the server's command in its data directory, to stop when the supervisor dies."""
        with self.open_log() as log:
            return subprocess.Popen(
                command,
                cwd=self.data,
                env={**ENVIRONMENT, **extra_environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a terminal's Ctrl-C is not for the server
                preexec_fn=bound_to_us(self.stop_signal),
                user=user,
                group=user,
                extra_groups=None if user is None else [],
            )

    def open_log(self) -> BinaryIO:
        """The log, opened to append; moved aside first when it has grown large."""
        make_home()
        if self.log.exists() and self.log.stat().st_size > LARGEST_LOG:
            self.log.replace(self.log.with_suffix(".log.1"))
        return self.log.open("ab")

    def log_tail(self, lines: int = 15) -> str:
        """The end of the log, for an error message."""
        if not self.log.exists():
            return "(no log)"
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
