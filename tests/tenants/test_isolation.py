"""Row-level security and the role: attacks in raw SQL, as konstruct_app."""

from uuid import UUID, uuid4

import psycopg
import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import DatabaseError
from django.db.utils import ProgrammingError
from django.utils import timezone

from tenants import transaction
from tenants.context import connection, current_tenant_id, server_scope, tenant_scope
from tenants.models import Domain, Tenant
from tenants.servers import MAIN
from tests import database
from tests.database import as_owner, execute

TABLES_OF_TENANTS = """
    SELECT n.nspname, c.oid, c.oid::regclass::text
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname LIKE 't\\_%%' AND c.relkind IN ('r', 'p', 'm', 'f')
"""


def policy_of(schema: str) -> str:
    """Return the policy expressions of a table, as Postgres writes them."""
    tenant = f"'{UUID(schema.removeprefix('t_'))}'::uuid"
    return (
        f"((tenant_id = {tenant}) AND (( SELECT (NULLIF(current_setting('app.current_tenant'::text,"
        f" true), ''::text))::uuid AS \"nullif\") = {tenant}))"
    )


def refused(sql: str, *parameters: object) -> str:
    """Return Postgres' message for a statement that it refuses."""
    with pytest.raises(DatabaseError) as caught, transaction.atomic():
        execute(sql, *parameters)
    return str(caught.value).splitlines()[0]


def of_public(table: str, tenant: Tenant) -> str:
    """Return Postgres' error when a tenant writes the operators' table, which one server has."""
    if tenant.server == MAIN:
        return f'new row violates row-level security policy for table "{table}"'
    return f"permission denied for table {table}"


def test_tests_run_as_konstruct_app(db: None) -> None:
    assert execute("SELECT current_user, session_user") == [("konstruct_app", "konstruct_app")]


@pytest.mark.of_one_server(reason="it attacks a neighbour on the same server")
def test_another_tenants_schema_named_in_raw_sql_gives_no_row(users: tuple[Tenant, Tenant]) -> None:
    tenant_a, tenant_b = users
    with tenant_scope(tenant_a.id):
        assert execute("SELECT username FROM auth_user") == [("of-tenant-a",)]
        assert execute(f"SELECT username FROM {tenant_b.schema_name}.auth_user") == []
        assert execute(f"SELECT count(*) FROM {tenant_b.schema_name}.django_migrations") == [(0,)]


def test_no_schema_returns_rows_without_a_tenant(users: tuple[Tenant, Tenant]) -> None:
    assert current_tenant_id() is None
    for tenant in users:
        with server_scope(tenant.server):
            assert execute(f"SELECT username FROM {tenant.schema_name}.auth_user") == []


@pytest.mark.of_one_server(reason="it attacks a neighbour on the same server")
def test_an_insert_with_another_tenant_id_is_refused(users: tuple[Tenant, Tenant]) -> None:
    tenant_a, tenant_b = users
    insert = (
        "INSERT INTO {}django_session (session_key, session_data, expire_date, tenant_id)"
        " VALUES ('k', '', now(), %s)"
    )
    message = 'new row violates row-level security policy for table "django_session"'
    with tenant_scope(tenant_a.id):
        assert refused(insert.format(""), tenant_b.id) == message
        assert refused(insert.format(f"{tenant_b.schema_name}."), tenant_b.id) == message
        assert execute("SELECT count(*) FROM django_session") == [(0,)]
    with tenant_scope(tenant_b.id):
        assert execute("SELECT count(*) FROM django_session") == [(0,)]


@pytest.mark.of_one_server(reason="it attacks a neighbour on the same server")
def test_an_insert_into_a_schema_of_others_is_refused(
    users: tuple[Tenant, Tenant],
) -> None:
    """The default is the own tenant, and the other schema accepts only its own."""
    tenant_a, tenant_b = users
    insert = (
        f"INSERT INTO {tenant_b.schema_name}.django_session"
        " (session_key, session_data, expire_date) VALUES ('k', '', now())"
    )
    # Without a tenant, too: the policy is checked before the NOT NULL.
    for scope in (tenant_scope(tenant_a.id), server_scope(tenant_a.server)):
        with scope:
            assert refused(insert) == (
                'new row violates row-level security policy for table "django_session"'
            )
    with tenant_scope(tenant_b.id):
        assert not Session.objects.exists()


def test_row_cannot_be_moved_to_another_tenant(users: tuple[Tenant, Tenant]) -> None:
    tenant_a, tenant_b = users
    with tenant_scope(tenant_a.id):
        assert refused("UPDATE auth_user SET tenant_id = %s", tenant_b.id) == (
            'new row violates row-level security policy for table "auth_user"'
        )
        assert execute("SELECT username FROM auth_user") == [("of-tenant-a",)]


@pytest.mark.of_one_server(reason="it attacks a neighbour on the same server")
def test_update_and_delete_in_another_schema_change_nothing(users: tuple[Tenant, Tenant]) -> None:
    tenant_a, tenant_b = users
    with tenant_scope(tenant_a.id), connection.cursor() as cursor:
        cursor.execute(f"UPDATE {tenant_b.schema_name}.auth_user SET username = 'stolen'")
        assert cursor.rowcount == 0
        cursor.execute(f"DELETE FROM {tenant_b.schema_name}.auth_user")
        assert cursor.rowcount == 0
    with tenant_scope(tenant_b.id):
        assert execute("SELECT username FROM auth_user") == [("of-tenant-b",)]


