"""Migrates schemas: one by Django's migrate command, and many of them in several processes.

The schema of a new tenant is created by an SQL script with tables and first rows, which
`manage.py make_schema_script` writes from a schema that Django has migrated. Django applies the
migrations that it lacks, such as those of another version of Django, after the script.

A migration that is interrupted is continued by the next run:

- the schema of a new tenant is created by the script, in one transaction, and the migrations that
  the script lacks are applied afterwards;
- a migration is recorded in the transaction that applies it;
- migrations without a transaction have operations that can be repeated (`tenants/operations.py`).
"""

import io
import os
import signal
import threading
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import cache, partial
from hashlib import blake2b
from multiprocessing import connection as pipes, get_context, parent_process
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from django.core.management import call_command
from django.core.management.commands import migrate as django_migrate
from django.db import DatabaseError, OperationalError, connections, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import Exists, F, OuterRef, QuerySet
from django.db.models.functions import Now
from psycopg import errors

from tenants import context, naming, operations, outages
from tenants.exceptions import KonstructError, SchemaBusy, SchemaOutdated, UnknownTenant
from tenants.models import SchemaState, Tenant
from tenants.postgres_tools import WAIT_SECONDS, schema_lock
from tenants.servers import MAIN, server_of, servers

FILE: Final = Path(__file__).with_name("new_schema.sql")
# In the script, for the name of the schema and the id of its tenant.
SCHEMA: Final = "__schema__"
TENANT: Final = "__tenant__"


def digest_of(lines: Iterable[str]) -> str:
    """Return a digest of 16 characters."""
    return blake2b("\0".join(lines).encode(), digest_size=8).hexdigest()


@cache
def known_migrations() -> frozenset[str]:
    """Return the migrations of this code, such as ``memory.0001_initial``."""
    found = MigrationLoader(None).disk_migrations or {}
    return frozenset(f"{app}.{name}" for app, name in found)


@cache
def get_script() -> str:
    """Return the script with its placeholders."""
    return FILE.read_text()


def script_for(schema_name: str, tenant_id: UUID) -> str:
    """Return the script for the schema of a tenant."""
    return get_script().replace(SCHEMA, schema_name).replace(TENANT, str(tenant_id))


def current_state() -> str:
    """Return the value of `Tenant.migrated_to` for a schema that is up to date.

    It changes with the script, because `migrate` also brings permissions, roles and policies of
    existing tenants up to date.
    """
    return digest_of([*sorted(known_migrations()), get_script()])


def missing_in_public() -> list[str]:
    """Return the migrations of this code that the public schema of the current server lacks."""
    applied = MigrationRecorder(context.tenant_connection()).applied_migrations()
    return sorted(known_migrations() - {f"{app}.{name}" for app, name in applied})


def fitting_states() -> QuerySet[SchemaState]:
    """Return the states in which this code can serve a tenant: no migration of it is missing.

    A state of a later version may have more migrations.
    """
    return SchemaState.objects.filter(migrations__contains=sorted(known_migrations()))


def is_fitting() -> Exists:
    """Return an expression for a queryset of tenants: whether this code can serve the tenant."""
    return Exists(fitting_states().filter(name=OuterRef("migrated_to")))


# States that fit this code. The migrations of a state never change.
_fitting: set[str] = set()


def fits(migrated_to: str) -> bool:
    """Return whether this code can serve a tenant in that state. Known states need no query."""
    if migrated_to not in _fitting:
        _fitting.update(fitting_states().values_list("name", flat=True))
    return migrated_to in _fitting


def schema_exists(schema_name: str) -> bool:
    """Return whether the current server has a schema of this name."""
    return bool(context.fetch_value("SELECT to_regnamespace(%s) IS NOT NULL", [schema_name]))


_TENANT_SCHEMAS = "SELECT nspname FROM pg_namespace WHERE nspname ~ %s"


def schemas_to_visit(state: str) -> set[str]:
    """Return the names of the schemas in which migrate has something to do.

    They are in another state, or gone, or have an unprotected table; or their server is down.
    It sends three queries for each server.

    Args:
        state: the state of a schema that is up to date.
    """
    found: set[str] = set()
    for server in servers():
        tenants = Tenant.objects.provisioned().filter(server=server)
        states = dict(tenants.values_list("schema_name", "migrated_to"))
        try:
            with context.server_scope(server):
                found |= operations.unprotected_schemas(naming.SCHEMA_PATTERN)
                existing = set(context.fetch_column(_TENANT_SCHEMAS, [naming.SCHEMA_PATTERN]))
        except outages.ServerDown:
            existing = set()
        found |= {name for name in states if states[name] != state or name not in existing}
    return found


