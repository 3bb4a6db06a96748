"""SQL of the application's role, as an injection would be: it reaches no other tenant."""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import psycopg
import pytest
from django.contrib.auth.models import Group
from django.db import DatabaseError, connection, transaction

from tenants.context import tenant_scope
from tenants.models import Tenant
from tenants.walls import ALLOWED_FUNCTIONS, open_ways
from tests import database
from tests.tenants.accidents import names

pytestmark = pytest.mark.django_db(transaction=True)

BOOTSTRAP = Path(__file__).resolve().parents[2] / "deploy" / "bootstrap.sql"

# Each is one statement, run in tenant A by an attacker who knows all of tenant B.
ENTERING = [
    "WITH s AS MATERIALIZED (SELECT set_config('app.current_tenant', '{b}', true))"
    " SELECT username FROM s, {schema}.auth_user",
    "SELECT username FROM {schema}.auth_user"
    " WHERE pg_catalog.set_config('app.current_tenant', '{b}', false) IS NOT NULL",
    "UPDATE pg_settings SET setting = '{b}' WHERE name = 'app.current_tenant'",
    "UPDATE pg_catalog.pg_settings SET setting = 'off' WHERE name = 'row_security'",
    "SELECT query_to_xml('SELECT username FROM {schema}.auth_user', true, true, '')::text",
    "SELECT query_to_xml('SET app.current_tenant = ''{b}''', true, true, '')::text",
    "SELECT table_to_xml('{schema}.auth_user', true, true, '')::text",
    "SELECT schema_to_xml('{schema}', true, true, '')::text",
    "SELECT database_to_xml(true, true, '')::text",
    "SELECT word FROM ts_stat('SELECT to_tsvector(username) FROM {schema}.auth_user')",
    "SELECT ts_rewrite('a'::tsquery, 'SELECT ''a''::tsquery, username::tsquery"
    " FROM {schema}.auth_user')",
    "SELECT username FROM {schema}.auth_user",
    "TABLE {schema}.auth_user",
    "SELECT note_recalled('{b}', '{b}'), (SELECT string_agg(username, '') FROM {schema}.auth_user)",
    "DO $$ BEGIN PERFORM set_config('app.current_tenant', '{b}', false); END $$",
    "SET app.current_tenant = '{b}'",
    "SET SESSION AUTHORIZATION konstruct_owner",
    "SET ROLE konstruct_owner",
    "SET row_security = off",
    "CREATE FUNCTION pg_temp.f() RETURNS text LANGUAGE sql SET app.current_tenant = '{b}'"
    " RETURN (SELECT string_agg(username, '') FROM {schema}.auth_user)",
    "CREATE TEMPORARY TABLE mine AS SELECT username FROM {schema}.auth_user",
    "COPY {schema}.auth_user TO STDOUT",
    "PREPARE theirs AS SELECT username FROM {schema}.auth_user",
    "SET LOCAL app.current_tenant = '{b}'; SELECT username FROM {schema}.auth_user",
    "SELECT 1; SET app.current_tenant = '{b}'",
    "SELECT current_query, query FROM pg_stat_activity",
    "SELECT pg_stat_get_activity(NULL)",
    "SELECT rolpassword FROM pg_authid",
    "SELECT pg_read_file('PG_VERSION')",
]
WRITING = [
    # The session is in A, and so is the row.
    "INSERT INTO {schema}.auth_group (name, tenant_id) VALUES ('x', '{a}') RETURNING 1",
    "INSERT INTO {schema}.auth_group (name, tenant_id) VALUES ('x', '{b}') RETURNING 1",
    "INSERT INTO {schema}.auth_group (name) VALUES ('x') RETURNING 1",
    "UPDATE {schema}.auth_user SET username = 'x' RETURNING 1",
    "DELETE FROM {schema}.auth_user RETURNING 1",
    "INSERT INTO public.auth_user (password, is_superuser, username, first_name, last_name, email,"
    " is_staff, is_active, date_joined) VALUES ('', true, 'x', '', '', '', true, true, now())"
    " RETURNING 1",
    "DELETE FROM public.auth_permission RETURNING 1",
    "DELETE FROM public.django_migrations RETURNING 1",
    "UPDATE public.django_content_type SET model = 'x' RETURNING 1",
    "UPDATE public.tenants_tenant SET state = 'suspended' RETURNING 1",
    "DELETE FROM public.tenants_domain RETURNING 1",
]
HARMING = [
    "SELECT pg_terminate_backend(pid) FROM pg_locks",
    "SELECT pg_cancel_backend(1)",
    "SELECT pg_advisory_lock(1)",
    "SELECT pg_try_advisory_xact_lock(tenant_lock_key('x'))",
    "SELECT nextval('{schema}.auth_user_id_seq')",
    "SELECT setval('{schema}.auth_user_id_seq', 1)",
    "LOCK TABLE {schema}.auth_user",
    "SELECT lo_create(1)",
    "SELECT lo_from_bytea(0, 'x')",
    "SELECT pg_notify('x', 'x')",
    "LISTEN x",
    "SELECT pg_sleep(60)",
    "SELECT pg_logical_emit_message(false, 'x', 'x')",
    "SELECT pg_export_snapshot()",
    "ALTER ROLE konstruct_app SET statement_timeout = 1",
    "ALTER ROLE konstruct_app PASSWORD 'x'",
    "ALTER ROLE CURRENT_USER SET search_path = nowhere",
    "TRUNCATE {schema}.auth_user",
    "DROP SCHEMA {schema} CASCADE",
]


