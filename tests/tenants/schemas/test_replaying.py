"""A replayed schema equals the schema of Django's own migrate."""

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from importlib import import_module
from io import StringIO
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group
from django.db.migrations import RunPython

from tenants import transaction
from tenants.context import connection, tenant_scope
from tenants.models import Tenant
from tenants.schemas import migrating, provisioning
from tenants.schemas.executor import AtomicExecutor, MigrateSchema
from tenants.schemas.recording import get_recording, record
from tenants.schemas.rls_enforcement import enforce_rls
from tests.tenants.schemas.catalogs import catalog, rows
from tests.tenants.schemas.histories import undo

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

AsOwner = Callable[[], AbstractContextManager[None]]
Make = Callable[[str], Tenant]


@pytest.fixture(autouse=True)
def _as_owner(as_owner: AsOwner, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with as_owner():
        yield
    # If a replay fails, Django's migrations run instead, without an error.
    assert [entry for entry in caplog.records if entry.levelno >= logging.WARNING] == []


class Expected(NamedTuple):
    catalog: list[str]
    rows: dict[str, list[Any]]
    unnumbered: dict[str, list[Any]]


_expected: list[Expected] = []


@pytest.fixture
def by_django(monkeypatch: pytest.MonkeyPatch) -> Make:
    """Create a tenant without a recording."""

    def make(slug: str) -> Tenant:
        with monkeypatch.context() as patch:
            patch.setattr(migrating, "recording_for", lambda options: None)
            return provisioning.create_tenant(slug=slug)

    return make


def upgrade(tenant: Tenant) -> int:
    """Migrate an active tenant. Return the number of missing migrations."""
    command = MigrateSchema()
    assert migrating._upgrade(tenant, command, get_recording()) is not None
    return command.applied


@pytest.fixture
def expected(by_django: Make) -> Expected:
    """The schema of Django's migrate, created once for this module."""
    if not _expected:
        tenant = by_django("by-django")
        _expected.append(Expected(catalog(tenant), rows(tenant), rows(tenant, numbered=False)))
    return _expected[0]


def test_a_new_schema_equals_djangos(expected: Expected) -> None:
    made = provisioning.create_tenant(slug="by-replay")
    assert len(expected.catalog) > 500
    assert catalog(made) == expected.catalog
    assert rows(made) == expected.rows


@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.long)])
def test_an_upgrade_from_an_earlier_state_equals_djangos(expected: Expected, every: int) -> None:
    tenant = Tenant.objects.create(slug="earlier", name="in each of its states")
    seen = []
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(f"CREATE SCHEMA {tenant.schema_name}")
        connection.set_schema(tenant.schema_name)
        executor = AtomicExecutor(connection)
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes(), clean_start=True)
        state = None
        for number, (migration, _) in enumerate(plan):
            state = executor.migrate([], plan=[(migration, False)], state=state)
            if number % every == 0:
                earlier = connection.savepoint()
                enforce_rls(connection)  # at the end of every migrate
                assert upgrade(tenant) == len(plan) - number - 1
                found = catalog(tenant), rows(tenant, numbered=False)
                assert found == (expected.catalog, expected.unnumbered), f"from {migration}"
                connection.savepoint_rollback(earlier)
                connection.set_schema(tenant.schema_name)
                seen.append(number)
        transaction.set_rollback(True)
    assert len(seen) >= len(plan) // every


@pytest.mark.parametrize(
    "migrations", [5, *(pytest.param(n, marks=pytest.mark.long) for n in range(2, 14, 3))]
)
def test_migrations_run_backwards_and_forwards(by_django: Make, migrations: int) -> None:
    expected, tenant = by_django("by-django"), provisioning.create_tenant(slug="by-replay")
    with transaction.atomic():
        for migrated in (expected, tenant):
            undo(migrated, migrations)
        assert (catalog(tenant), rows(tenant)) == (catalog(expected), rows(expected))
        assert upgrade(tenant) == migrations
        connection.set_schema(expected.schema_name)
        MigrateSchema(stdout=StringIO()).run()
        enforce_rls(connection)
        assert catalog(tenant) == catalog(expected)
        transaction.set_rollback(True)


def test_python_that_makes_rows_runs_for_each_tenant(monkeypatch: pytest.MonkeyPatch) -> None:
    """A generated value of one tenant, such as a secret, is not shared with another."""

    def make_up(apps: Any, editor: Any) -> None:
        apps.get_model("auth", "Group").objects.create(name=f"made up {uuid4()}")

    def look(apps: Any, editor: Any) -> None:
        assert not apps.get_model("auth", "User").objects.exists()

    earlier, later = (
        import_module(f"{app}.migrations.0001_initial").Migration
        for app in ("tenants.audit", "konstruct.channels")
    )
    monkeypatch.setattr(earlier, "operations", [*earlier.operations, RunPython(make_up)])
    monkeypatch.setattr(later, "operations", [*later.operations, RunPython(look)])
    made = record()
    assert [
        (step.app, step.name) for step in made.steps if not step.can_be_replayed(empty=True)
    ] == [("audit", "0001_initial")]
    monkeypatch.setattr(migrating, "get_recording", lambda: made)
    names = []
    for slug in ("one", "two"):
        with tenant_scope(provisioning.create_tenant(slug=slug).id):
            names += Group.objects.filter(name__startswith="made up").values_list("name", flat=True)
    assert len(set(names)) == 2
