"""Migration operations: their effects, their reversal, and unaffected tables."""

from collections.abc import Iterator

import pytest
from django.db.migrations.state import ProjectState

from tenants import operations
from tenants.context import connection, tenant_scope
from tenants.models import Tenant
from tests.database import as_owner, execute

pytestmark = pytest.mark.django_db(transaction=True)

APP = "isolation"  # a tenant app without models


@pytest.fixture
def table(tenant_a: Tenant) -> Iterator[str]:
    """An empty table in the tenant's schema, and the owner's connection inside that schema."""
    with as_owner(), tenant_scope(tenant_a.id):
        execute("CREATE TABLE notes (id int, embedding vector(3))")
        yield f"{tenant_a.schema_name}.notes"
        execute("DROP TABLE notes")


def apply(operation: operations.TableOperation, app_label: str = APP) -> None:
    state = ProjectState()
    with connection.schema_editor() as editor:
        operation.database_forwards(app_label, editor, state, state)


def unapply(operation: operations.TableOperation) -> None:
    state = ProjectState()
    with connection.schema_editor() as editor:
        operation.database_backwards(APP, editor, state, state)


def protection() -> tuple[object, ...]:
    (row,) = execute(
        "SELECT relrowsecurity, relforcerowsecurity,"
        " ARRAY(SELECT polname::text FROM pg_policy WHERE polrelid = c.oid)"
        " FROM pg_class AS c WHERE oid = 'notes'::regclass"
    )
    return row


def privileges() -> list[object]:
    return [
        privilege
        for (privilege,) in execute(
            "SELECT privilege_type FROM information_schema.table_privileges"
            " WHERE table_schema = current_schema() AND table_name = 'notes'"
            " AND grantee = 'konstruct_app' ORDER BY 1"
        )
    ]


def test_force_row_level_security(table: str) -> None:
    apply(operations.AddTenantColumn("notes"))
    apply(operations.ForceRowLevelSecurity("notes"))
    assert protection() == (True, True, ["tenant_isolation"])
    unapply(operations.ForceRowLevelSecurity("notes"))
    assert protection() == (False, False, [])


def test_repeated_protection_changes_nothing(table: str) -> None:
    for _ in range(2):
        apply(operations.AddTenantColumn("notes"))
        apply(operations.ForceRowLevelSecurity("notes"))
    assert protection() == (True, True, ["tenant_isolation"])


def test_add_tenant_column_fills_in_the_tenant(table: str, tenant_a: Tenant) -> None:
    execute("INSERT INTO notes (id) VALUES (1)")
    apply(operations.AddTenantColumn("notes"))
    execute("INSERT INTO notes (id) VALUES (2)")
    assert execute("SELECT id, tenant_id FROM notes ORDER BY id") == [
        (1, tenant_a.id),
        (2, tenant_a.id),
    ]
    unapply(operations.AddTenantColumn("notes"))
    assert execute("SELECT * FROM notes WHERE id = 1") == [(1, None)]


def test_grants_to_the_application(table: str) -> None:
    assert privileges() == ["SELECT"]
    grant = operations.GrantToApp("notes", "INSERT", "UPDATE")
    apply(grant)
    assert privileges() == ["INSERT", "SELECT", "UPDATE"]
    unapply(grant)
    assert privileges() == ["SELECT"]


def test_grants_on_columns(table: str) -> None:
    apply(operations.GrantToApp("notes", "UPDATE (embedding)"))
    assert privileges() == ["SELECT"]
    assert execute(
        "SELECT column_name::text FROM information_schema.column_privileges"
        " WHERE table_name = 'notes' AND privilege_type = 'UPDATE' AND grantee = 'konstruct_app'"
    ) == [("embedding",)]


def test_vectors_inside_the_row(table: str) -> None:
    storage = (
        "SELECT attstorage FROM pg_attribute WHERE attrelid = 'notes'::regclass AND attnum = 2"
    )
    (before,) = execute(storage)
    apply(operations.VectorStoragePlain("notes"))
    assert execute(storage) == [("p",)]
    unapply(operations.VectorStoragePlain("notes"))
    assert execute(storage) == [before]
    assert before != ("p",)


def test_app_outside_of_the_schema_changes_nothing(table: str) -> None:
    apply(operations.ForceRowLevelSecurity("notes"), app_label="tenants")
    assert protection() == (False, False, [])


def test_a_table_that_the_tenant_lacks_is_an_error_and_not_publics(table: str) -> None:
    with pytest.raises(Exception, match=r'relation "t_\w+.tenants_domain" does not exist'):
        apply(operations.ForceRowLevelSecurity("tenants_domain"))
