"""A deployment of a test: a home with Postgres and Valkey, and commands in processes."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import psycopg

from konstruct.local import services
from konstruct.local.services import binaries
from tests.konstruct.running import PROJECT, run_python

# Each process of a test run has separate deployments.
_WORKER = os.environ.get("PYTEST_XDIST_WORKER", "main")
SECRET_KEY = "of-two-deployments-of-one-operator" * 2
# A user of the services at that home, until its standard input ends.
_USE = (
    "from konstruct.local import embedded; embedded.ensure_postgres(); embedded.ensure_valkey();"
    " print('up'); open(0).read()"
)
# Creates tenants with messages of anna and ben.
_TALK = """
import sys
import django
django.setup()
from konstruct.orchestrator.models import Agent
from tenants.context import tenant_scope
from tenants.models import Tenant
from tenants.schemas.provisioning import create_tenant
from tests.konstruct.privacy.conftest import send_in_pipeline
words, slugs = sys.argv[1], sys.argv[2:]
for slug in slugs:
    tenant = Tenant.objects.filter(slug=slug).first() or create_tenant(slug=slug)
    with tenant_scope(tenant.id):
        agent, _ = Agent.objects.get_or_create(name="ada")
    for user in ("anna", "ben"):
        send_in_pipeline(tenant, agent, f"{words} {user} {slug}", user)
"""


class Deployment:
    """Services at a home, for processes of this code."""

    def __init__(self, name: str, journal: Path) -> None:
        self.home = services.home().with_name(f"backups-{name}-{_WORKER}")
        self.environment = {
            **{key: value for key, value in os.environ.items() if key != "KONSTRUCT_DB_ROLE"},
            "KONSTRUCT_HOME": str(self.home),
            "SECRET_KEY": SECRET_KEY,
            "ERASURE_JOURNAL": str(journal),
            "DJANGO_SETTINGS_MODULE": "konstruct.settings",
        }
        self._user: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start the services."""
        self._user = subprocess.Popen(
            [sys.executable, "-u", "-c", _USE],
            cwd=PROJECT,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._user.stdout is not None
        assert self._user.stdout.readline() == "up\n"

    def stop(self) -> None:
        """Stop the services."""
        command = [sys.executable, "-m", "konstruct.local.embedded", "stop"]
        subprocess.run(command, cwd=PROJECT, env=self.environment, check=True)
        if self._user is not None:
            self._user.communicate("")

    def begin(self, *arguments: object) -> subprocess.Popen[str]:
        """Start a command of manage.py."""
        return subprocess.Popen(
            [sys.executable, "manage.py", *map(str, arguments)],
            cwd=PROJECT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def manage(self, *arguments: object, status: int = 0) -> str:
        """Run a command of manage.py. Return its output."""
        process = self.begin(*arguments)
        output, _ = process.communicate()
        assert process.returncode == status, output
        return output

    def talk(self, words: str, *slugs: str) -> None:
        """Send messages of anna and ben in each of the tenants, which are created if missing."""
        run_python(
            "-c",
            _TALK,
            words,
            *slugs,
            env={**self.environment, "KONSTRUCT_DB_ROLE": "owner"},
            check=True,
        )

    def erase(self, slug: str, user_id: str = "anna") -> None:
        """Erase a person."""
        self.manage("erase_user", "--tenant", slug, "--user", user_id, "--yes")

    def url(self, role: str = "superuser") -> str:
        """Return the URL of its database."""
        with mock.patch.dict(os.environ, KONSTRUCT_HOME=str(self.home)):
            return services.database_url(role)

    def ask(self, statement: str) -> list[tuple[object, ...]]:
        """Run a query as a superuser."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            return connection.execute(statement.encode()).fetchall()

    def dumped(self) -> str:
        """Return the whole database as text."""
        command = [str(binaries() / "pg_dump"), "--dbname", self.url()]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def states(self) -> dict[object, object]:
        """Return the state of each tenant."""
        return dict(self.ask("SELECT slug, state FROM tenants_tenant"))  # type: ignore[arg-type]


@contextmanager
def deployment(name: str, journal: Path) -> Iterator[Deployment]:
    """Run a migrated deployment during the block, and remove it."""
    made = Deployment(name, journal)
    shutil.rmtree(made.home, ignore_errors=True)
    made.start()
    try:
        made.manage("migrate", "--shared", "-v", "0")
        yield made
    finally:
        made.stop()
        shutil.rmtree(made.home, ignore_errors=True)
