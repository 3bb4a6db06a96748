"""A move, step by step. Killed after any statement, it goes on or goes back: see `settle`.

1. A schema is made on the other server and filled from a snapshot, all in one transaction there.
   The tenant is served meanwhile.
2. The tenant is held: the list says where it is moved to. What has begun may end.
3. Its tables are locked against everybody, what has changed since is copied, and both sides are
   compared row by row. Where they differ, nothing is changed, and it is served where it was.
4. The other server's transaction is committed.
5. The schema that is left gets another name, so that whoever still believes the tenant there meets
   an error rather than tables that nobody reads any more.
6. One statement on the list lets the tenant be served where it is now.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from django.conf import settings
from django.db import DatabaseError, transaction  # noqa: TID251 (several servers are meant)
from psycopg import errors

from tenants.audit.operator_log import record_command, state_of_tenant
from tenants.context import public_scope, server_scope, tenant_connection, tenant_scope
from tenants.exceptions import InvalidTenant, KonstructError, SchemaBusy, SchemaOutdated
from tenants.locks import refuse_a_pooled_owner, schema_lock
from tenants.models import OutboxEntry, Tenant
from tenants.moving.copying import (
    changed_since,
    copy_rows,
    copy_sequences,
    count_of,
    differing_keys,
    lines_of,
    replace_rows,
    snapshot_of,
    sums_of,
)
from tenants.moving.sessions import Session, literal, run, session_on
from tenants.moving.tables import (
    Table,
    alter_each,
    layout_of,
    sequences_of,
    slow_indexes_of,
    tables_of,
)
from tenants.postgresql.exceptions import ServerDown
from tenants.roles import APP_ROLE
from tenants.schemas.old_copies import drop_old_copies, name_of_copy
from tenants.schemas.recording import Recording, recording
from tenants.schemas.replaying import Replay
from tenants.servers import MAIN, forget_servers, servers

logger = logging.getLogger(__name__)

# For another process that migrates or moves the tenant.
WAIT_SECONDS: Final = 10.0
# Requests that have begun are over by then; what a worker has begun may take --patience.
SETTLE_SECONDS: Final = 0.25
ASK_EVERY_SECONDS: Final = 0.1
# For locks on all tables, while nothing new begins.
LOCK_SECONDS: Final = 10

UNCHANGED: Final = "Nothing was changed"

_OUTBOX: Final = "public.tenants_outboxentry"
_TAKE_OUTBOX: Final = f"""
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


@dataclass(frozen=True)
class Reckoning:
    """What is to be copied."""

    tables: int
    rows: int
    bytes: int


class Watch:
    """Told how a move goes on; does nothing by itself."""

    def copying(self, rows: int, of: int) -> None:
        """So many rows have been copied."""

    def building(self, indexes: int) -> None:
        """The rows are there; these indexes are built."""

    def holding(self, seconds: float) -> None:
        """The tenant is held from now on, for about so many seconds."""


@dataclass(frozen=True)
class Moved:
    """A move that is done."""

    rows: int
    changed_meanwhile: int
    """Rows that were copied, or removed, in the pause."""
    copied_in: float
    held_for: float
    """Seconds in which the tenant was not served."""


def reckon(tenant: Tenant, to: str) -> Reckoning:
    """Look whether the tenant can be moved, and how much that is. Changes nothing.

    Raises:
        InvalidTenant: it cannot be moved there.
        ServerDown: one of the two servers is.
        SchemaOutdated: it, or the other server, lacks migrations.
    """
    _refuse(tenant, to)
    with session_on(tenant.server) as source, source.transaction():
        tables = _entered(source, tenant)
        (size,) = run(
            source,
            "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
            " WHERE relnamespace = %s::regnamespace AND relkind IN ('r', 'p')",
            tenant.schema_name,
        )
        rows = sum(count_of(source, table) for table in tables)
        return Reckoning(len(tables), rows, size[0])


