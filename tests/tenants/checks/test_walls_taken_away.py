"""Each layer of isolation is removed: the others still refuse, as docs/tenancy.md describes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.contrib.auth.models import Group, User
from django.db import DatabaseError

from tenants import checks, transaction
from tenants.context import connection, tenant_scope
from tenants.models import Tenant
from tenants.postgresql.base import DatabaseWrapper
from tests import database
from tests.tenants.accidents import names

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.of_one_server(reason="a tenant attacks a neighbour on the same server"),
]

TABLES = ("auth_user", "auth_group", "memory_message")


@contextmanager
def superuser(undo: list[str]) -> Iterator[Callable[[str], object]]:
    """Run statements as a superuser, and undo them after the block."""
    with psycopg.connect(database.url_of("superuser"), autocommit=True) as connected:
        try:
            yield connected.execute
        finally:
            for statement in undo:
                connected.execute(statement)


@pytest.fixture
def without_policies(users: tuple[Tenant, Tenant]) -> Iterator[None]:
    tables = [f"{tenant.schema_name}.{table}" for tenant in users for table in TABLES]
    with superuser([f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY" for table in tables]) as run:
        for table in tables:
            run(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")
        yield


@pytest.fixture
def without_checks(users: tuple[Tenant, Tenant]) -> Iterator[None]:
    b = users[1]
    table = f"{b.schema_name}.auth_group"
    check = f"CONSTRAINT tenant_of_schema CHECK (tenant_id = '{b.id}'::uuid)"
    with superuser([f"ALTER TABLE {table} ADD {check}"]) as run:
        run(f"ALTER TABLE {table} DROP CONSTRAINT tenant_of_schema")
        yield


@pytest.fixture
def in_the_wrong_schema(users: tuple[Tenant, Tenant], monkeypatch: pytest.MonkeyPatch) -> None:
    """Put B's search_path before A's own when tenant A is entered."""
    a, b = users
    right = DatabaseWrapper._get_cursor_search_paths

    def wrong(wrapper: DatabaseWrapper) -> list[str]:
        paths = right(wrapper)
        return [b.schema_name, *paths] if a.schema_name in paths else paths

    monkeypatch.setattr(DatabaseWrapper, "_get_cursor_search_paths", wrong)


@pytest.fixture
def with_open_grants(users: tuple[Tenant, Tenant]) -> Iterator[None]:
    opened = [
        ("EXECUTE ON FUNCTION set_config(text, text, boolean)", "PUBLIC"),
        ("EXECUTE ON FUNCTION query_to_xml(text, boolean, boolean, text)", "PUBLIC"),
        ("UPDATE ON pg_settings", "PUBLIC"),
        ("USAGE ON LANGUAGE plpgsql", "PUBLIC"),
        *(
            (f"UPDATE, DELETE ON {tenant.schema_name}.memory_message", "konstruct_app")
            for tenant in users
        ),
    ]
    with superuser([f"REVOKE {privilege} FROM {role}" for privilege, role in opened]) as run:
        for privilege, role in opened:
            run(f"GRANT {privilege} TO {role}")
        yield


def refused(statement: str, match: str) -> None:
    with (
        connection.cursor() as cursor,
        pytest.raises(DatabaseError, match=match),
        transaction.atomic(),
    ):
        cursor.execute(statement)


def rows(statement: str) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else [(cursor.rowcount,)]


@pytest.mark.usefixtures("without_policies")
def test_schema_check_and_role_refuse_access_without_policies(users: tuple[Tenant, Tenant]) -> None:
    a, b = users
    for tenant in users:
        with tenant_scope(tenant.id):
            assert names() == [f"of-{tenant.slug}"]
    with tenant_scope(a.id):
        refused(f"INSERT INTO {b.schema_name}.auth_group (name) VALUES ('x')", "tenant_of_schema")
        refused(f"UPDATE {b.schema_name}.memory_message SET content = ''", "permission denied")
        refused(f"DELETE FROM {b.schema_name}.memory_message", "permission denied")
        refused(f"TRUNCATE {b.schema_name}.auth_user", "permission denied")
    found = checks.check_database(None, databases=["default"])
    assert [message.id for message in found] == ["tenants.E004"]


@pytest.mark.usefixtures("without_policies", "without_checks")
def test_unqualified_query_uses_its_own_schema_without_policies_and_checks(
    users: tuple[Tenant, Tenant],
) -> None:
    a, b = users
    with tenant_scope(a.id):
        Group.objects.create(name="x")
        assert names() == ["of-tenant-a"]
    with tenant_scope(b.id):
        assert not Group.objects.filter(name="x").exists()


@pytest.mark.usefixtures("without_checks")
def test_policy_refuses_a_foreign_row_without_the_check(users: tuple[Tenant, Tenant]) -> None:
    a, b = users
    with tenant_scope(a.id):
        refused(
            f"INSERT INTO {b.schema_name}.auth_group (name, tenant_id) VALUES ('x', '{a.id}')",
            "row-level security",
        )


@pytest.mark.usefixtures("in_the_wrong_schema")
def test_policies_refuse_access_in_the_wrong_schema(users: tuple[Tenant, Tenant]) -> None:
    a, b = users
    with tenant_scope(a.id):
        assert rows("SELECT current_schema()") == [(b.schema_name,)]
        assert names() == []
        assert User.objects.update(username="x") == 0
        with pytest.raises(DatabaseError, match="row-level security"), transaction.atomic():
            Group.objects.create(name="x")
    with tenant_scope(b.id):
        assert names() == ["of-tenant-b"]


@pytest.mark.usefixtures("with_open_grants")
def test_policies_and_cursors_refuse_access_with_open_grants(users: tuple[Tenant, Tenant]) -> None:
    a, b = users
    table = f"{b.schema_name}.auth_user"
    with tenant_scope(a.id):
        assert rows(f"SELECT username FROM {table}") == []
        assert "of-tenant-b" not in str(
            rows(f"SELECT query_to_xml('SELECT username FROM {table}', true, true, '')::text")
        )
        assert rows(f"UPDATE {b.schema_name}.memory_message SET content = ''") == [(0,)]
        assert rows(f"DELETE FROM {b.schema_name}.memory_message") == [(0,)]
        set_b = f"set_config('app.current_tenant', '{b.id}', false)"
        # The next statement does not find the state of the previous one.
        rows(f"SELECT {set_b}")
        assert rows(f"SELECT username FROM {table}") == []
        assert names() == ["of-tenant-a"]
        refused(f"SELECT {set_b}; SELECT username FROM {table}", "several statements")
        refused(f"DO $$ BEGIN PERFORM {set_b}; END $$", "permission denied")
        refused(f"SET app.current_tenant = '{b.id}'", "permission denied")
    # Inside one SELECT no other layer stops it, and the check reports that.
    found = checks.check_database(None, databases=["default"])
    assert [message.id for message in found] == ["tenants.E014", "tenants.W002"]
    assert "set_config" in found[-1].msg