def require_migrated(tenant_id: UUID | None = None) -> None:
    """Raise if the tenant, or any tenant that serves, lacks migrations of this code.

    Raises:
        UnknownTenant: there is no such tenant.
        SchemaOutdated: with the tenants, up to five by name.
    """
    tenants = Tenant.objects.filter(id=tenant_id) if tenant_id else Tenant.objects.serving()
    if tenant_id and not tenants.exists():
        raise UnknownTenant(f"no tenant has the id {tenant_id}")
    if slugs := tenants.exclude(is_fitting()).values_list("slug", flat=True)[:5]:
        raise SchemaOutdated(
            f"tenant {', '.join(slugs)} lacks tables or columns of this version: run"
            " `manage.py migrate`"
        )


# --- Migrating -----------------------------------------------------------------------------------

# Postgres cancels a migration because of another session. It was rolled back, or can be repeated.
CANCELLED: Final = (errors.DeadlockDetected, errors.LockNotAvailable, errors.SerializationFailure)
# Other sessions wait behind a migration that waits for a lock, so it gives up after this time.
LOCK_TIMEOUT: Final = "2s"
# A pool of processes costs more than it gains below this many schemas (about 100 ms each).
MIN_POOLED_SCHEMAS = 8
# Tenants with locked tables, or whose migration Postgres cancelled because of another session, are
# tried again after all others, after each of these pauses.
RETRY_PAUSES_SECONDS: Final = (1.0, 5.0, 15.0)
# No other session uses a new schema; locks in the public schema are held for moments.
NEW_SCHEMA_LOCK_TIMEOUT: Final = "30s"


# On servers other than the main one the application writes no public table but the outbox.
_REVOKE_PUBLIC_WRITES = f"""
DO $$
DECLARE closed text;
BEGIN
    FOR closed IN
        SELECT oid::regclass::text FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v')
          AND relname NOT IN ('tenants_job', 'orchestrator_pendingreply')
    LOOP
        EXECUTE 'REVOKE INSERT, UPDATE, DELETE ON ' || closed || ' FROM {naming.APP_ROLE}';
    END LOOP;
END $$
"""  # noqa: S608


class AtomicExecutor(MigrationExecutor):
    """Django's executor, but it records a migration in the transaction that applies it.

    Django records a migration after the transaction if SQL was deferred to its end, such as foreign
    keys. A process that is killed in between would apply the migration a second time.
    """

    def apply_migration(self, state: Any, migration: Any, *args: Any, **options: Any) -> Any:
        with self._transaction_of(migration):
            return super().apply_migration(state, migration, *args, **options)

    def unapply_migration(self, state: Any, migration: Any, *args: Any, **options: Any) -> Any:
        with self._transaction_of(migration):
            return super().unapply_migration(state, migration, *args, **options)

    def _transaction_of(self, migration: Any) -> Any:
        return transaction.atomic(self.connection.alias) if migration.atomic else nullcontext()


# Django's command makes its executor under this name, and offers no other way to choose it.
django_migrate.MigrationExecutor = AtomicExecutor  # type: ignore[attr-defined]


class MigrateSchema(django_migrate.Command):
    """Django's migrate command for the schema of the connection. It counts migrations.

    A migration without a transaction waits for locks without a limit: CREATE INDEX CONCURRENTLY
    waits for the end of other transactions, and no session waits for it.
    """

    applied = 0
    current = ""
    lock_timeout = ""

    def run(self, **options: Any) -> bool:
        """Run the command with Django's options. Return whether --check found migrations."""
        try:
            call_command(
                self,
                **{"verbosity": 0, **options},
                interactive=False,
                database=context.current_server(),
            )
        except SystemExit:  # Django's answer to --check
            return True
        return False

    def migration_progress_callback(
        self, action: str, migration: Any = None, fake: bool = False
    ) -> None:
        if action in ("apply_start", "unapply_start"):
            self.current = str(migration)
            if self.lock_timeout and migration.atomic:
                context.execute(f"SET LOCAL lock_timeout = '{self.lock_timeout}'")
        elif action in ("apply_success", "unapply_success"):
            self.applied += 1
            self.current = ""
        super().migration_progress_callback(action, migration, fake)