@pytest.mark.of_one_server(reason="it attacks a neighbour on the same server")
@pytest.mark.django_db(transaction=True)
def test_the_owner_is_bound_too(users: tuple[Tenant, Tenant]) -> None:
    tenant_a, tenant_b = users
    with as_owner():
        assert execute("SELECT current_user") == [("konstruct_owner",)]
        with tenant_scope(tenant_a.id):
            assert execute("SELECT username FROM auth_user") == [("of-tenant-a",)]
            assert execute(f"SELECT username FROM {tenant_b.schema_name}.auth_user") == []


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE {schema}.auth_user DISABLE ROW LEVEL SECURITY",
        "DROP POLICY tenant_isolation ON {schema}.auth_user",
        "CREATE POLICY open ON {schema}.auth_user USING (true)",
        "DROP TABLE {schema}.auth_user",
        "TRUNCATE {schema}.auth_user",
        "CREATE TABLE {schema}.mine (id int)",
        "CREATE SCHEMA mine",
        "SET ROLE konstruct_owner",
        "GRANT konstruct_owner TO konstruct_app",
        "DELETE FROM {schema}.django_admin_log",
        "UPDATE {schema}.django_admin_log SET change_message = ''",
        "INSERT INTO {schema}.django_migrations (app, name, applied) VALUES ('a', 'b', now())",
    ],
)
def test_the_application_may_not(tenant_a: Tenant, statement: str) -> None:
    with tenant_scope(tenant_a.id):
        message = refused(statement.format(schema=tenant_a.schema_name))
    assert message.startswith(("must be owner of", "permission denied"))


@pytest.mark.parametrize("slug", database.SHARED_TENANTS)
def test_every_table_of_every_tenant_forces_the_policy(
    shared_tenants: dict[str, Tenant], db: None, slug: str
) -> None:
    with server_scope(shared_tenants[slug].server):
        require_policies(shared_tenants[slug].schema_name)


def require_policies(expected: str) -> None:
    tables = execute(TABLES_OF_TENANTS)
    schemas = {schema for schema, *_ in tables}
    assert expected in schemas
    for schema, oid, name in tables:
        policy = policy_of(schema)
        assert execute(
            "SELECT relkind, relrowsecurity, relforcerowsecurity FROM pg_class WHERE oid = %s", oid
        ) == [("r", True, True)], name
        assert execute(
            "SELECT format_type(atttypid, atttypmod), attnotnull FROM pg_attribute"
            " WHERE attrelid = %s AND attname = 'tenant_id'",
            oid,
        ) == [("uuid", True)], name
        assert execute(
            "SELECT polname, polcmd, polpermissive, polroles::text,"
            " pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid)"
            " FROM pg_policy WHERE polrelid = %s",
            oid,
        ) == [("tenant_isolation", "*", True, "{0}", policy, policy)], name
    for schema in schemas:
        with tenant_scope(schema.removeprefix("t_")):
            own = set(connection.introspection.table_names())
        assert own == {name.split(".")[1] for other, _, name in tables if other == schema}
        assert {"auth_user", "django_session", "django_migrations"} <= own


def test_no_table_of_a_tenant_is_the_applications(tenant_a: Tenant) -> None:
    with server_scope(tenant_a.server):
        assert execute(
            "SELECT DISTINCT tableowner::text FROM pg_tables WHERE schemaname LIKE 't\\_%%'"
        ) == [("konstruct_owner",)]


def test_tenant_reads_no_rows_of_operators(users: tuple[Tenant, Tenant]) -> None:
    tenant_a, _ = users
    User.objects.create(username="operator")
    Session.objects.create(session_key="s", session_data="", expire_date=timezone.now())
    assert User.objects.get().username == "operator"
    with tenant_scope(tenant_a.id):
        assert execute("SELECT username FROM public.auth_user") == []
        assert execute("SELECT session_key FROM public.django_session") == []
        assert refused("INSERT INTO public.auth_group (name) VALUES ('g')") == (
            of_public("auth_group", tenant_a)
        )


def test_a_tenant_sees_its_own_registration_alone(users: tuple[Tenant, Tenant]) -> None:
    tenant_a, _ = users
    assert Tenant.objects.count() == 2
    with tenant_scope(tenant_a.id):
        assert [tenant.slug for tenant in Tenant.objects.all()] == ["tenant-a"]
        assert [domain.domain for domain in Domain.objects.all()] == ["tenant-a.localhost"]
        assert refused("UPDATE public.tenants_tenant SET state = 'suspended'") == (
            of_public("tenants_tenant", tenant_a)
        )


def test_a_tenant_that_does_not_exist_has_no_tables_and_not_publics_rows(db: None) -> None:
    User.objects.create(username="operator")
    with tenant_scope(uuid4()):
        assert list(User.objects.all()) == []
        with pytest.raises(DatabaseError, match="row-level security"), transaction.atomic():
            User.objects.create(username="nobody")
        with pytest.raises(ProgrammingError, match="does not exist"), transaction.atomic():
            execute("SELECT * FROM memory_message")


def test_equal_usernames_and_sessions_are_separate(tenant_a: Tenant, tenant_b: Tenant) -> None:
    for tenant in (tenant_a, tenant_b):
        with tenant_scope(tenant.id):
            User.objects.create(username="same", email=f"same@{tenant.slug}.example")
    with tenant_scope(tenant_b.id):
        assert [user.email for user in User.objects.all()] == ["same@tenant-b.example"]


@pytest.mark.django_db(transaction=True)
def test_plain_connection_of_the_application_reads_no_rows(users: tuple[Tenant, Tenant]) -> None:
    """The policies also hold without the product's backend."""
    tenant_a, _ = users
    with psycopg.connect(database.url_of("app", tenant_a.server)) as plain:
        select = f"SELECT count(*) FROM {tenant_a.schema_name}.auth_user"
        assert plain.execute(select).fetchone() == (0,)
        plain.execute("SET app.current_tenant = ''")
        assert plain.execute(select).fetchone() == (0,)
