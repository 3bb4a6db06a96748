"""The script of new schemas creates what Django's migrate creates."""

from collections.abc import Iterator

import pytest

from tenants.context import connection, tenant_scope
from tenants.management.commands.make_schema_script import make_script
from tenants.models import Tenant
from tenants.schemas import migrating, provisioning
from tenants.schemas.migrating import FILE
from tests.database import as_owner, execute
from tests.tenants.schemas.catalogs import catalog, rows
from tests.tenants.schemas.histories import undo
from tests.tenants.schemas.test_migrate import migrate

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture(autouse=True)
def _as_owner() -> Iterator[None]:
    with as_owner():
        yield


def by_django(slug: str) -> Tenant:
    """Create a tenant without the script: it has not run, and the schema exists."""
    execute(f"CREATE SCHEMA {Tenant.objects.create(slug=slug, name=slug).schema_name}")
    return provisioning.create_tenant(slug=slug)


def test_the_script_in_the_repository_is_of_these_migrations() -> None:
    remedy = "run manage.py make_schema_script, and commit its file"
    assert make_script() == FILE.read_text(), remedy
    assert execute("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 't\\_5e5f3c1a%'") == [(0,)]


def test_a_new_schema_equals_djangos() -> None:
    expected, made = by_django("by-django"), provisioning.create_tenant(slug="by-script")
    assert len(catalog(expected)) > 500
    assert catalog(made) == catalog(expected)
    assert rows(made) == rows(expected)
    assert made.migrated_to == expected.migrated_to
    with tenant_scope(made.id):
        ages = "SELECT max(now() - applied) < interval '1 minute' FROM django_migrations"
        assert execute(ages) == [(True,)]


@pytest.mark.parametrize(
    "migrations", [5, *(pytest.param(n, marks=pytest.mark.long) for n in range(2, 14, 3))]
)
def test_migrations_run_backwards_and_forwards(migrations: int) -> None:
    expected, tenant = by_django("by-django"), provisioning.create_tenant(slug="by-script")
    for migrated in (expected, tenant):
        undo(migrated, migrations)
    assert (catalog(tenant), rows(tenant)) == (catalog(expected), rows(expected))
    for migrated in (expected, tenant):
        result = migrating.migrate_schema(migrated.schema_name)
        assert (result.error, result.applied) == ("", migrations)
    assert catalog(tenant) == catalog(expected)


def test_a_change_of_what_every_schema_has_reaches_existing_tenants(
    tenant_a: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as another role, without a migration."""
    with tenant_scope(tenant_a.id):
        execute("DELETE FROM auth_group_permissions")
    assert migrate()[0][1:] == ["2 tenants  up to date"]
    monkeypatch.setattr("tenants.schemas.migrating.get_script", lambda: "-- with a new role")
    out, *_ = migrate()
    assert [line.split("  ")[1] for line in out[1:]] == ["up to date"] * 2
    with tenant_scope(tenant_a.id):
        assert execute("SELECT count(*) > 0 FROM auth_group_permissions") == [(True,)]
    monkeypatch.undo()
    migrate()


# Plain indexes whose columns are a prefix of another index.
_REPEATED = """
    SELECT a.indexrelid::regclass::text, b.indexrelid::regclass::text
    FROM pg_index AS a
    JOIN pg_class AS c ON c.oid = a.indexrelid AND c.relnamespace = %s::regnamespace
    JOIN pg_index AS b ON b.indrelid = a.indrelid AND b.indexrelid <> a.indexrelid
        AND b.indpred IS NULL AND b.indkey::text || ' ' LIKE a.indkey::text || ' %%'
    WHERE NOT a.indisunique AND a.indpred IS NULL AND a.indexprs IS NULL
        AND a.indnatts <= b.indnkeyatts
        AND b.indclass[0:a.indnkeyatts - 1] = a.indclass[0:a.indnkeyatts - 1]
        AND b.indoption[0:a.indnkeyatts - 1] = a.indoption[0:a.indnkeyatts - 1]
"""


def test_no_index_repeats_the_beginning_of_another(tenant_a: Tenant) -> None:
    with tenant_scope(tenant_a.id), connection.cursor() as cursor:
        cursor.execute(_REPEATED, [tenant_a.schema_name])
        assert cursor.fetchall() == []
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind = 'i'"
            " AND relname LIKE '%%\\_like'",
            [tenant_a.schema_name],
        )
        assert cursor.fetchall() == []
