"""Copies a tenant's rows to another server, and retires its old schema."""

import time
from datetime import UTC, datetime
from typing import Final

from django.db import transaction  # noqa: TID251 (several servers are meant)
from psycopg import errors

from tenants.context import server_scope, tenant_connection
from tenants.exceptions import KonstructError
from tenants.models import Tenant
from tenants.moving.rows import (
    Session,
    Table,
    alter_each,
    changed_since,
    checksums,
    copy_rows,
    copy_sequences,
    count_of,
    differing_keys,
    layout_of,
    literal,
    replace_rows,
    row_digests,
    run,
    sequences_of,
    session_on,
    slow_indexes_of,
    snapshot_of,
    tables_of,
)
from tenants.roles import APP_ROLE
from tenants.schemas.migrating import LOCK_HOLDERS
from tenants.schemas.old_copies import name_of_copy
from tenants.schemas.recording import Recording, get_recording
from tenants.schemas.replay import Replay
from tenants.servers import MAIN

# Running requests end within this time. Running jobs may take --patience.
SETTLE_SECONDS: Final = 0.25
POLL_SECONDS: Final = 0.1
# The longest wait for locks on all tables, and the time of one attempt: half of Postgres' default
# deadlock_timeout.
LOCK_SECONDS: Final = 30.0
TURN_SECONDS: Final = 0.5

UNCHANGED: Final = "Nothing was changed"
_OUTBOX: Final = "public.tenants_job"
TAKE_JOBS: Final = f"""
WITH taken AS (DELETE FROM {_OUTBOX} WHERE tenant_id = %s RETURNING *)
SELECT coalesce(jsonb_agg(to_jsonb(taken) ORDER BY kind, key), '[]')::text FROM taken
"""  # noqa: S608
_PUT_OUTBOX: Final = f"""
INSERT INTO {_OUTBOX} SELECT * FROM jsonb_populate_recordset(NULL::{_OUTBOX}, %s::jsonb)
"""  # noqa: S608
_SEE_OUTBOX: Final = f"""
SELECT coalesce(jsonb_agg(to_jsonb(entry) ORDER BY kind, key), '[]')::text
FROM {_OUTBOX} AS entry WHERE tenant_id = %s
"""  # noqa: S608


class CopyDiffers(KonstructError):
    """Source and copy of a tenant are not equal. Nothing was changed."""


class MoveProgress:
    """Receives the progress of a move. A subclass shows it."""

    def on_copy(self, rows: int, of: int) -> None:
        """Called with the number of copied rows, and of all rows."""

    def on_index_build(self, indexes: int) -> None:
        """Called with the number of indexes to build, after the rows are copied."""

    def on_hold(self, seconds: float) -> None:
        """Called when the tenant is held, with the estimated duration."""


