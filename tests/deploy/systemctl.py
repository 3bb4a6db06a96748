#!/usr/bin/python3
"""The part of systemctl that docs/install-debian.md uses, for a chroot without systemd.

It reads the unit files of systemd and runs their commands as their users, so that a mistake in a
unit is found. It does not confine them: `systemd-analyze security` checks that.
"""

import contextlib
import fnmatch
import grp
import os
import pwd
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

FOLDERS = (Path("/etc/systemd/system"), Path("/usr/lib/systemd/system"))
STATE = Path("/run/units")
LOGS = Path("/var/log/units")
SECONDS = 120


class Unit:
    """A unit with its drop-ins; for a template with its instance."""

    def __init__(self, name: str) -> None:
        self.name = name if "." in name.rpartition("@")[2] else f"{name}.service"
        stem, _, kind = self.name.rpartition(".")
        template, at, self.instance = stem.partition("@")
        names = [self.name] + ([f"{template}@.{kind}"] if at else [])
        files = [folder / unit for unit in names for folder in FOLDERS]
        paths = [path for path in files if path.exists()][:1]
        if not paths:
            sys.exit(f"Unit {self.name} not found.")
        for unit in reversed(names):
            for folder in FOLDERS:
                paths += sorted((folder / f"{unit}.d").glob("*.conf"))
        self.lines: list[tuple[str, str]] = []
        for path in paths:
            text = path.read_text().replace("\\\n", " ")
            for line in text.splitlines():
                key, equals, value = line.partition("=")
                if equals and not line.startswith(("#", ";", "[")):
                    self.lines.append((key.strip(), self._specified(value.strip())))
        self.pid_file = STATE / self.name

    def _specified(self, value: str) -> str:
        return value.replace("%i", self.instance).replace("%I", self.instance.replace("-", "/"))

    def all(self, key: str) -> list[str]:
        return [value for name, value in self.lines if name == key]

    def one(self, key: str, default: str = "") -> str:
        return (self.all(key) or [default])[-1]

    def environment(self) -> dict[str, str]:
        """Return the variables of EnvironmentFile and Environment, in systemd's order."""
        found = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
        for value in self.all("Environment"):
            found |= dict(pair.split("=", 1) for pair in shlex.split(value))
        for path in self.all("EnvironmentFile"):
            for line in Path(path.lstrip("-")).read_text().splitlines():
                if line and not line.startswith(("#", ";")):
                    name, _, value = line.partition("=")
                    found[name] = "".join(shlex.split(value))
        return found

    def command(self, line: str, environment: dict[str, str]) -> list[str]:
        """Split a command. `$NAME` is split into words, `${NAME}` is a part of one."""
        words: list[str] = []
        for word in shlex.split(line.lstrip("-+!:@")):
            if re.fullmatch(r"\$\w+", word):
                words += environment.get(word[1:], "").split()
            else:
                words.append(re.sub(r"\$\{(\w+)\}", lambda m: environment.get(m[1], ""), word))
        return words

    def become(self) -> None:
        """Switch to the user of the unit."""
        if user := self.one("User"):
            entry = pwd.getpwnam(user)
            group = self.one("Group")
            os.initgroups(user, entry.pw_gid)
            os.setgid(grp.getgrnam(group).gr_gid if group else entry.pw_gid)
            os.setuid(entry.pw_uid)
        os.umask(int(self.one("UMask", "0022"), 8))

    def start(self) -> None:
        for required_unit in " ".join(self.all("Wants")).split():
            if required_unit.startswith("konstruct"):
                Unit(required_unit).start()
        if not self.all("ExecStart") or self.pid():
            return
        environment = self.environment()
        for path in self.folders():
            path.mkdir(exist_ok=True)
            entry = pwd.getpwnam(self.one("User", "root"))
            os.chown(path, entry.pw_uid, entry.pw_gid)
        for line in self.all("ExecStartPre"):
            subprocess.run(self.command(line, environment), check=True, env=environment)
        command = self.command(self.one("ExecStart"), environment)
        kind = self.one("Type", "simple")
        if kind in ("oneshot", "forking"):
            folder = self.one("WorkingDirectory", "/")
            subprocess.run(command, check=True, cwd=folder, env=environment, preexec_fn=self.become)
            return
        with contextlib.ExitStack() as stack:
            if kind == "notify":
                path = str(STATE / f"{self.name}.notify")
                notify_socket = stack.enter_context(
                    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                )
                Path(path).unlink(missing_ok=True)
                notify_socket.bind(path)
                os.chmod(path, 0o666)  # noqa: S103 (for the user of the unit)
                notify_socket.settimeout(SECONDS)
                environment["NOTIFY_SOCKET"] = path
            log = stack.enter_context((LOGS / f"{self.name}.log").open("a"))
            process = subprocess.Popen(
                command, cwd=self.one("WorkingDirectory", "/"), env=environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, preexec_fn=self.become,
            )  # fmt: skip
            self.pid_file.write_text(str(process.pid))
            while kind == "notify" and b"READY=1" not in notify_socket.recv(4096):
                pass
        time.sleep(0.2)
        if process.poll() is not None:
            sys.exit(f"{self.name} ended: {(LOGS / f'{self.name}.log').read_text()[-2000:]}")

    def folders(self) -> list[Path]:
        """Return the folders of RuntimeDirectory and StateDirectory."""
        names = {"/run": self.one("RuntimeDirectory"), "/var/lib": self.one("StateDirectory")}
        return [Path(base, name) for base, value in names.items() for name in value.split()]

    def pid(self) -> int:
        """Return the main process, 0 if it does not run."""
        with contextlib.suppress(OSError, ValueError):
            path = Path(self.one("PIDFile")) if self.one("Type") == "forking" else self.pid_file
            pid = int(path.read_text())
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                return pid
        return 0

    def stop(self) -> None:
        if self.one("ExecStop"):
            command = self.command(self.one("ExecStop"), self.environment())
            subprocess.run(command, check=False)
        elif pid := self.pid():
            os.kill(pid, getattr(signal, self.one("KillSignal", "SIGTERM")))
            deadline = time.monotonic() + float(self.one("TimeoutStopSec", "90") or 0) + 1
            while self.pid() and time.monotonic() < deadline:
                time.sleep(0.05)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)

    def restart(self) -> None:
        self.stop()
        self.start()

    def reload(self) -> None:
        environment = {**self.environment(), "MAINPID": str(self.pid())}
        subprocess.run(self.command(self.one("ExecReload"), environment), check=True)

    def enable(self) -> None:
        if not self.all("WantedBy"):
            sys.exit(f"{self.name} has no installation config.")


def main(arguments: list[str]) -> None:
    STATE.mkdir(exist_ok=True)
    LOGS.mkdir(exist_ok=True)
    verb, *names = [unit for unit in arguments if not unit.startswith("-")]
    if verb == "daemon-reload":
        return
    for name in names:
        started = [path.name for path in STATE.iterdir() if not path.name.endswith(".notify")]
        for matching in fnmatch.filter(started, f"{name}*") if "*" in name else [name]:
            unit = Unit(matching)
            getattr(unit, verb)()
            if verb == "enable" and "--now" in arguments:
                unit.start()


if __name__ == "__main__":
    main(sys.argv[1:])
