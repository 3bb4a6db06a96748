"""A deployment with separate servers, like a production, each of which can be stopped.

Postgres, a second Postgres with one tenant, and Valkey are configured by URL, so that no process of
the product restarts them. A disk is removed by filling it.
"""

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg
from cryptography.fernet import Fernet

from konstruct.local import services
from konstruct.processes import processes_in
from tests.end_to_end.deployment import Deployment, Supervised, Tenant, eventually, home_of
from tests.servers.slack import SlackServer
from tests.survival.llm import EchoServer

# A process that uses the service at its home, until its standard input ends.
USE = "from konstruct.local.embedded import ensure_{0}; ensure_{0}(); print('up'); open(0).read()"


class Store:
    """A Postgres or a Valkey in its own home, started and stopped by the test."""

    def __init__(self, service: str, executable: str, home: Path) -> None:
        self.service, self.executable, self.home = service, executable, home
        self._user: subprocess.Popen[str] | None = None

    def url(self, kind: str) -> str:
        """Return its URL for a role, or as `cache` or `broker`."""
        with home_of(self.home):
            if kind == "cache":
                return services.redis_url()
            return services.broker_url() if kind == "broker" else services.database_url(kind)

    def start(self) -> None:
        """Start the server."""
        self._user = subprocess.Popen(
            [sys.executable, "-u", "-c", USE.format(self.service)],
            env={**os.environ, "KONSTRUCT_HOME": str(self.home)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._user.stdout is not None
        assert self._user.stdout.readline() == "up\n"

    def kill(self) -> None:
        """Kill it and its supervisor."""
        if self._user is None:
            return
        self._user.kill()
        self._user.communicate()
        self._user = None
        supervisor = psutil.Process(int((self.home / "supervisord.pid").read_text()))
        supervisor.suspend()
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):
                process.kill()
        supervisor.kill()
        eventually(lambda: not self.processes(), f"{self.service} does not die")

    def processes(self) -> list[psutil.Process]:
        """Return its processes."""
        return processes_in(self.home / self.service, self.executable)

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Accept connections without an answer during the block."""
        for process in self.processes():
            process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            for process in self.processes():
                process.send_signal(signal.SIGCONT)


class Production(Deployment):
    """Web, worker, beat and the owner worker, with two Postgres servers and a Valkey.

    Its tenants are oak, on the main server, and elm, on the other one.
    """

    def __init__(self, home: Path, llm: EchoServer, slack: SlackServer | None = None) -> None:
        super().__init__(home, llm, ["oak@default", "elm@eu1"], slack)
        self.echo = llm
        self.disk = home / "disk"  # of the main Postgres; may be a mount point
        self.main = Store("postgres", "postgres", self.disk)
        self.eu1 = Store("postgres", "postgres", home / "eu1")
        self.valkey = Store("valkey", "valkey-server", home / "cache")
        self.database_url = self.main.url("app")
        self.redis_url = self.valkey.url("cache")
        self.environment |= {
            "DATABASE_URL": self.main.url("app"),
            "TENANT_DATABASES": f"eu1={self.eu1.url('app')}",
            "REDIS_URL": self.redis_url,
            "CELERY_BROKER_URL": self.valkey.url("broker"),
            "SECRET_KEY": secrets.token_hex(32),
            "CHANNEL_TOKEN_KEYS": Fernet.generate_key().decode(),
            "ALLOWED_HOSTS": ".localhost,localhost,127.0.0.1",
            "PUBLIC_HOSTS": "localhost,127.0.0.1",
            "PLAIN_HTTP": "true",
        }
        self.owners = {
            "DATABASE_OWNER_URL": self.main.url("owner"),
            "TENANT_DATABASES_OWNER": f"eu1={self.eu1.url('owner')}",
        }

    @contextmanager
    def running(self) -> Iterator["Production"]:
        """Start everything. Remove everything afterwards."""
        with ExitStack() as stack:
            for store in (self.main, self.eu1, self.valkey):
                stack.callback(store.kill)
                store.start()
            self.manage("migrate", **self.owners)
            self.add_tenants(*self._slugs)
            self.web = self._supervised(
                stack, "web", ["-m", "gunicorn", "--config", "deploy/gunicorn.conf.py"]
            )
            self.worker = self._supervised(stack, "worker", WORKER)
            self.beat = self._supervised(stack, "beat", [*CELERY, *BEAT])
            self.owner = self._supervised(
                stack, "owner", ["manage.py", "owner_worker"],
                KONSTRUCT_DB_ROLE="owner", **self.owners,
            )  # fmt: skip
            eventually(self._is_ready, "the web is not ready")
            yield self

    def rows(self, tenant: Tenant, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query inside a tenant, on its server."""
        options = (
            f"-c search_path=t_{tenant.id.hex},extensions,public -c app.current_tenant={tenant.id}"
        )
        store = self.main if tenant.slug == "oak" else self.eu1
        with psycopg.connect(store.url("app"), options=options) as connection:
            return connection.execute(statement.encode()).fetchall()

    @contextmanager
    def full_disk(self) -> Iterator[None]:
        """Fill the disk of the main Postgres during the block."""
        with filled(self.disk):
            yield

    @contextmanager
    def full_wal_disk(self) -> Iterator[None]:
        """Fill the separate disk of the main Postgres' write-ahead log during the block.

        Postgres ends with PANIC, and does not start before there is space.
        """
        log = self.main.home / "postgres" / "pg_wal"
        aside = log.with_name("pg_wal.aside")
        with ExitStack() as disk:
            with self._stopped():
                log.rename(aside)
                disk.enter_context(small_disk(log))
                subprocess.run(["cp", "--archive", f"{aside}/.", str(log)], check=True)  # noqa: S607
            try:
                with filled(log):
                    self._write_until_it_ends()
                    yield
            finally:
                with self._stopped():
                    subprocess.run(["cp", "--archive", f"{log}/.", str(aside)], check=True)  # noqa: S607
                    disk.close()
                    log.rmdir()
                    aside.rename(log)

    def _write_until_it_ends(self) -> None:
        url = self.main.url("superuser")
        with suppress(psycopg.Error), psycopg.connect(url, autocommit=True) as session:
            while True:
                session.execute(
                    "SELECT pg_logical_emit_message(false, 'filler', repeat('x', 1000000))"
                )

    @contextmanager
    def _stopped(self) -> Iterator[None]:
        self.main.kill()
        try:
            yield
        finally:
            self.main.start()

    def another_worker(self, name: str, **environment: str) -> Supervised:
        """Start another worker, with its log under this name."""
        command = WORKER
        return Supervised(command, {**self.environment, **environment}, self.home / f"{name}.log")

    def log_of(self, name: str) -> str:
        """Return the log of a process."""
        return (self.home / f"{name}.log").read_text()

    def _run(self, *arguments: str, role: str = "", **environment: str) -> str:
        return super()._run(
            *arguments, role=role, **{**(self.owners if role else {}), **environment}
        )


@contextmanager
def filled(directory: Path) -> Iterator[None]:
    """Fill a disk with a file during the block."""
    filler = directory / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 9):
            with suppress(OSError):
                while True:
                    file.write(bytes(size))
    try:
        yield
    finally:
        filler.unlink()


CELERY = ["-m", "celery", "--quiet", "--app", "konstruct"]
WORKER = ["manage.py", "worker", "replies", "deliveries", "embeddings", "extractions", "sweeps"]
BEAT = ["beat", "--pidfile=", "--loglevel", "WARNING"]


@contextmanager
def small_disk(directory: Path) -> Iterator[bool]:
    """Mount a file system of 700 MB there. False if this user may not mount."""
    directory.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=700m", "tmpfs", str(directory)]
    is_mounted = os.geteuid() == 0 and subprocess.run(mount, check=False).returncode == 0
    try:
        yield is_mounted
    finally:
        if is_mounted:
            subprocess.run(["umount", str(directory)], check=True)  # noqa: S607
