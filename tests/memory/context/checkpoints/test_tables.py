"""Tables of the saver: equal to those of the installed LangGraph, created by the owner."""

from typing import Any
from uuid import uuid4

import psycopg
import pytest
from langgraph.checkpoint.postgres import PostgresSaver

from memory.context.checkpoints.checkpointer import TenantPostgresSaver
from memory.context.checkpoints.connections import (
    close_pools,
    tenant_transaction,
)
from memory.context.exceptions import SessionTablesOutdated
from tenants.models import Tenant
from tests.database import url_of

# The saver has its own connections, which do not see uncommitted rows of a test.
pytestmark = pytest.mark.django_db(transaction=True)


def test_migration_creates_the_tables_of_the_installed_langgraph(tenant_a: Tenant) -> None:
    with tenant_transaction(tenant_a.id) as lent:
        rows = lent.execute("SELECT v FROM checkpoint_migrations ORDER BY v").fetchall()

    assert [row["v"] for row in rows] == list(range(len(PostgresSaver.MIGRATIONS)))


def test_setup_by_the_application_is_allowed_and_changes_nothing(tenant_a: Tenant) -> None:
    TenantPostgresSaver(tenant_a.id).setup()
    TenantPostgresSaver(tenant_a.id).setup()


def test_setup_without_tables_names_the_remedy() -> None:
    with pytest.raises(
        SessionTablesOutdated, match=r"version -1 and needs 9: run `manage.py migrate`"
    ):
        TenantPostgresSaver(uuid4()).setup()


class NewerSaver(TenantPostgresSaver):
    """A release of LangGraph with more migrations than this project has."""

    MIGRATIONS = [*PostgresSaver.MIGRATIONS, "ALTER TABLE checkpoints ADD COLUMN newer text"]


def test_the_owner_brings_older_tables_up_to_date(make_tenant: Any, as_owner: Any) -> None:
    tenant = make_tenant()
    with pytest.raises(SessionTablesOutdated, match="version 9 and needs 10"):
        NewerSaver(tenant.id).setup()

    with as_owner():
        NewerSaver(tenant.id).setup()
    close_pools()

    NewerSaver(tenant.id).setup()
    with tenant_transaction(tenant.id) as lent:
        assert lent.execute("SELECT newer FROM checkpoints").fetchall() == []


class IndexingSaver(TenantPostgresSaver):
    """A release of LangGraph with another index."""

    MIGRATIONS = [
        *PostgresSaver.MIGRATIONS,
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS checkpoints_newer_idx ON checkpoints (type)",
    ]


def test_invalid_index_of_langgraph_is_rebuilt(make_tenant: Any, as_owner: Any) -> None:
    tenant = make_tenant()
    table = f"{tenant.schema_name}.checkpoints"
    with psycopg.connect(url_of("owner"), autocommit=True) as owner:
        with psycopg.connect(url_of("owner")) as reader:
            reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            reader.execute(f"SELECT FROM {table}")
            owner.execute("SET statement_timeout = '500ms'")
            with pytest.raises(psycopg.errors.QueryCanceled):
                owner.execute(f"CREATE INDEX CONCURRENTLY checkpoints_newer_idx ON {table} (type)")
        owner.execute("SET statement_timeout = 0")
        with as_owner():
            IndexingSaver(tenant.id).setup()
        close_pools()
        name = f"{tenant.schema_name}.checkpoints_newer_idx"
        rows = owner.execute(
            "SELECT indisvalid FROM pg_index WHERE indexrelid = %s::regclass", [name]
        ).fetchall()
    assert rows == [(True,)]
