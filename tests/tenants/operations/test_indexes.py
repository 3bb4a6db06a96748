"""Non-atomic migrations: after any interruption, the next run completes them."""

import re
from collections.abc import Iterator
from typing import ClassVar

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib.postgres.operations import RemoveIndexConcurrently
from django.core.management.commands import migrate as django_migrate
from django.db import DatabaseError, OperationalError
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import RunSQL
from django.db.migrations.operations.base import Operation
from django.db.models import Index
from psycopg.errors import DeadlockDetected

from tenants.context import connection
from tenants.models import Tenant
from tenants.operations import AddIndexConcurrently
from tenants.schemas import migrating, provisioning
from tests.database import as_owner, execute
from tests.tenants.schemas.test_migrate import forget_migration

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


LAST, NEXT = "0001_initial", "0002_build_and_remove"
BUILT, REMOVED = "indexed_message_subject", "indexed_message_turns"
# Repeatable operations that are not in a transaction. SQL is repeatable if it sets a value.
REPEATABLE = (AddIndexConcurrently, RemoveIndexConcurrently)
REPEATABLE_SQL = r"ALTER TABLE \w+ (RE)?SET \("


class BuildAndRemove(Migration):
    """Builds two indexes and removes one, like a release during operation."""

    atomic = False
    dependencies: ClassVar = [("memory", LAST)]
    operations: ClassVar = [
        AddIndexConcurrently("indexedmessage", Index(fields=["subject"], name=BUILT)),
        RemoveIndexConcurrently("indexedmessage", REMOVED),
        AddIndexConcurrently("message", Index(fields=["channel"], name="message_channel")),
    ]


@pytest.fixture
def behind(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tenant]:
    """A tenant without `BuildAndRemove`, and the owner's connection."""
    load = MigrationLoader.load_disk

    def load_with_next(loader: MigrationLoader) -> None:
        load(loader)
        loader.disk_migrations["memory", NEXT] = BuildAndRemove(NEXT, "memory")

    with as_owner():
        tenant = provisioning.create_tenant(slug="behind")
        monkeypatch.setattr(MigrationLoader, "load_disk", load_with_next)
        yield tenant


def indexes(tenant: Tenant) -> dict[str, bool]:
    """Return the indexes of the tenant's tables, and whether each is valid."""
    return dict(
        execute(
            "SELECT relname, indisvalid FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid"
            " WHERE relnamespace = %s::regnamespace",
            tenant.schema_name,
        )
    )


def test_next_run_continues_after_any_interruption(behind: Tenant) -> None:
    """Interrupted before each build and removal: each run completes one more of them."""
    cut_off: list[str] = []

    def cut(execute, sql, *arguments):  # type: ignore[no-untyped-def]
        if str(sql) not in cut_off and "CONCURRENTLY" in str(sql):
            cut_off.append(str(sql))
            raise DatabaseError("cut off")
        return execute(sql, *arguments)

    before = indexes(behind)
    with connection.execute_wrapper(cut):
        while error := migrating.migrate_schema(behind.schema_name).error:
            assert "cut off" in error
    assert [sql.split()[0] for sql in cut_off] == ["DROP", "CREATE", "DROP", "DROP", "CREATE"]
    expected = before | {BUILT: True, "message_channel": True}
    del expected[REMOVED]
    assert indexes(behind) == expected


def test_djangos_migrate_uses_the_executor_that_records_so() -> None:
    assert django_migrate.MigrationExecutor is migrating.AtomicExecutor  # type: ignore[attr-defined]


def test_migration_cancelled_by_postgres_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(migrating.time, "sleep", pauses.append)
    migrated, ends = migrating._migrate, [1, 1 + len(migrating.RETRY_PAUSES_SECONDS)]

    def ended(*arguments: object) -> dict[str, object]:
        if ends and ends[0]:
            ends[0] -= 1
            raise OperationalError("deadlock detected") from DeadlockDetected()
        return migrated(*arguments)  # type: ignore[arg-type]

    with as_owner():
        tenant = provisioning.create_tenant(slug="behind")
        monkeypatch.setattr(migrating, "_migrate", ended)
        forget_migration(tenant)
        (result,) = migrating.migrate_schemas([tenant.schema_name], {}, parallel=1)
        assert (result.error, sum(pauses)) == ("", migrating.RETRY_PAUSES_SECONDS[0])
        forget_migration(tenant)
        del ends[0]
        (result,) = migrating.migrate_schemas([tenant.schema_name], {}, parallel=1)
        assert result.error.endswith("deadlock detected")
        assert not ends[0]


def test_every_non_atomic_migration_can_be_repeated() -> None:
    """Includes migrations that are added later."""
    labels = {apps.get_containing_app_config(f"{name}.x").label for name in settings.TENANT_APPS}
    migrations = MigrationLoader(None).disk_migrations
    checked = [
        (migration.name, operation, is_repeatable(operation))
        for migration in (*migrations.values(), BuildAndRemove(NEXT, "memory"))
        if migration.app_label in labels and not migration.atomic
        for operation in migration.operations
    ]
    assert len(checked) >= len(BuildAndRemove.operations)
    assert [row for row in checked if not row[-1]] == []


def is_repeatable(operation: Operation) -> bool:
    if isinstance(operation, RunSQL):
        return all(re.match(REPEATABLE_SQL, sql) for sql in (operation.sql, operation.reverse_sql))
    return isinstance(operation, REPEATABLE)
