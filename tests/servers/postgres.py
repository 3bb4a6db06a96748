"""Further Postgres servers for tests: embedded ones, each with its own home."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import dj_database_url
import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import connections
from django.test import override_settings

from konstruct.local import services
from tenants import servers as known
from tenants.models import Tenant
from tenants.moving import move_tenant
from tenants.naming import APP_ROLE
from tenants.postgresql import pool
from tests import database

NAMES = ("eu1", "eu2")
DATABASE = f"servers_{database.WORKER}"
# A user of the server at that home, until its standard input ends.
USE = (
    "from konstruct.local import embedded; embedded.ensure_postgres(); print('up'); open(0).read()"
)


@dataclass
class Server:
    """A server in addition to the tests' own."""

    name: str
    users: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def home(self) -> Path:
        return services.home().with_name(f"{services.home().name}-{self.name}-{database.WORKER}")

    def url(self, role: str, name: str = DATABASE) -> str:
        """Return its URL for a role: app, owner or superuser."""
        with mock.patch.dict(os.environ, KONSTRUCT_HOME=str(self.home)):
            return services.database_url(role, name)

    def start(self) -> None:
        """Start the server."""
        process = subprocess.Popen(
            [sys.executable, "-u", "-c", USE],
            env={**os.environ, "KONSTRUCT_HOME": str(self.home)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.users.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        pool._down_until.clear()

    def stop(self) -> None:
        """Stop accepting connections, and end the open ones."""
        subprocess.run(
            [sys.executable, "-m", "konstruct.local.embedded", "stop"],
            env={**os.environ, "KONSTRUCT_HOME": str(self.home)},
            check=True,
        )
        while self.users:
            self.users.pop().communicate("")

    def ask(self, statement: str) -> list[tuple[object, ...]]:
        """Run a query as a superuser."""
        with psycopg.connect(self.url("superuser"), autocommit=True) as connection:
            return connection.execute(statement).fetchall()  # type: ignore[arg-type]

    def do(self, statements: str) -> None:
        """Run statements as a superuser."""
        with psycopg.connect(self.url("superuser"), autocommit=True) as connection:
            connection.execute(statements.encode())


@contextmanager
def further_servers() -> Iterator[dict[str, Server]]:
    """Start the servers with a public schema only, and register them in Django during the block."""
    servers = {name: Server(name) for name in NAMES}
    with ExitStack() as ends:
        for server in servers.values():
            server.start()
            ends.callback(server.stop)
            database.let_commits_not_wait(server.url("superuser", "postgres"))
            with psycopg.connect(server.url("owner", "postgres"), autocommit=True) as owner:
                owner.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
                owner.execute(f"CREATE DATABASE {DATABASE}")
                # As deploy/bootstrap.sql does.
                owner.execute(f"REVOKE ALL ON DATABASE {DATABASE} FROM PUBLIC")
                owner.execute(f"GRANT CONNECT ON DATABASE {DATABASE} TO {APP_ROLE}")
        ends.enter_context(_known(servers))
        with database.as_owner():
            call_command("migrate", "--shared", verbosity=0)
        yield servers


@contextmanager
def _known(servers: dict[str, Server]) -> Iterator[None]:
    parsed = {name: _settings(server.url("app")) for name, server in servers.items()}
    configured = connections.configure_settings({"default": {}, **parsed})
    settings.TENANT_DATABASES = {name: server.url("app") for name, server in servers.items()}
    settings.TENANT_DATABASES_OWNER = {
        name: server.url("owner") for name, server in servers.items()
    }
    connections.settings.update({name: configured[name] for name in servers})
    database.further_servers.update({name: server.url for name, server in servers.items()})
    try:
        yield
    finally:
        database.close_cleaners()
        database.further_servers.clear()
        settings.TENANT_DATABASES = settings.TENANT_DATABASES_OWNER = {}
        known.clear_server_cache()
        for name in servers:
            connections[name].close()
            del connections[name], connections.settings[name]


@contextmanager
def spread(slugs: Sequence[str]) -> Iterator[None]:
    """Place the tenants with these slugs on one server each, the first on the last.

    The main server is closed, so that new tenants of tests are also created on the others.
    """
    placed = dict(zip(slugs, reversed(NAMES), strict=True))
    with database.as_owner():
        for tenant in Tenant.objects.filter(slug__in=placed):
            move_tenant(tenant, placed[tenant.slug])
    database.remove_committed_rows()  # of the operators' log
    with (
        override_settings(TENANT_DATABASES_CLOSED=[known.MAIN]),
        # Tests count the same queries whatever their duration.
        mock.patch.object(known, "CACHE_SECONDS", float("inf")),
    ):
        for tenant in Tenant.objects.filter(slug__in=placed):
            known.cache_server(tenant.id, tenant.server)
        yield


def _settings(url: str) -> dict[str, object]:
    parsed = dj_database_url.parse(url, conn_health_checks=True)
    return {**parsed, **database.credentials(url), "ENGINE": "tenants.postgresql"}