@contextmanager
def by_django(tenant: Tenant) -> Iterator[Callable[[str], list[tuple[object, ...]]]]:
    """As a statement of ours that an injection has taken over."""

    def run(statement: str) -> list[tuple[object, ...]]:
        with connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall() if cursor.description else []

    with tenant_scope(tenant.id):
        yield run


@contextmanager
def by_libpq(tenant: Tenant) -> Iterator[Callable[[str], list[tuple[object, ...]]]]:
    """Without anything of ours in between: what Postgres alone refuses."""
    with psycopg.connect(database.url_of("app")) as plain:
        plain.execute(f"SET LOCAL search_path = {tenant.schema_name}, public, extensions")
        plain.execute(f"SET LOCAL app.current_tenant = '{tenant.id}'")

        def run(statement: str) -> list[tuple[object, ...]]:
            if statement.startswith("COPY"):  # which psycopg has a method of its own for
                with plain.cursor().copy(statement) as copy:
                    return list(copy.rows())
            try:
                cursor = plain.execute(statement, prepare=True)  # one statement in a message
                return cursor.fetchall() if cursor.description else []
            finally:
                plain.rollback()

        yield run


Way = Callable[[Tenant], AbstractContextManager[Callable[[str], list[tuple[object, ...]]]]]


def attempt(
    way: Way,
    users: tuple[Tenant, Tenant],
    statement: str,
) -> list[tuple[object, ...]] | None:
    """What the attacker is given; None if refused."""
    a, b = users
    sql = statement.format(a=a.id, b=b.id, schema=b.schema_name)
    with way(a) as run:
        try:
            return run(sql)
        except (DatabaseError, psycopg.Error):
            return None


@pytest.mark.parametrize("way", [by_django, by_libpq])
def test_no_statement_reads_another_tenant(users: tuple[Tenant, Tenant], way: Way) -> None:
    given = {statement: attempt(way, users, statement) for statement in ENTERING}
    assert not [statement for statement, rows in given.items() if "of-tenant-b" in str(rows)]
    for tenant in users:
        with tenant_scope(tenant.id):
            assert names() == [f"of-{tenant.slug}"]


@pytest.mark.parametrize("way", [by_django, by_libpq])
def test_no_statement_writes_what_is_anothers(users: tuple[Tenant, Tenant], way: Way) -> None:
    assert not [statement for statement in WRITING if attempt(way, users, statement)]
    with tenant_scope(users[1].id):
        assert names() == ["of-tenant-b"]
        assert not Group.objects.filter(name="x").exists()
        with transaction.atomic():
            Group.objects.create(name="x")  # B can still have what the attacker would have taken
            transaction.set_rollback(True)


def test_no_statement_harms_all(users: tuple[Tenant, Tenant]) -> None:
    given = {statement: attempt(by_django, users, statement) for statement in HARMING}
    assert not [statement for statement, rows in given.items() if rows is not None]


def test_an_insert_into_anothers_schema_is_refused_by_the_policy_alone(
    users: tuple[Tenant, Tenant], as_owner: Callable[[], AbstractContextManager[None]]
) -> None:
    a, b = users
    table = f"{b.schema_name}.auth_group"
    dropped = f"ALTER TABLE {table} DROP CONSTRAINT tenant_of_schema"
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(dropped)
    try:
        with (
            tenant_scope(a.id),
            connection.cursor() as cursor,
            pytest.raises(DatabaseError, match="row-level security"),
        ):
            cursor.execute(f"INSERT INTO {table} (name, tenant_id) VALUES ('x', '{a.id}')")
    finally:
        with as_owner(), connection.cursor() as cursor:
            cursor.execute(
                f"ALTER TABLE {table} ADD CONSTRAINT tenant_of_schema"
                f" CHECK (tenant_id = '{b.id}'::uuid)"
            )


def test_the_catalogue_opens_no_way_that_is_not_listed() -> None:
    with connection.cursor() as cursor:
        assert open_ways(cursor) == []


def test_the_script_and_the_check_list_the_same_functions() -> None:
    (listed,) = re.findall(r"proname <> ALL \(ARRAY\[(.*?)\]\)", BOOTSTRAP.read_text(), re.DOTALL)
    ours = {"held_tenant_locks", "note_recalled", "try_tenant_lock", "wait_for_tenant_lock"}
    assert set(re.findall(r"'(\w+)'", listed)) == ALLOWED_FUNCTIONS - ours