def move_tenant(
    tenant: Tenant, to: str, *, patience: float = 10.0, watch: Watch | None = None
) -> Moved | None:
    """Move a tenant to another server; None if it is there, for a move that was cut off went on.

    A process with the owner's role does this.

    Args:
        patience: seconds for which work that a worker has begun may go on while the tenant is held.
            What takes longer is cut off, as if its worker were killed, and done again.

    Raises:
        InvalidTenant: it cannot be moved there.
        ServerDown: one of the two servers is.
        SchemaOutdated: it, or the other server, lacks migrations.
        SchemaBusy: another process migrates, deletes or moves it.
        CopyDiffers: the copy is not what it should be.
    """
    with _alone_with(tenant, to):
        if tenant.moving_to:
            settle(tenant)
            if tenant.server == to:
                return None
        _refuse(tenant, to)
        drop_old_copies()
        _refuse_standing(tenant, to)
        move = _Move(tenant, to, patience, watch or Watch())
        try:
            move.copy()
            _switch(tenant)
        except BaseException:
            # If this fails too, the owner's worker or the next move does it.
            with suppress(DatabaseError, KonstructError):
                settle(tenant)
            raise
        held_for = time.monotonic() - move.held_at
        _wake(tenant)
        return Moved(move.rows, move.changed, move.copied_in, held_for)


def settle(tenant: Tenant) -> None:
    """Let a move that was cut off go back, or go on where the tenant has left its server already.

    The caller holds the locks of its schema.
    """
    with public_scope():
        tenant.refresh_from_db()
        if not tenant.moving_to:
            return
        if _stands(tenant, tenant.server):
            _drop_copy_begun(tenant)
            Tenant.objects.filter(id=tenant.id).update(moving_to="")
            tenant.refresh_from_db()
        else:
            _switch(tenant)
        _wake(tenant)


def settle_moves() -> int:
    """Settle the moves that were cut off, and drop old copies that are due; how many those were.

    A process with the owner's role does this. A move that goes on is left alone.
    """
    if len(servers()) == 1:
        return 0
    settled = 0
    with public_scope():
        for tenant in list(Tenant.objects.exclude(moving_to="")):
            try:
                with _alone_with(tenant, wait_seconds=0):
                    settle(tenant)
                    settled += 1
            except SchemaBusy:
                continue  # it goes on
            except KonstructError as error:
                logger.warning("the move of tenant %s, cut off, waits: %s", tenant.slug, error)
    return settled + drop_old_copies()


