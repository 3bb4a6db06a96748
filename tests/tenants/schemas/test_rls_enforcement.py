"""Tables of third-party migrations are protected, or refused, at the end of migrate."""

import pytest
from django.db import DatabaseError

from tenants import transaction
from tenants.context import connection, tenant_scope
from tenants.exceptions import UnprotectedSchema
from tenants.models import Tenant
from tenants.operations import enforce_rls, unprotected_relations
from tests.database import MakeTenant, as_owner, execute

pytestmark = pytest.mark.django_db(transaction=True)


def unprotected(tenant: Tenant) -> list[str]:
    with connection.cursor() as cursor:
        return [found.name for found in unprotected_relations(cursor, f"^{tenant.schema_name}$")]


def test_migrated_schema_has_no_unprotected_table(tenant_a: Tenant) -> None:
    assert unprotected(tenant_a) == []


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE extra (id int)"],
        [
            "CREATE TABLE extra (id int, tenant_id uuid NOT NULL)",
            "ALTER TABLE extra ENABLE ROW LEVEL SECURITY",
        ],
        [
            "CREATE TABLE extra (id int, tenant_id uuid NOT NULL)",
            "ALTER TABLE extra ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
            "CREATE POLICY tenant_isolation ON extra USING (true)",
        ],
        ["CREATE TABLE extra (id int) PARTITION BY LIST (id)"],
        # A table that takes rows of other tenants. It has its policy, so that none is added.
        ["ALTER TABLE memory_message DROP CONSTRAINT tenant_of_schema"],
        [
            "ALTER TABLE memory_message DROP CONSTRAINT tenant_of_schema,"
            " ADD CONSTRAINT tenant_of_schema CHECK (tenant_id IS NOT NULL)"
        ],
    ],
)
def test_a_table_that_lacks_something_is_noticed_and_protected(
    make_tenant: MakeTenant, statements: list[str]
) -> None:
    tenant = make_tenant()
    with as_owner(), tenant_scope(tenant.id):
        for statement in statements:
            execute(statement)
        found = unprotected(tenant)
        assert found in (["extra"], ["memory_message"])
        assert enforce_rls(connection) == [name for name in found if name == "extra"]
        assert unprotected(tenant) == []
        assert enforce_rls(connection) == []


def test_a_protected_table_shows_its_rows_to_its_tenant_alone(
    make_tenant: MakeTenant, tenant_a: Tenant
) -> None:
    tenant = make_tenant()
    with as_owner(), tenant_scope(tenant.id):
        execute("CREATE TABLE extra (id int)")
        execute("INSERT INTO extra VALUES (1)")
        enforce_rls(connection)
    select = f"SELECT id, tenant_id FROM {tenant.schema_name}.extra"
    with tenant_scope(tenant.id):
        assert execute(select) == [(1, tenant.id)]
        with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
            execute("INSERT INTO extra VALUES (2)")
    with tenant_scope(tenant_a.id):
        assert execute(select) == []
    assert execute(select) == []


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE MATERIALIZED VIEW extra AS SELECT * FROM auth_user",
        "CREATE POLICY open ON auth_user USING (true)",
        "CREATE TABLE extra (id int, tenant_id uuid)",
        "CREATE TABLE extra (id int, tenant_id text NOT NULL)",
    ],
)
def test_unprotectable_table_is_refused_by_name(make_tenant: MakeTenant, statement: str) -> None:
    tenant = make_tenant()
    with as_owner(), tenant_scope(tenant.id):
        execute(statement)
        (name,) = unprotected(tenant)
        with pytest.raises(UnprotectedSchema, match=f"row-level security cannot protect {name}"):
            enforce_rls(connection)
