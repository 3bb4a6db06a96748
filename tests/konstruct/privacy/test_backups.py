"""The commands of docs/operations.md on the embedded Postgres: a dump can be restored."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from django.db import connections

from konstruct.consistency import verify
from konstruct.local import embedded
from konstruct.orchestrator.models import Agent
from memory.conversations.short_term import clear_window, get_recent_messages
from memory.models import Message
from memory.recall import recall
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests import database

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


@pytest.mark.data
def test_one_tenant_is_restored_without_changing_others(
    tenant_a: Tenant, agent: Agent, send_message: Callable[..., Message], tmp_path: Path
) -> None:
    send_message("My dog is called Rex.")

    def window() -> list[str]:
        turns = get_recent_messages(tenant_a.id, agent.id, "maria")
        return [turn["content"] for turn in turns]

    kept = window()[1]
    before = recall(tenant_a.id, agent.id, "maria", "What is my dog called?").hits
    dump = tmp_path / "acme.dump"
    name = connections["default"].settings_dict["NAME"]
    schema = tenant_a.schema_name
    tool("pg_dump", "--format", "custom", "--schema", schema, "--file", dump, "--dbname", name)
    send_message("This is lost.")
    clear_window(tenant_a.id, agent.id, "maria")
    send_message("This is lost, too.")
    connections["default"].close()
    tool("psql", "--dbname", name, "--command", f"DROP SCHEMA {schema} CASCADE")
    tool("pg_restore", "--exit-on-error", "--single-transaction", "--dbname", name, dump)
    assert recall(tenant_a.id, agent.id, "maria", "What is my dog called?").hits == before
    with tenant_scope(tenant_a.id):
        assert Message.objects.count() == 2
    with database.as_owner():
        # The cache still has data from after the dump, and does not show it.
        assert verify(tenant_a.id, "a").findings != []
        assert window() == ["My dog is called Rex.", kept]
        send_message("Hello again.")
        assert window()[:3] == ["My dog is called Rex.", kept, "Hello again."]
        assert verify(tenant_a.id, "a", repair=True).findings == []
