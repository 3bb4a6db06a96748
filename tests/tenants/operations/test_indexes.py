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
from tests import database

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

AsOwner = Callable[[], AbstractContextManager[None]]

BEFORE = ("memory", "0007_index_what_the_admin_lists")
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
            run(
                "INSERT INTO memory_message"
                " (id, agent_id, user_id, thread_id, channel, role, content)"
                " SELECT gen_random_uuid(), gen_random_uuid(), n, 't', 'rest', 'user', 'Hello'"
                " FROM generate_series(1, 100) AS n"
            )
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


def test_wherever_it_is_cut_off_the_next_run_goes_on(behind: Tenant, tenant_a: Tenant) -> None:
    """Cut off before each build, removal and vacuum: each run comes as far as one more of them."""
    cut_off: list[str] = []

    def cut(execute, sql, *arguments):  # type: ignore[no-untyped-def]
        if str(sql) not in cut_off and any(word in str(sql) for word in ("CONCURRENTLY", "VACUUM")):
            cut_off.append(str(sql))
            raise DatabaseError("cut off")
        return execute(sql, *arguments)

    with connection.execute_wrapper(cut):
        while error := migrate_schema(behind.schema_name).error:
            assert "cut off" in error
    assert len(cut_off) > 10
    assert indexes(behind) == indexes(tenant_a)


def test_an_index_whose_build_was_cut_off_is_built_anew(behind: Tenant, tenant_a: Tenant) -> None:
    cut_off_build(behind, "CREATE INDEX CONCURRENTLY message_user ON {table} (user_id)")
    assert indexes(behind)["message_user"] is False
    assert migrate_schema(behind.schema_name).error == ""
    assert indexes(behind) == indexes(tenant_a)
    definition = "SELECT pg_get_indexdef(%s::regclass)"
    ((ours,),) = run(definition, f"{behind.schema_name}.message_user")
    ((theirs,),) = run(definition, f"{tenant_a.schema_name}.message_user")
    assert str(ours).replace(behind.schema_name, "") == str(theirs).replace(
        tenant_a.schema_name, ""
    )


def test_an_index_whose_removal_was_cut_off_is_removed(behind: Tenant, tenant_a: Tenant) -> None:
    with tenant_scope(behind.id):
        MigrationExecutor(connection).migrate([("memory", "0008_index_lists")])
    cut_off_build(behind, "DROP INDEX CONCURRENTLY {schema}.message_time")
    assert indexes(behind)["message_time"] is False
    assert migrate_schema(behind.schema_name).error == ""
    assert indexes(behind) == indexes(tenant_a)


def test_they_are_undone_and_done_again_though_that_is_cut_off_too(
    behind: Tenant, tenant_a: Tenant
) -> None:
    assert migrate_schema(behind.schema_name).error == ""
    back = {"app_label": "memory", "migration_name": BEFORE[1]}
    for _ in range(2):
        assert migrate_schema(behind.schema_name, back).error == ""
        assert "message_user" not in indexes(behind)
        with tenant_scope(behind.id):
            MigrationRecorder(connection).record_applied("memory", "0008_index_lists")
    with tenant_scope(behind.id):
        MigrationRecorder(connection).record_unapplied("memory", "0008_index_lists")
    assert migrate_schema(behind.schema_name).error == ""
    assert indexes(behind) == indexes(tenant_a)


def test_a_schema_that_an_earlier_version_left_half_made_is_finished(
    behind: Tenant, tenant_a: Tenant
) -> None:
    """Earlier versions made a schema in many transactions, and failed at its concurrent builds."""
    run(f"CREATE INDEX message_time ON {behind.schema_name}.memory_message (created_at, number)")
    cut_off_build(behind, "CREATE INDEX CONCURRENTLY message_user ON {table} (user_id)")
    Tenant.objects.filter(id=behind.id).update(state=Tenant.State.PROVISIONING)
    assert provisioning.create_tenant(slug="behind").state == "active"
    assert indexes(behind) == indexes(tenant_a)


def test_a_migration_is_recorded_in_the_transaction_that_applies_it(
    behind: Tenant, tenant_a: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else, killed in between, it would be applied a second time, which fails for ever."""

    def die(recorder: MigrationRecorder, app: str, name: str) -> None:
        raise RuntimeError("killed before it was recorded")

    for app in ("audit", "orchestrator"):
        with tenant_scope(behind.id):
            MigrationExecutor(connection).migrate([(app, None)])
        before = indexes(behind)
        with monkeypatch.context() as patch:
            patch.setattr(MigrationRecorder, "record_applied", die)
            outcome = migrate_schema(behind.schema_name, {"app_label": app})
        assert "killed before it was recorded" in outcome.error
        assert indexes(behind) == before
        assert migrate_schema(behind.schema_name, {"app_label": app}).error == ""
        with monkeypatch.context() as patch:
            patch.setattr(MigrationRecorder, "record_unapplied", die)
            undone = {"app_label": app, "migration_name": "zero"}
            assert "killed" in migrate_schema(behind.schema_name, undone).error
    assert migrate_schema(behind.schema_name).error == ""
    assert indexes(behind) == indexes(tenant_a)


def test_djangos_migrate_uses_the_executor_that_records_so() -> None:
    assert django_migrate.MigrationExecutor is AtomicExecutor  # type: ignore[attr-defined]


def test_a_migration_that_postgres_ended_for_another_session_is_tried_again(
    behind: Tenant, monkeypatch: pytest.MonkeyPatch
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
    assert (migrate_schema(behind.schema_name).error, len(pauses)) == ("", 1)
    pauses.clear()
    del ends[0]
    assert migrate_schema(behind.schema_name).error.endswith("deadlock detected")
    assert len(pauses) == migrating.ATTEMPTS - 1


def test_a_tenant_whose_tables_are_locked_is_left_for_later(
    behind: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrating.time, "sleep", pytest.fail)
    with psycopg.connect(database.url_of("owner")) as other:
        other.execute(f"LOCK TABLE {behind.schema_name}.memory_message IN ACCESS EXCLUSIVE MODE")
        run("SET lock_timeout = '100ms'")
        outcome = migrate_schema(behind.schema_name)
        other.rollback()
        assert outcome.locked
        assert f"locked by Postgres backend {other.info.backend_pid}" in outcome.error
    assert migrate_schema(behind.schema_name).error == ""


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
    table = f"{tenant.schema_name}.memory_message"
    with (
        psycopg.connect(database.url_of("owner")) as reader,
        psycopg.connect(database.url_of("owner"), autocommit=True) as cancelled,
        contextlib.suppress(psycopg.errors.QueryCanceled),
    ):
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute(f"SELECT FROM {table}")
        cancelled.execute("SET statement_timeout = '1s'")
        cancelled.execute(statement.format(table=table, schema=tenant.schema_name))
