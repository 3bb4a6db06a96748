"""The command of docs/backup.md on the embedded Postgres: a dump can be restored."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from django.db import connections

from konstruct.local import embedded
from memory.models import Message
from tenants.models import Tenant

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

RESTORED = "konstruct_restored"


def tool(name: str, *arguments: str | Path) -> str:
    """Run one of Postgres' programs as an operator does."""
    ran = subprocess.run(
        [sys.executable, "-m", "konstruct.local.embedded", "tool", name, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.fixture
def restored() -> Iterator[str]:
    """Create another database, prepared by deploy/bootstrap.sql."""
    tool("createdb", "--owner", "konstruct_owner", RESTORED)
    try:
        yield RESTORED
    finally:
        tool("dropdb", "--force", RESTORED)


@pytest.mark.data
def test_complete_backup_is_restored_with_its_policies(
    tenant_a: Tenant,
    tenant_b: Tenant,
    send_message: Callable[..., Message],
    restored: str,
    tmp_path: Path,
) -> None:
    send_message("My dog is called Rex.")
    dump = tmp_path / "konstruct.dump"
    name = connections["default"].settings_dict["NAME"]
    tool("pg_dump", "--format", "custom", "--file", dump, "--dbname", name)
    tool("pg_restore", "--clean", "--if-exists", "--exit-on-error", "--dbname", restored, dump)
    with psycopg.connect(embedded.database_url("app", restored), autocommit=True) as app:
        count = f"SELECT count(*) FROM {tenant_a.schema_name}.memory_message"
        assert app.execute(count).fetchone() == (0,)
        app.execute(f"SET app.current_tenant = '{tenant_b.id}'")
        assert app.execute(count).fetchone() == (0,)
        app.execute(f"SET app.current_tenant = '{tenant_a.id}'")
        assert app.execute(count).fetchone() == (2,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            app.execute(f"DELETE FROM {tenant_a.schema_name}.memory_message")
