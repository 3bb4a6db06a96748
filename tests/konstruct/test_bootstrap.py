"""deploy/bootstrap.sql: it refuses unsuitable servers, and does not stop running processes."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from konstruct.local import embedded, services
from tenants.checks import unsafe_privileges
from tests import database

pytestmark = pytest.mark.long

NAME = f"bootstrapped_{database.WORKER}"
# Privileges that would allow SQL to enter a tenant.
ENTERS = "SELECT set_config('app.current_tenant', '', false)"


def bootstrap(
    *arguments: str, script: Path = services.BOOTSTRAP, **environment: str
) -> "subprocess.CompletedProcess[str]":
    """Run the script in the test's database, as an administrator does."""
    psql = [services.binaries() / "psql", "--no-psqlrc", "--quiet", "--file", script]
    return subprocess.run(
        [*psql, "--dbname", services.database_url("superuser", NAME), *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def ask(role: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(services.database_url(role, NAME), autocommit=True) as connection:
        cursor = connection.execute(query.encode())
        return cursor.fetchall() if cursor.description else []


@pytest.fixture
def created() -> Iterator[None]:
    """A database without a run of the script."""
    embedded.ensure_postgres()
    with psycopg.connect(
        services.database_url("superuser", "postgres"), autocommit=True
    ) as superuser:
        superuser.execute(f"DROP DATABASE IF EXISTS {NAME}")
        superuser.execute(f"CREATE DATABASE {NAME} TEMPLATE template0")
        yield
        superuser.execute(f"DROP DATABASE {NAME} WITH (FORCE)")


def state() -> list[tuple[object, ...]]:
    """Return the first, middle and last changes of the script."""
    return ask(
        "superuser",
        "SELECT datacl::text, pg_get_userbyid(datdba), to_regnamespace('extensions')::text,"
        " has_function_privilege('public', 'set_config(text,text,bool)', 'EXECUTE')"
        " FROM pg_database WHERE datname = current_database()",
    )


def test_an_empty_database_is_closed_at_once(created: None) -> None:
    assert (bootstrap().returncode, bootstrap().stderr) == (0, "")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        ask("app", ENTERS)
    with psycopg.connect(services.database_url("app", NAME)) as app:
        assert unsafe_privileges(app.cursor()) == []


def test_bootstrap_without_pgvector_changes_nothing(created: None) -> None:
    before = state()
    ran = bootstrap(PGOPTIONS="-c extension_control_path=/var/empty")
    assert ran.returncode == 3
    assert "konstruct needs pgvector 0.8 or newer. This server has no extension" in ran.stderr
    assert "Nothing was changed. Install pgvector for PostgreSQL 18." in ran.stderr
    assert state() == before


def test_a_database_in_another_encoding_is_refused_first(created: None) -> None:
    """Such as Debian's cluster on a machine without a locale."""
    with psycopg.connect(
        services.database_url("superuser", "postgres"), autocommit=True
    ) as superuser:
        superuser.execute(f"DROP DATABASE {NAME}")
        superuser.execute(
            f"CREATE DATABASE {NAME} TEMPLATE template0 ENCODING 'SQL_ASCII'"
            " LOCALE_PROVIDER libc LOCALE 'C'"
        )
    before = state()
    ran = bootstrap()
    assert ran.returncode == 3
    assert "konstruct needs a database in UTF8. This one is in SQL_ASCII." in ran.stderr
    assert state() == before


def test_a_server_below_the_needed_version_is_refused_first(created: None, tmp_path: Path) -> None:
    """As if a newer version were needed than this server's."""
    script = tmp_path / "bootstrap.sql"
    script.write_text(services.BOOTSTRAP.read_text().replace("< 160000", "< 990000"))
    before = state()
    ran = bootstrap(script=script)
    assert ran.returncode == 3
    assert "konstruct needs PostgreSQL 16 or newer. This server is PostgreSQL 18." in ran.stderr
    assert state() == before
