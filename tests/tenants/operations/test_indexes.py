"""Migrations that are no transaction: cut off anywhere, they are run again and end."""

import contextlib
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import psycopg
import pytest
from django.apps import apps
from django.conf import settings
from django.core.management.commands import migrate as django_migrate
from django.db import DatabaseError, OperationalError
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import RunSQL
from django.db.migrations.recorder import MigrationRecorder
from psycopg.errors import DeadlockDetected

from tenants.context import connection, tenant_scope
from tenants.models import Tenant
from tenants.operations.indexes import AddIndexConcurrently, RemoveIndexConcurrently
from tenants.operations.policies import Vacuum
from tenants.schemas import migrating, provisioning
from tenants.schemas.executor import AtomicExecutor
from tenants.schemas.migrating import migrate_schema
from tenants.schemas.recording import recording
from tests import database
from tests.tenants.schemas.catalogs import catalog
from tests.tenants.schemas.test_migrate import forget_migration

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

AsOwner = Callable[[], AbstractContextManager[None]]

# From here on there are builds, removals and vacuums.
LONG_BEFORE = ("memory", "0007_index_what_the_admin_lists")
# The next migration builds an index and removes one.
BEFORE = ("memory", "0021_keep_usage_of_replies")
NEXT = "0022_index_lexemes_of_turns"
BUILT, REMOVED = "indexed_message_turns", "indexed_message_scope"
# What can be run again though it is no transaction. SQL can, if it sets something.
REPEATABLE = (AddIndexConcurrently, RemoveIndexConcurrently, Vacuum)
REPEATABLE_SQL = r"ALTER TABLE \w+ (RE)?SET \("


@pytest.fixture
def behind(as_owner: AsOwner) -> Iterator[Tenant]:
    """A tenant that has served, whose next migrations build indexes; the owner's connection."""
    with as_owner():
        tenant = provisioning.create_tenant(slug="behind")
        with tenant_scope(tenant.id):
            MigrationExecutor(connection).migrate([BEFORE])
        yield tenant


def run(sql: str, *parameters: object) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetchall() if cursor.description else []


def indexes(tenant: Tenant) -> dict[str, bool]:
    """The indexes of the tenant's tables, and whether each is valid."""
    return dict(
        run(
            "SELECT relname, indisvalid FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid"
            " WHERE relnamespace = %s::regnamespace",
            tenant.schema_name,
        )
    )


def test_wherever_it_is_cut_off_the_next_run_goes_on(as_owner: AsOwner, tenant_a: Tenant) -> None:
    """Cut off before each build, removal and vacuum: each run comes as far as one more of them."""
    cut_off: list[str] = []

    def cut(execute, sql, *arguments):  # type: ignore[no-untyped-def]
        if str(sql) not in cut_off and any(word in str(sql) for word in ("CONCURRENTLY", "VACUUM")):
            cut_off.append(str(sql))
            raise DatabaseError("cut off")
        return execute(sql, *arguments)

    with as_owner():
        behind = provisioning.create_tenant(slug="behind")
        with tenant_scope(behind.id):
            MigrationExecutor(connection).migrate([LONG_BEFORE])
            run(
                "INSERT INTO memory_message"
                " (id, agent_id, user_id, thread_id, channel, role, content)"
                " SELECT gen_random_uuid(), gen_random_uuid(), n, 't', 'rest', 'user', 'Hello'"
                " FROM generate_series(1, 100) AS n"
            )
        with connection.execute_wrapper(cut):
            while error := migrate_schema(behind.schema_name).error:
                assert "cut off" in error
        assert len(cut_off) > 10
        assert any("CREATE INDEX CONCURRENTLY" in sql for sql in cut_off)
        assert indexes(behind) == indexes(tenant_a)
        behind.refresh_from_db()
        assert behind.migrated_to == recording().state
        # Columns that were taken away come back as the last ones.
        ours, theirs = (
            [line for line in catalog(tenant) if not line.startswith("column")]
            for tenant in (behind, tenant_a)
        )
        assert ours == theirs


def test_indexes_whose_build_or_removal_was_cut_off_are_built_anew_and_removed(
    behind: Tenant, tenant_a: Tenant
) -> None:
    build = f"CREATE INDEX CONCURRENTLY {BUILT} ON {{table}} (created_at)"
    for statement in (build, f"DROP INDEX CONCURRENTLY {{schema}}.{REMOVED}"):
        cut_off_build(behind, statement)
    before = indexes(behind)
    assert (before[BUILT], before[REMOVED]) == (False, False)
    assert migrate_schema(behind.schema_name).error == ""
    assert indexes(behind) == indexes(tenant_a)
    definition = "SELECT pg_get_indexdef(%s::regclass)"
    ((ours,),) = run(definition, f"{behind.schema_name}.{BUILT}")
    ((theirs,),) = run(definition, f"{tenant_a.schema_name}.{BUILT}")
    assert str(ours).replace(behind.schema_name, "") == str(theirs).replace(
        tenant_a.schema_name, ""
    )