class _Move:
    """The steps of a move up to the switch."""

    def __init__(self, tenant: Tenant, to: str, patience: float, watch: Watch) -> None:
        self._tenant = tenant
        self._to = to
        self._patience = patience
        self._watch = watch
        self._schema = tenant.schema_name
        self._to_look = 0.0
        self.rows = self.changed = 0
        self.copied_in = self.held_at = 0.0

    def copy(self) -> None:
        """Copy the tenant, hold it, copy the rest, and let its schema be left."""
        made = recording()
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
                self.copied_in = time.monotonic() - began
                self._hold(source, tables)
                self._take_over(source, target, tables, snapshot)
            # From here on there are two, until the next is committed.
            self._leave(source)

    def _new_schema(self, made: Recording) -> Session:
        """Make the schema, with all that keeps rows out; return the session that has done so."""
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
        here, there = (layout_of(each, self._schema) for each in (source, target))
        if here != there:
            raise CopyDiffers(
                f"the schema of tenant {self._tenant.slug!r} is not what migrations make:"
                f" {', '.join(sorted(here ^ there)[:5])} is in one of the two only. {UNCHANGED}"
            )

    def _fill(self, source: Session, target: Session, tables: list[Table]) -> str:
        """Copy what there is while the tenant is served, and compare; the snapshot of it."""
        snapshot = snapshot_of(source)
        _entered(source, self._tenant)
        total, done = sum(count_of(source, table) for table in tables), 0

        def copied(number: int) -> None:
            nonlocal done
            done += number
            if done % 1000 == 0 or done == total:
                self._watch.copying(done, total)

        indexes = slow_indexes_of(target, self._schema)
        for name, _ in indexes:
            run(target, f"DROP INDEX {name}")
        for table in tables:
            copy_rows(source, target, table, copied=copied)
        run(target, "SET CONSTRAINTS ALL IMMEDIATE")
        self._watch.building(len(indexes))
        for _, made_by in indexes:
            run(target, made_by)
        for table in tables:
            run(target, f"ANALYZE {table.name}")
        for table in tables:
            if sums_of(source, table) != sums_of(target, table):
                raise CopyDiffers(f"the copy of {table.name} is not equal to it. {UNCHANGED}")
        began = time.monotonic()
        for table in tables:
            changed_since(source, table, snapshot)
            count_of(target, table)
        self._to_look = time.monotonic() - began
        run(source, "COMMIT")
        return snapshot

    def _hold(self, source: Session, tables: list[Table]) -> None:
        """Let nothing of the tenant begin any more, and wait for what has."""
        self._watch.holding(self._to_look + SETTLE_SECONDS)
        self.held_at = time.monotonic()
        with session_on(MAIN) as the_list:
            run(
                the_list,
                "UPDATE public.tenants_tenant SET moving_to = %s WHERE id = %s",
                self._to,
                self._tenant.id,
            )
        time.sleep(SETTLE_SECONDS)
        working = " UNION ALL ".join(
            f"SELECT FROM {name} WHERE begun_at > now() - interval '1 minute'"
            for name in [_OUTBOX, *(table.name for table in tables if table.has_begun)]
        )
        while time.monotonic() - self.held_at < self._patience:
            with source.transaction():
                _enter(source, self._tenant)
                if run(source, f"SELECT EXISTS ({working})") == [(False,)]:
                    return
            time.sleep(ASK_EVERY_SECONDS)

    def _take_over(
        self, source: Session, target: Session, tables: list[Table], snapshot: str
    ) -> None:
        """Lock the source, bring the copy up to date, compare the two, and close the copy again."""
        _lock(source, self._tenant, tables)
        self._take_outbox(source, target)
        run(
            source,
            f"{alter_each(tables, 'NO FORCE ROW LEVEL SECURITY')}; SET LOCAL row_security = off",
        )
        run(target, "SET LOCAL row_security = off; SET CONSTRAINTS ALL DEFERRED")
        for table in tables:
            self._catch_up(source, target, table, snapshot)
        copy_sequences(source, target, self._schema, sequences_of(source, self._schema))
        run(target, "SET CONSTRAINTS ALL IMMEDIATE")
        closed = "FORCE ROW LEVEL SECURITY"
        run(target, alter_each(tables, f"{closed}, ENABLE TRIGGER USER"))
        run(source, alter_each(tables, closed))

    def _catch_up(self, source: Session, target: Session, table: Table, snapshot: str) -> None:
        """Bring the copy of a table up to date, and see that it is equal."""
        count, keys = changed_since(source, table, snapshot)
        replace_rows(source, target, table, keys)
        if count_of(target, table) != count:  # rows are gone
            keys += differing_keys(source, target, table)
            replace_rows(source, target, table, keys)
        there = count_of(target, table)
        if there != count or lines_of(source, table, keys) != lines_of(target, table, keys):
            raise CopyDiffers(
                f"the copy of {table.name} is not equal to it: {count} rows here, {there} there."
                f" {UNCHANGED}"
            )
        self.rows += count
        self.changed += len(keys)

    def _take_outbox(self, source: Session, target: Session) -> None:
        """Move the tenant's part of the outbox, which is seen by policy in its name alone."""
        for session in (source, target):
            _enter(session, self._tenant)
        ((taken,),) = run(source, _TAKE_OUTBOX, self._tenant.id)
        run(target, _TAKE_OUTBOX, self._tenant.id)
        run(target, _PUT_OUTBOX, taken)
        left, come = (run(each, _SEE_OUTBOX, self._tenant.id)[0][0] for each in (source, target))
        if (left, come) != ("[]", taken):
            raise CopyDiffers(f"the copy of the outbox is not equal to it. {UNCHANGED}")

    def _leave(self, source: Session) -> None:
        """Let the schema that is left serve nobody."""
        left = name_of_copy(self._tenant.id, datetime.now(UTC))
        run(
            source,
            f"ALTER SCHEMA {self._schema} RENAME TO {left};"
            f" REVOKE USAGE ON SCHEMA {left} FROM {APP_ROLE};"
            f" COMMENT ON SCHEMA {left} IS {literal(f'left for {self._to}')}",
        )
        run(source, "COMMIT")


@contextmanager
def _alone_with(tenant: Tenant, *to: str, wait_seconds: float = WAIT_SECONDS) -> Iterator[None]:
    """Keep others from making, migrating, moving or dropping the tenant's schema, where it may be.

    Raises:
        InvalidTenant: there is no such server.
        SchemaBusy: another process is at it.
    """
    for name in to:
        if name not in servers():
            raise InvalidTenant(f"no server is called {name!r}, but {', '.join(servers())} are")
    where = {tenant.server, *to} | ({tenant.moving_to} - {""})
    with ExitStack() as locks:
        for server in sorted(where):
            locks.enter_context(server_scope(server))
            refuse_a_pooled_owner()
            locks.enter_context(schema_lock(tenant.schema_name, wait_seconds=wait_seconds))
        locks.enter_context(public_scope())
        was = tenant.server, tenant.moving_to
        tenant.refresh_from_db()
        if (tenant.server, tenant.moving_to) != was:
            raise InvalidTenant(
                f"tenant {tenant.slug!r} was moved meanwhile, and is on {tenant.server}"
            )
        yield