class Transfer:
    """The steps of a move before the switch."""

    def __init__(self, tenant: Tenant, to: str, patience: float, watch: MoveProgress) -> None:
        self._tenant = tenant
        self._to = to
        self._patience = patience
        self._watch = watch
        self._schema = tenant.schema_name
        self._compare_seconds = 0.0
        self.rows = self.changed = 0
        self.copy_seconds = self.held_at = 0.0

    def copy(self) -> None:
        """Copy the tenant, hold it, copy the rows that changed, and retire its old schema."""
        made = get_recording()
        began = time.monotonic()
        with session_on(self._tenant.server) as source:
            with (
                server_scope(self._to),
                transaction.atomic(using=self._to, durable=True),
            ):
                target = self._new_schema(made)
                tables = tables_of(target, self._schema)
                self._refuse_other_layout(source, target)
                snapshot = self._fill(source, target, tables)
                self.copy_seconds = time.monotonic() - began
                self._hold(source, tables)
                self._finish_copy(source, target, tables, snapshot)
            # Both servers have the tenant until `_leave` is committed.
            self._retire_schema(source)

    def _new_schema(self, made: Recording) -> Session:
        """Create the schema without policies, triggers and rows, and return its session."""
        connection = tenant_connection()
        connection.set_schema(self._schema)
        replay = Replay(
            made,
            self._schema,
            self._tenant.id,
            begun=lambda migration: None,
            done=lambda number: None,
        )
        replay.fill()
        connection.finish_exchange()
        target: Session = connection.connection
        tables = tables_of(target, self._schema)
        names = ", ".join(table.name for table in tables)
        run(
            target,
            f"SET CONSTRAINTS ALL IMMEDIATE; TRUNCATE {names};"
            f" {alter_each(tables, 'NO FORCE ROW LEVEL SECURITY, DISABLE TRIGGER USER')};"
            " SET CONSTRAINTS ALL DEFERRED",
        )
        return target

    def _refuse_other_layout(self, source: Session, target: Session) -> None:
        difference = layout_of(source, self._schema) ^ layout_of(target, self._schema)
        if difference:
            raise CopyDiffers(
                f"the schema of tenant {self._tenant.slug!r} differs from its migrations:"
                f" {', '.join(sorted(difference)[:5])} is only in one of the two. {UNCHANGED}"
            )

    def _fill(self, source: Session, target: Session, tables: list[Table]) -> str:
        """Copy and compare the rows of a snapshot while the tenant is served; return it."""
        snapshot = snapshot_of(source)
        tables_in_tenant(source, self._tenant)
        total, done = sum(count_of(source, table) for table in tables), 0

        def copied(number: int) -> None:
            nonlocal done
            done += number
            if done % 1000 == 0 or done == total:
                self._watch.on_copy(done, total)

        indexes = slow_indexes_of(target, self._schema)
        for name, _ in indexes:
            run(target, f"DROP INDEX {name}")
        for table in tables:
            copy_rows(source, target, table, copied=copied)
        run(target, "SET CONSTRAINTS ALL IMMEDIATE")
        self._watch.on_index_build(len(indexes))
        for _, made_by in indexes:
            run(target, made_by)
        for table in tables:
            run(target, f"ANALYZE {table.name}")
        for table in tables:
            if checksums(source, table) != checksums(target, table):
                raise CopyDiffers(f"the copy of {table.name} differs from the source. {UNCHANGED}")
        began = time.monotonic()
        for table in tables:
            changed_since(source, table, snapshot)
            count_of(target, table)
        self._compare_seconds = time.monotonic() - began
        run(source, "COMMIT")
        return snapshot

    def _hold(self, source: Session, tables: list[Table]) -> None:
        """Stop serving the tenant, and wait for running requests and jobs."""
        self._watch.on_hold(self._compare_seconds + SETTLE_SECONDS)
        self.held_at = time.monotonic()
        with session_on(MAIN) as main:
            run(
                main,
                "UPDATE public.tenants_tenant SET moving_to = %s WHERE id = %s",
                self._to,
                self._tenant.id,
            )
        time.sleep(SETTLE_SECONDS)
        running = " UNION ALL ".join(
            f"SELECT FROM {name} WHERE begun_at > now() - interval '1 minute'"
            for name in [_OUTBOX, *(table.name for table in tables if table.has_begun_at)]
        )
        while time.monotonic() - self.held_at < self._patience:
            with source.transaction():
                set_tenant(source, self._tenant)
                if run(source, f"SELECT EXISTS ({running})") == [(False,)]:
                    return
            time.sleep(POLL_SECONDS)

    def _finish_copy(
        self, source: Session, target: Session, tables: list[Table], snapshot: str
    ) -> None:
        """Lock the source, update the copy, compare the two, and restore the copy's policies."""
        _lock(source, self._tenant, tables)
        self._move_jobs(source, target)
        run(
            source,
            f"{alter_each(tables, 'NO FORCE ROW LEVEL SECURITY')}; SET LOCAL row_security = off",
        )
        run(target, "SET LOCAL row_security = off; SET CONSTRAINTS ALL DEFERRED")
        for table in tables:
            self._catch_up(source, target, table, snapshot)
        copy_sequences(source, target, self._schema, sequences_of(source, self._schema))
        run(target, "SET CONSTRAINTS ALL IMMEDIATE")
        force = "FORCE ROW LEVEL SECURITY"
        run(target, alter_each(tables, f"{force}, ENABLE TRIGGER USER"))
        run(source, alter_each(tables, force))

    def _catch_up(self, source: Session, target: Session, table: Table, snapshot: str) -> None:
        """Update the copy of a table, and check that it is equal."""
        count, keys = changed_since(source, table, snapshot)
        replace_rows(source, target, table, keys)
        if count_of(target, table) != count:  # rows are gone
            keys += differing_keys(source, target, table)
            replace_rows(source, target, table, keys)
        copied = count_of(target, table)
        if copied != count or row_digests(source, table, keys) != row_digests(target, table, keys):
            raise CopyDiffers(
                f"the copy of {table.name} differs from the source: {count} rows here,"
                f" {copied} there. {UNCHANGED}"
            )
        self.rows += count
        self.changed += len(keys)

    def _move_jobs(self, source: Session, target: Session) -> None:
        """Move the tenant's jobs, which only the tenant itself can see."""
        for session in (source, target):
            set_tenant(session, self._tenant)
        ((taken,),) = run(source, TAKE_JOBS, self._tenant.id)
        run(target, TAKE_JOBS, self._tenant.id)
        run(target, _PUT_OUTBOX, taken)
        ((remaining,),) = run(source, _SEE_OUTBOX, self._tenant.id)
        ((copied,),) = run(target, _SEE_OUTBOX, self._tenant.id)
        if (remaining, copied) != ("[]", taken):
            raise CopyDiffers(f"the copy of the outbox differs from the source. {UNCHANGED}")

    def _retire_schema(self, source: Session) -> None:
        """Rename the old schema, and revoke the application's access to it."""
        retired = name_of_copy(self._tenant.id, datetime.now(UTC))
        run(
            source,
            f"ALTER SCHEMA {self._schema} RENAME TO {retired};"
            f" REVOKE USAGE ON SCHEMA {retired} FROM {APP_ROLE};"
            f" COMMENT ON SCHEMA {retired} IS {literal(f'left for {self._to}')}",
        )
        run(source, "COMMIT")