def test_they_are_undone_and_done_again_though_that_is_cut_off_too(
    behind: Tenant, tenant_a: Tenant
) -> None:
    assert migrate_schema(behind.schema_name).error == ""
    back = {"app_label": "memory", "migration_name": BEFORE[1]}
    for _ in range(2):
        assert migrate_schema(behind.schema_name, back).error == ""
        assert BUILT not in indexes(behind)
        with tenant_scope(behind.id):
            MigrationRecorder(connection).record_applied("memory", NEXT)
    with tenant_scope(behind.id):
        MigrationRecorder(connection).record_unapplied("memory", NEXT)
    assert migrate_schema(behind.schema_name).error == ""
    assert indexes(behind) == indexes(tenant_a)


def test_a_migration_is_recorded_in_the_transaction_that_applies_it(
    as_owner: AsOwner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else, killed in between, it would be applied a second time, which fails for ever."""

    def die(recorder: MigrationRecorder, app: str, name: str) -> None:
        raise RuntimeError("killed before it was recorded")

    with as_owner():
        tenant = provisioning.create_tenant(slug="behind")
        complete = indexes(tenant)
        with tenant_scope(tenant.id):
            MigrationExecutor(connection).migrate([("audit", None)])
        before = indexes(tenant)
        with monkeypatch.context() as patch:
            patch.setattr(MigrationRecorder, "record_applied", die)
            outcome = migrate_schema(tenant.schema_name, {"app_label": "audit"})
        assert "killed before it was recorded" in outcome.error
        assert indexes(tenant) == before
        assert migrate_schema(tenant.schema_name, {"app_label": "audit"}).error == ""
        with monkeypatch.context() as patch:
            patch.setattr(MigrationRecorder, "record_unapplied", die)
            undone = {"app_label": "audit", "migration_name": "zero"}
            assert "killed" in migrate_schema(tenant.schema_name, undone).error
        assert indexes(tenant) == complete


def test_djangos_migrate_uses_the_executor_that_records_so() -> None:
    assert django_migrate.MigrationExecutor is AtomicExecutor  # type: ignore[attr-defined]


def test_a_migration_that_postgres_ended_for_another_session_is_tried_again(
    as_owner: AsOwner, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(migrating.time, "sleep", pauses.append)
    migrated, ends = migrating._migrate, [1, migrating.ATTEMPTS]

    def ended(*arguments: object) -> dict[str, object]:
        if ends and ends[0]:
            ends[0] -= 1
            raise OperationalError("deadlock detected") from DeadlockDetected()
        return migrated(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(migrating, "_migrate", ended)
    with as_owner():
        tenant = provisioning.create_tenant(slug="behind")
        forget_migration(tenant)
        assert (migrate_schema(tenant.schema_name).error, len(pauses)) == ("", 1)
        pauses.clear()
        forget_migration(tenant)
        del ends[0]
        assert migrate_schema(tenant.schema_name).error.endswith("deadlock detected")
        assert len(pauses) == migrating.ATTEMPTS - 1


def test_every_migration_that_is_no_transaction_can_be_run_again() -> None:
    """Complete: a migration that comes later is looked at too."""
    ours = {apps.get_containing_app_config(f"{name}.x").label for name in settings.TENANT_APPS}
    migrations = MigrationLoader(None).disk_migrations
    found = [
        (migration, operation)
        for (app, _), migration in migrations.items()
        if app in ours and not migration.atomic
        for operation in migration.operations
    ]
    assert len(found) > 7
    for migration, operation in found:
        if isinstance(operation, RunSQL):
            for sql in (operation.sql, operation.reverse_sql):
                assert re.match(REPEATABLE_SQL, sql), (migration, sql)
        else:
            assert isinstance(operation, REPEATABLE), (migration, operation)


def cut_off_build(tenant: Tenant, statement: str) -> None:
    """Let Postgres cancel the statement while it waits for another session's old snapshot."""
    table = f"{tenant.schema_name}.memory_indexedmessage"
    with (
        psycopg.connect(database.url_of("owner")) as reader,
        psycopg.connect(database.url_of("owner"), autocommit=True) as cancelled,
        contextlib.suppress(psycopg.errors.QueryCanceled),
    ):
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute(f"SELECT FROM {table}")
        cancelled.execute("SET statement_timeout = '1s'")
        cancelled.execute(statement.format(table=table, schema=tenant.schema_name))