@dataclass(frozen=True)
class MigrationResult:
    """The result of migrating one schema."""

    schema_name: str
    seconds: float = 0.0
    applied: int = 0
    protected: tuple[str, ...] = ()
    unapplied: bool = False  # with --check: there are unapplied migrations
    error: str = ""  # one line; empty on success
    busy: bool = False  # another process migrates the schema; an error, too
    cancelled: bool = False  # because of another session; an error, too
    details: str = ""  # Django's own output, and the traceback of an error


def migrate_schema(
    schema_name: str,
    options: Mapping[str, Any] | None = None,
    *,
    server: str = "",
    wait_seconds: float = WAIT_SECONDS,
) -> MigrationResult:
    """Migrate one schema. Errors are in the result; the function raises none.

    A tenant in state provisioning gets its schema first, and is activated at the end.

    Args:
        schema_name: a tenant's schema, or "public".
        options: options of Django's migrate.
        server: the server of the public schema; by default the main one.
        wait_seconds: how long to wait for another process that migrates the same schema. The
            result is `busy` after that.

    Returns:
        What was applied, or the error.
    """
    tenant_id = naming.tenant_id_of(schema_name)
    if tenant_id is not None:
        with suppress(OperationalError):  # it is raised again below
            server = server_of(tenant_id)
    started, output = time.monotonic(), io.StringIO()
    command = MigrateSchema(stdout=output, stderr=output, no_color=True)
    with context.server_scope(server or MAIN):
        try:
            with schema_lock(schema_name, wait_seconds=wait_seconds):
                result = _migrate(schema_name, command, {**(options or {})})
        except SchemaBusy as error:
            result = {"error": str(error), "busy": True}
        except Exception as error:  # it must not stop the next tenant
            result = _failure(command, error)
            with suppress(DatabaseError):  # Postgres may be down
                Tenant.objects.filter(schema_name=schema_name).update(
                    provisioning_error=result["error"],
                    provisioning_failed_at=Now(),
                    migration_asked_at=None,
                )
        finally:
            context.tenant_connection().set_schema_to_public()
    seconds = time.monotonic() - started
    return MigrationResult(
        schema_name, seconds, command.applied, details=output.getvalue(), **result
    )


def _migrate(schema_name: str, command: MigrateSchema, options: dict[str, Any]) -> dict[str, Any]:
    connection = context.tenant_connection()
    connection.set_schema_to_public()
    command.lock_timeout = options.pop("lock_timeout", LOCK_TIMEOUT)
    tenant_id = naming.tenant_id_of(schema_name)
    is_read_only = options.get("plan") or options.get("check_unapplied")
    if tenant_id is None or is_read_only:
        unapplied = _apply(schema_name, command, options)
        if connection.alias != MAIN and not is_read_only:
            context.execute(_REVOKE_PUBLIC_WRITES)
        return {"unapplied": unapplied}
    tenant = Tenant.objects.filter(id=tenant_id).first()
    if tenant is None:
        raise KonstructError("the tenant was deleted")
    if tenant.moving_to or tenant.server != connection.alias:
        raise KonstructError(
            f"the tenant is being moved, or was: wait for move_tenant {tenant.slug}, or run it"
            " again; then run migrate again"
        )
    command.applied, protected = 0, list[str]()
    is_new = tenant.state == Tenant.State.PROVISIONING
    if is_new and options.get("app_label"):
        raise KonstructError("it is not provisioned yet, and gets all migrations or none")
    if is_new:
        _create_schema(tenant, command)
    elif not schema_exists(schema_name):
        raise KonstructError(f"the schema {schema_name} does not exist; restore it from a backup")
    if command.applied < len(known_migrations()):
        _apply(schema_name, command, options)
        protected = [] if options.get("app_label") else operations.enforce_rls(connection)
    reached = _reached_migrations(tenant)
    connection.set_schema_to_public()
    state = current_state() if reached == known_migrations() else digest_of(sorted(reached))
    SchemaState.objects.get_or_create(name=state, defaults={"migrations": sorted(reached)})
    Tenant.objects.filter(id=tenant_id).update(
        migrated_to=state,
        migrated_at=Now(),
        provisioning_error="",
        provisioning_failed_at=None,
        migration_asked_at=None,
        state=Tenant.State.ACTIVE if is_new else F("state"),
    )
    return {"protected": tuple(protected)}


def _apply(schema_name: str, command: MigrateSchema, options: dict[str, Any]) -> bool:
    context.tenant_connection().set_schema(schema_name)
    return command.run(**options)


