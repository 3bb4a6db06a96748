"""Migrating one schema, or many: in this process or in several."""

import io
import os
import signal
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any
from uuid import UUID

from django.core.management.commands.migrate import Command as DjangoMigrate
from django.db import DatabaseError
from django.db.models import QuerySet
from django.db.models.functions import Now
from django_tenants.utils import get_tenant_database_alias

from tenants.context import tenant_connection
from tenants.exceptions import KonstructError
from tenants.locks import schema_lock
from tenants.migration_state import wanted_migrations
from tenants.models import Tenant
from tenants.naming import tenant_id_of
from tenants.sealing import seal_schema

# A pool of processes costs more than it gains below this many schemas (about 100 ms each).
WORTH_A_POOL = 8


# Options of Django's migrate that ours passes on, and their defaults.
DJANGO_OPTIONS: dict[str, Any] = {
    "app_label": None,
    "migration_name": None,
    "fake": False,
    "fake_initial": False,
    "plan": False,
    "check_unapplied": False,
    "run_syncdb": False,
    "prune": False,
    "verbosity": 0,
}
# Those that are always the same.
_FIXED: dict[str, Any] = {
    "interactive": False,
    "database": get_tenant_database_alias(),
    "skip_checks": True,
    "no_color": True,
    "force_color": False,
    "traceback": False,
}


@dataclass(frozen=True)
class Outcome:
    """What happened to one schema."""

    schema_name: str
    seconds: float = 0.0
    applied: int = 0
    sealed: tuple[str, ...] = ()
    unapplied: bool = False  # with --check: there is something to do
    error: str = ""  # one line; empty: all went well
    details: str = ""  # Django's own output, and the traceback of an error


class MigrateSchema(DjangoMigrate):
    """Django's migrate, which works on the connection's schema, and counts."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.applied = 0
        self.current = ""

    def migration_progress_callback(
        self, action: str, migration: Any = None, fake: bool = False
    ) -> None:
        if action in ("apply_start", "unapply_start"):
            self.current = str(migration)
        elif action in ("apply_success", "unapply_success"):
            self.applied += 1
            self.current = ""
        super().migration_progress_callback(action, migration, fake)


def migrate_schema(schema_name: str, options: Mapping[str, Any] | None = None) -> Outcome:
    """Migrate one schema with the options of Django's migrate; never raise, but report.

    A tenant that is being provisioned gets its schema first and is activated in the end.
    """
    started = time.monotonic()
    output = io.StringIO()
    command = MigrateSchema(stdout=output, stderr=output, no_color=True)
    result: dict[str, Any] = {}
    try:
        with schema_lock(schema_name):
            result = _migrate(schema_name, command, {**DJANGO_OPTIONS, **(options or {}), **_FIXED})
    # Whatever a migration raises, the next tenant is not to blame for.
    except Exception as error:
        where = f"{command.current}: " if command.current else ""
        result["error"] = f"{where}{_one_line(error)}"
        traceback.print_exc(file=output)
    finally:
        tenant_connection().set_schema_to_public()
    if result.get("error"):
        _note_failure(schema_name, result["error"])
    return Outcome(
        schema_name,
        seconds=time.monotonic() - started,
        applied=command.applied,
        details=output.getvalue(),
        **result,
    )


def migrate_schemas(
    schema_names: Sequence[str], options: Mapping[str, Any], *, parallel: int
) -> Iterator[Outcome]:
    """Migrate the schemas, yielding each outcome as it comes; ``parallel`` processes at a time."""
    if parallel < 2 or len(schema_names) < WORTH_A_POOL:
        for schema_name in schema_names:
            yield migrate_schema(schema_name, options)
        return
    # fork: the children have the apps and the migrations loaded.
    with ProcessPoolExecutor(
        parallel, mp_context=get_context("fork"), initializer=_begin_child
    ) as pool:
        futures = {
            pool.submit(migrate_schema, schema_name, options): schema_name
            for schema_name in schema_names
        }
        try:
            for future in as_completed(futures):
                yield _outcome(future, futures[future])
        finally:
            pool.shutdown(cancel_futures=True)


def default_parallel() -> int:
    """As many processes as there are cores for us, and not so many that Postgres runs short."""
    return min(len(os.sched_getaffinity(0)), 8)


def _migrate(schema_name: str, command: MigrateSchema, options: dict[str, Any]) -> dict[str, Any]:
    connection = tenant_connection()
    connection.set_schema_to_public()
    tenant_id = tenant_id_of(schema_name)
    reads_only = options["plan"] or options["check_unapplied"]
    if tenant_id and not reads_only:
        _ensure_schema(connection, schema_name, tenant_id)
    connection.set_schema(schema_name)
    try:
        command.execute(**options)
    except SystemExit:  # Django's answer to --check
        return {"unapplied": True}
    if tenant_id is None or reads_only or options["app_label"]:
        return {}
    sealed = seal_schema(connection)
    connection.set_schema_to_public()
    Tenant.objects.filter(id=tenant_id).update(
        migrated_to=wanted_migrations(),
        migrated_at=Now(),
        provisioning_error="",
        provisioning_failed_at=None,
    )
    _provisioning(tenant_id).update(state=Tenant.State.ACTIVE)
    return {"sealed": tuple(sealed)}


def _note_failure(schema_name: str, error: str) -> None:
    """Let operators see what went wrong, if Postgres is there to note it."""
    tenant_id = tenant_id_of(schema_name)
    if tenant_id is not None:
        with suppress(DatabaseError):
            Tenant.objects.filter(id=tenant_id).update(
                provisioning_error=error, provisioning_failed_at=Now()
            )


def _provisioning(tenant_id: UUID) -> QuerySet[Tenant]:
    return Tenant.objects.filter(id=tenant_id, state=Tenant.State.PROVISIONING)


def _ensure_schema(connection: Any, schema_name: str, tenant_id: UUID) -> None:
    """Create the schema of a tenant that is being provisioned; any other must have one."""
    is_new = _provisioning(tenant_id).exists()
    with connection.cursor() as cursor:
        if is_new:
            cursor.execute(f"CREATE SCHEMA IF NOT EXISTS {connection.ops.quote_name(schema_name)}")
            return
        cursor.execute("SELECT to_regnamespace(%s) IS NULL", [schema_name])
        (missing,) = cursor.fetchone()
    if missing:
        raise KonstructError(f"the schema {schema_name} does not exist; restore it from a backup")


def _outcome(future: Future[Outcome], schema_name: str) -> Outcome:
    try:
        return future.result()
    except BrokenProcessPool:
        return Outcome(
            schema_name, error="the process that migrated it, or should have, was killed"
        )


def _begin_child() -> None:
    """In a forked child: leave the parent's connection alone, and Ctrl-C to the parent.

    The parent stops handing out schemas; one that is being migrated is finished.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection = tenant_connection()
    connection.connection = None
    connection.savepoint_ids = []
    connection.in_atomic_block = False


def _one_line(error: Exception) -> str:
    first_line = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {first_line}" if first_line else type(error).__name__