def set_tenant(session: Session, tenant: Tenant) -> None:
    """Set the tenant of the session's transaction, for tables with a policy."""
    run(session, f"SET LOCAL app.current_tenant = {literal(str(tenant.id))}")


def tables_in_tenant(session: Session, tenant: Tenant) -> list[Table]:
    set_tenant(session, tenant)
    return tables_of(session, tenant.schema_name)


def _lock(session: Session, tenant: Tenant, tables: list[Table]) -> None:
    """Begin a transaction that locks all tables of the tenant.

    An attempt ends before Postgres looks for a deadlock, which would cancel another transaction.
    """
    give_up_at = time.monotonic() + LOCK_SECONDS
    # Ends: after LOCK_SECONDS.
    while True:
        run(session, f"BEGIN; SET LOCAL statement_timeout = '{TURN_SECONDS}s'")
        try:
            run(session, f"LOCK TABLE {', '.join(table.name for table in tables)}")
        except (errors.QueryCanceled, errors.DeadlockDetected) as error:
            run(session, "ROLLBACK")
            if time.monotonic() >= give_up_at:
                holders = ", ".join(
                    str(pid) for (pid,) in run(session, LOCK_HOLDERS, tenant.schema_name)
                )
                raise KonstructError(
                    f"tables of tenant {tenant.slug!r} are in use and were not free within"
                    f" {LOCK_SECONDS} s: by Postgres backend {holders or '(disconnected)'} on"
                    f" {tenant.server}. {UNCHANGED}; wait for its end, or end it, and try again"
                ) from error
            time.sleep(POLL_SECONDS)
        else:
            run(session, "SET LOCAL statement_timeout TO DEFAULT")
            return