def _create_schema(tenant: Tenant, command: MigrateSchema) -> None:
    """Create the schema of a new tenant, unless an interrupted run has created it."""
    connection = context.tenant_connection()
    is_missing = not schema_exists(tenant.schema_name)
    connection.set_schema(tenant.schema_name)
    if is_missing:
        with transaction.atomic(using=connection.alias, durable=True):
            context.execute(f"SET LOCAL lock_timeout = '{NEW_SCHEMA_LOCK_TIMEOUT}'")
            context.execute(script_for(tenant.schema_name, tenant.id))
        command.applied = len(_reached_migrations(tenant))


def _reached_migrations(tenant: Tenant) -> frozenset[str]:
    """Return the migrations of this code that the tenant's schema has."""
    applied = f"SELECT app || '.' || name FROM {tenant.schema_name}.django_migrations"  # noqa: S608
    return known_migrations().intersection(context.fetch_column(applied))


def _failure(command: MigrateSchema, error: Exception) -> dict[str, Any]:
    """Return the error."""
    context.tenant_connection().set_schema_to_public()
    if isinstance(error.__cause__, errors.LockNotAvailable):
        text = "its tables are locked by another session (pg_locks); wait for its end, or end it,"
        return {"error": f"{text} and migrate again", "cancelled": True}
    where = f"{command.current}: " if command.current else ""
    command.stdout.write("".join(traceback.format_exception(error)))
    return {
        "error": f"{where}{outages.outage_reason(error)}",
        "cancelled": isinstance(error.__cause__, CANCELLED),
    }


def migrate_schemas(
    schema_names: Sequence[str], options: Mapping[str, Any], *, parallel: int, canary: int = 0
) -> Iterator[MigrationResult]:
    """Migrate schemas. Yield each result when it is there.

    Args:
        schema_names: the schemas.
        options: options of Django's migrate, for each schema.
        parallel: the maximum number of processes.
        canary: number of schemas to migrate first. If one of them fails, the others are not begun.
    """
    migrate = partial(migrate_schema, options=options)
    for group in (schema_names[:canary], schema_names[canary:]):
        has_failed = False
        for result in _migrate_with_retries(migrate, group, parallel):
            has_failed |= bool(result.error)
            yield result
        if has_failed:
            return


Migrate = partial[MigrationResult]


def _migrate_with_retries(
    migrate: Migrate, schema_names: Sequence[str], parallel: int
) -> Iterator[MigrationResult]:
    cancelled: list[MigrationResult] = []
    for pause in (0, *RETRY_PAUSES_SECONDS):
        time.sleep(pause)
        cancelled = []
        if parallel < 2 or len(schema_names) < MIN_POOLED_SCHEMAS:
            results: Iterable[MigrationResult] = map(migrate, schema_names)
        else:
            results = _migrate_in_pool(migrate, schema_names, parallel)
        for result in results:
            if result.cancelled:
                cancelled.append(result)
            else:
                yield result
        if not cancelled:
            return
        schema_names = [result.schema_name for result in cancelled]
    yield from cancelled


def _migrate_in_pool(
    migrate: Migrate, schema_names: Sequence[str], processes: int
) -> Iterator[MigrationResult]:
    killed = []
    # fork: the children have the apps and the migrations loaded.
    with ProcessPoolExecutor(
        processes, mp_context=get_context("fork"), initializer=begin_child
    ) as pool:
        futures = {pool.submit(migrate, name): name for name in schema_names}
        try:
            for future in as_completed(futures):
                try:
                    yield future.result()
                except BrokenProcessPool:
                    killed.append(futures[future])
        finally:
            pool.shutdown(cancel_futures=True)
    for name in killed:
        if len(schema_names) == 1:
            yield MigrationResult(name, error="the process that migrated it was killed")
        else:  # most were only waiting for the process that was killed
            yield from _migrate_in_pool(migrate, [name], 1)


def default_parallel() -> int:
    """Return the number of cores of this process, at most 8, so that Postgres has enough."""
    return min(len(os.sched_getaffinity(0)), 8)


def begin_child() -> None:
    """Prepare a forked child: close no connection of the parent, and leave Ctrl-C to the parent.

    The parent stops handing out schemas; the running migration is finished. A child ends with a
    parent that is killed, because it would wait for the next schema for ever.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    for connection in connections.all(initialized_only=True):
        connection.connection = None
        connection.savepoint_ids = []
        connection.in_atomic_block = False


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        pipes.wait([parent.sentinel])
        os._exit(1)