def _refuse(tenant: Tenant, to: str) -> None:
    if to not in servers():
        raise InvalidTenant(f"no server is called {to!r}, but {', '.join(servers())} are")
    if tenant.server == to:
        raise InvalidTenant(f"tenant {tenant.slug!r} is on {to} already")
    if to in settings.TENANT_DATABASES_CLOSED:
        raise InvalidTenant(f"the server {to!r} takes no new tenants (TENANT_DATABASES_CLOSED)")
    if tenant.migrated_to != recording().state:
        raise SchemaOutdated(
            f"tenant {tenant.slug!r} is not as this version makes tenants: run `manage.py migrate"
            f" --schema {tenant.slug}`, then move it"
        )
    applied = "SELECT app, name FROM public.django_migrations"
    with session_on(MAIN) as main, session_on(to) as there:
        if lacking := set(run(main, applied)) - set(run(there, applied)):
            raise SchemaOutdated(
                f"the public schema of {to} lacks {len(lacking)} migrations: run `manage.py migrate"
                " --shared`, then move the tenant"
            )


def _drop_copy_begun(tenant: Tenant) -> None:
    """Drop what a move to another server has made there, when it goes back."""
    try:
        with session_on(tenant.moving_to) as there, there.transaction():
            run(there, f"DROP SCHEMA IF EXISTS {tenant.schema_name} CASCADE")
            _enter(there, tenant)
            run(there, _TAKE_OUTBOX, tenant.id)
    except ServerDown as error:
        # To be served again is worth more.
        logger.warning(
            "a copy of tenant %s, schema %s, may stand on %s: drop it before the tenant is moved"
            " there (%s)",
            *(tenant.slug, tenant.schema_name, tenant.moving_to, error),
        )


def _refuse_standing(tenant: Tenant, to: str) -> None:
    if _stands(tenant, to):
        raise InvalidTenant(
            f"a schema {tenant.schema_name} stands on {to} already: look what it is, and rename or"
            " drop it, then move the tenant"
        )


def _stands(tenant: Tenant, server: str) -> bool:
    with server_scope(server), tenant_connection().cursor() as cursor:
        cursor.execute("SELECT to_regnamespace(%s) IS NOT NULL", [tenant.schema_name])
        return bool(cursor.fetchone()[0])


def _enter(session: Session, tenant: Tenant) -> None:
    """Let the session's transaction be in the tenant's name, for what a policy keeps apart."""
    run(session, f"SET LOCAL app.current_tenant = {literal(str(tenant.id))}")


def _entered(session: Session, tenant: Tenant) -> list[Table]:
    _enter(session, tenant)
    return tables_of(session, tenant.schema_name)


def _lock(session: Session, tenant: Tenant, tables: list[Table]) -> None:
    """Begin a transaction that keeps everybody else from the tenant's tables."""
    for attempts_left in (2, 1, 0):
        run(session, f"BEGIN; SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
        try:
            run(session, f"LOCK TABLE {', '.join(table.name for table in tables)}")
        except (errors.DeadlockDetected, errors.LockNotAvailable) as error:
            run(session, "ROLLBACK")
            if not attempts_left:
                raise KonstructError(
                    f"tables of tenant {tenant.slug!r} are in use and were not free within"
                    f" {LOCK_SECONDS} s: {error}. {UNCHANGED}; end what uses them, or try again"
                ) from error
        else:
            return


def _switch(tenant: Tenant) -> None:
    """Let the tenant be served where it was moved to, and write that down."""
    with public_scope():
        tenant.refresh_from_db()
        if not _stands(tenant, tenant.moving_to):
            raise KonstructError(
                f"tenant {tenant.slug!r} has no schema {tenant.schema_name}, neither on"
                f" {tenant.server} nor on {tenant.moving_to}: restore it from a backup"
            )
        was = state_of_tenant(tenant)
        with transaction.atomic(using=MAIN):
            Tenant.objects.filter(id=tenant.id).update(server=tenant.moving_to, moving_to="")
            tenant.refresh_from_db()
            record_command("move_tenant", "edit", tenant, before=was, after=state_of_tenant(tenant))
    forget_servers()


def _wake(tenant: Tenant) -> None:
    """Let workers claim what waits: while the tenant was held they have put it aside."""
    with suppress(ServerDown), tenant_scope(tenant.id):
        OutboxEntry.objects.wake()
