"""Database backend: django-tenants', with the tenant in the same round trip as each statement."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, cast
from uuid import UUID
from weakref import WeakKeyDictionary

import psycopg
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, DatabaseError, ProgrammingError, connections
from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.postgresql.base import TIMESTAMPTZ_OID
from django.db.backends.postgresql.features import DatabaseFeatures
from django.db.backends.postgresql.psycopg_any import register_tzloader
from django.db.backends.utils import CursorWrapper, debug_transaction
from django_tenants.postgresql_backend import base
from psycopg import sql
from psycopg.abc import Transformer
from psycopg.adapt import AdaptersMap, PyFormat
from psycopg.adapt import Transformer as TransformerClass
from psycopg.errors import InsufficientPrivilege
from psycopg.pq import Format, TransactionStatus
from psycopg.pq.abc import PGresult

from tenants.exceptions import TenantPinned
from tenants.metrics import gauge, histogram
from tenants.naming import tenant_id_of
from tenants.postgresql.cursors import TenantCursor, TenantNamedCursor
from tenants.postgresql.exchange import Exchange
from tenants.postgresql.operations import OwnSchemaIntrospection, TenantOperations
from tenants.postgresql.pool import (
    abandon,
    call_before_connect,
    connect_unless_down,
    is_alive,
    is_idle,
    take_from_pool,
)
from tenants.postgresql.prepared_cursor import PreparedStatements, TenantPreparedCursor
from tenants.postgresql.statements import (
    number_placeholders,
    ordered_values,
    refuse_unknown_statement,
)
from tenants.postgresql.tenant_settings import QueuedStatement, begin_exchange, tenant_statements
from tenants.roles import OWNER_ROLE

POOL_WAIT: Final = histogram(
    "konstruct_pool_wait_seconds",
    "How long threads waited for a connection of their process's pool (DATABASE_POOL_SIZE).",
    server=tuple(settings.DATABASES),
)
POOL_IN_USE: Final = gauge(
    "konstruct_pool_in_use",
    "Connections of the processes' pools in use.",
    server=tuple(settings.DATABASES),
)
POOL_WAITING: Final = gauge(
    "konstruct_pool_waiting",
    "Threads that wait for a connection of their process's pool.",
    server=tuple(settings.DATABASES),
)


class Features(DatabaseFeatures):
    """The features of the cursors."""

    uses_server_side_binding = True


@dataclass(slots=True)
class Session:
    """The state of one connection to Postgres, whichever thread uses it."""

    prepared: PreparedStatements = field(default_factory=PreparedStatements)
    is_pooled: bool | None = None


_sessions: WeakKeyDictionary[psycopg.Connection[Any], Session] = WeakKeyDictionary()


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection that is in one schema, and in a tenant only if the schema is the tenant's.

    ``set_tenant`` only stores the tenant; the cursors (``cursors.py``) send it with every
    statement. A rollback, a reconnect or a pooled connection cannot restore another tenant's
    settings, because they end with each transaction.
    """

    # On the connection to the main server (tenants/context.py). While pinned_tenant is set, no
    # other tenant can be entered on any server; server is the thread's current server.
    pinned_tenant: UUID | None = None
    server: str = DEFAULT_DB_ALIAS
    ops_class = TenantOperations
    features_class = Features
    include_public_schema: bool
    # The statements that set search_path and tenant, in the order in which they are sent.
    tenant_statements: tuple[bytes, ...] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.introspection = OwnSchemaIntrospection(self)
        self.queued: list[QueuedStatement] = []
        self._session = Session()
        self._exchange: Exchange | None = None

    @property
    def is_pooled(self) -> bool:
        """Whether a pooler is between this process and Postgres, so that sessions change.

        A pooler sends its clients a made-up process id.
        """
        self.ensure_connection()
        if self._session.is_pooled is None:
            if self.connection.info.transaction_status == TransactionStatus.INERROR:
                return True  # Postgres cannot be asked
            self.finish_exchange()
            result = Exchange(self.connection).run(b"SELECT pg_backend_pid()")
            backend_pid = str(self.connection.pgconn.backend_pid).encode()
            self._session.is_pooled = result.get_value(0, 0) != backend_pid
        return self._session.is_pooled

    @property
    def prepared(self) -> PreparedStatements:
        """The prepared statements of this thread's connection."""
        return self._session.prepared

    @property
    def tenant_id(self) -> UUID | None:
        """The tenant of the connection's schema."""
        return tenant_id_of(self.schema_name)

    def set_tenant(self, tenant: Any, include_public: bool = True) -> None:
        """Enter the tenant's schema with the next statement; raise `TenantPinned` if pinned."""
        entered = tenant_id_of(tenant.schema_name)
        if entered is not None:
            pinned = cast(DatabaseWrapper, connections[DEFAULT_DB_ALIAS]).pinned_tenant
            if pinned not in (None, entered):
                raise TenantPinned(
                    f"this code serves tenant {pinned} and cannot enter tenant {entered}"
                )
        super().set_tenant(tenant, include_public)
        self._update_tenant_statements()

    @contextmanager
    def own_schema_only(self) -> Iterator[None]:
        """Leave the public schema out of the search_path."""
        include_public = self.include_public_schema
        self.include_public_schema = False
        self._update_tenant_statements()
        try:
            yield
        finally:
            self.include_public_schema = include_public
            self._update_tenant_statements()

    def _update_tenant_statements(self) -> None:
        self.tenant_statements = tenant_statements(
            tuple(self._get_cursor_search_paths()), self.tenant_id
        )

    def _handle_search_path(self, cursor: Any = None) -> None:
        """Nothing: the cursors set the search_path, not django-tenants."""

    @property
    def begin_sql(self) -> bytes:
        """The statement that begins a transaction, by Django's OPTIONS."""
        level = self.connection.isolation_level
        if level is None:
            return b"BEGIN"
        return f"BEGIN ISOLATION LEVEL {level.name.replace('_', ' ')}".encode()

    @property
    def is_owners(self) -> bool:
        """Whether the role is the owner's, which migrates, provisions and erases."""
        return bool(self.settings_dict["USER"] == OWNER_ROLE)

    def refuse_unless_allowed(self, statement: str) -> None:
        """Refuse statements that the application does not use. The owner may send any."""
        if not self.is_owners:
            refuse_unknown_statement(statement)

    def run_outside_transaction(self, statement: bytes) -> PGresult:
        """Run a statement outside of a transaction, as the owner, in a session with the tenant.

        Not through a pooler, which may run the statement in another session.
        """
        if not self.is_owners:
            raise InsufficientPrivilege("only the owner's statements run outside of transactions")
        self.finish_exchange()
        try:
            for setting in self.tenant_statements:
                Exchange(self.connection).run(setting.replace(b"SET LOCAL", b"SET", 1))
            return Exchange(self.connection).run(statement)
        finally:
            if not self.connection.closed:
                Exchange(self.connection).run(b"RESET search_path")
                Exchange(self.connection).run(b"RESET app.current_tenant")

    def set_local(self, settings: Mapping[str, str], *, with_next: bool = False) -> None:
        """Change settings until the transaction ends, in one round trip.

        Args:
            settings: values by name.
            with_next: send them with the next statement. Outside of a transaction they apply to
                that statement only.
        """
        statements = [
            f"SET LOCAL {name} = {sql.quote(value)}".encode() for name, value in settings.items()
        ]
        if with_next:
            self.close_if_health_check_failed()
            self.ensure_connection()  # a new connection has nothing queued
            self.queued += [QueuedStatement(statement) for statement in statements]
            return
        exchange = begin_exchange(self)
        numbers = [exchange.query(statement) for statement in statements]
        exchange.finish()
        exchange.result(numbers[-1])

    def fetch_value(self, statement: str, *values: str, first: str = "") -> bytes | None:
        """Return the first value of a statement; None without rows.

        Args:
            statement: with $1, $2, … for the values.
            values: the values, as text.
            first: a statement to send before it, in the same round trip.
        """
        with self.wrap_database_errors:
            exchange = begin_exchange(self)
            if first:
                exchange.query(first.encode())
            result = exchange.run(statement.encode(), [value.encode() for value in values])
            return result.get_value(0, 0) if result.ntuples else None

    def queue(
        self, statement: str, values: Mapping[str, Any], *, with_next: bool = False
    ) -> QueuedStatement:
        """Send a statement without a result with the next message, or with the COMMIT.

        If the statement fails, that message fails. Outside of a transaction it is sent at once or,
        with ``with_next``, in one transaction with the next message; then the caller checks
        `is_done` at the end, and calls `send_queued` if it is still queued.
        """
        self.refuse_unless_allowed(statement)
        self.close_if_health_check_failed()
        self.ensure_connection()
        transformer: Transformer = TransformerClass(self.connection)
        sql_text, wanted = number_placeholders(statement)
        given = ordered_values(wanted, values)
        sent = transformer.dump_sequence(given, [PyFormat.AUTO] * len(given))
        queued = QueuedStatement(
            sql_text, self.tenant_statements, sent, transformer.types, transformer.formats
        )
        self.queued.append(queued)
        if self.queries_logged:
            self.queries_log.append({"sql": statement, "time": "0"})
        if not with_next and not self.in_atomic_block:
            self.send_queued()
        return queued

    def send_queued(self) -> None:
        """Send queued statements, if there are any, in a message of their own."""
        if self.queued:
            with self.wrap_database_errors:
                begin_exchange(self).run(b"")

    def _savepoint(self, sid: str) -> None:
        self.queued.append(QueuedStatement(self.ops.savepoint_create_sql(sid).encode()))

    def _savepoint_commit(self, sid: str) -> None:
        self.queued.append(QueuedStatement(self.ops.savepoint_commit_sql(sid).encode()))

    def _savepoint_rollback(self, sid: str) -> None:
        """Roll back to the savepoint. Queued statements after it are dropped."""
        begun = self.ops.savepoint_create_sql(sid).encode()
        statements = [queued.statement for queued in self.queued]
        if begun in statements:
            del self.queued[statements.index(begun) + 1 :]
            return
        self.queued.clear()
        super()._savepoint_rollback(sid)

    def run_script(self, script: str) -> PGresult:
        """Run several statements of a migration as one, as the owner and without values."""
        if not self.is_owners:
            raise InsufficientPrivilege("only the owner's migrations send several statements")
        self.finish_exchange()
        if not self.connection.autocommit:
            begin_exchange(self).finish()
            settings = b""
        else:
            settings = b"".join(setting + b";\n" for setting in self.tenant_statements)
        cursor = psycopg.ClientCursor(self.connection)
        cursor.execute(settings + script.encode())
        while cursor.nextset():
            pass
        if cursor.pgresult is None:
            raise psycopg.ProgrammingError("the script holds no statement")
        return cursor.pgresult

    def keep_exchange(self, exchange: Exchange) -> None:
        """Remember an exchange with pending results."""
        self._exchange = exchange

    def finish_exchange(self) -> None:
        """Wait for the results of a pending exchange, before the connection is used otherwise."""
        if self._exchange is not None:
            exchange, self._exchange = self._exchange, None
            exchange.finish()

    def get_connection_params(self) -> dict[str, Any]:
        params: dict[str, Any] = super().get_connection_params()
        # Cursors of the driver itself send no tenant, and so read no rows.
        del params["cursor_factory"]
        return params

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        self._exchange = None
        self.queued.clear()
        connect = partial(super().get_new_connection, conn_params)
        if self.pool is not None:
            waiting = POOL_WAITING.of(server=self.alias).track_inprogress()
            with waiting, POOL_WAIT.of(server=self.alias).time():
                connection = take_from_pool(self.pool, connect)
            self._count_in_use()
        elif self.alias not in (DEFAULT_DB_ALIAS, NO_DB_ALIAS):
            connection = connect_unless_down(self.alias, connect)
        else:
            call_before_connect()
            connection = connect()
        self._session = _sessions.setdefault(connection, Session())
        return connection

    def _configure_timezone(self, connection: Any) -> bool:
        """As Django does, but without a function that any statement could call."""
        wanted = self.timezone_name
        if not wanted or connection.info.parameter_status("TimeZone") == wanted:
            return False
        connection.execute(sql.SQL("SET TimeZone TO {}").format(wanted))
        return True

    def create_cursor(self, name: str | None = None) -> Any:
        # A cursor WITH HOLD belongs to a session. Outside of a transaction all rows are fetched at
        # once.
        in_transaction = not self.connection.autocommit
        cursor = TenantNamedCursor(self, name) if name and in_transaction else TenantCursor(self)
        loader: Any = cursor.adapters.get_loader(TIMESTAMPTZ_OID, Format.TEXT)
        if self.timezone != loader.timezone:
            cursor.adapters = AdaptersMap(cursor.adapters)
            register_tzloader(self.timezone, cursor)
        return cursor

    def prepared_cursor(self) -> CursorWrapper:
        """Return a cursor for statements that are sent often: see `TenantPreparedCursor`."""
        self.close_if_health_check_failed()
        self.ensure_connection()
        wrapped: CursorWrapper = self._prepare_cursor(TenantPreparedCursor(self))
        return wrapped

    def is_usable(self) -> bool:
        """Return whether Postgres has not closed the connection, by the state of its socket.

        Django's own method asks Postgres, which is a round trip for each request.
        """
        if self.connection is None or not is_alive(self.connection):
            return False
        return self.connection.info.transaction_status in (
            TransactionStatus.IDLE,
            TransactionStatus.INTRANS,
        )

    def close_if_broken(self) -> None:
        """Close a connection that Postgres has closed, so that the next statement opens a new one.

        For threads outside of requests, which may have waited for a server that was down.
        """
        if self.connection is None or self.in_atomic_block:
            return
        with suppress(DatabaseError, psycopg.Error):
            self.finish_exchange()
        if not self.is_usable():
            self.close()

    def close_if_unusable_or_obsolete(self) -> None:
        """Between requests and tasks: also close a connection in a transaction of raw SQL.

        The next tenant's writes would not be committed in it.
        """
        if self.connection is not None and not self.in_atomic_block and not self.connection.closed:
            self.finish_exchange()
            if self.connection.info.transaction_status != TransactionStatus.IDLE:
                self.close()
                return
        super().close_if_unusable_or_obsolete()

    def _set_autocommit(self, autocommit: bool) -> None:
        self.finish_exchange()
        # In a transaction that is rolled back, this would be rolled back too.
        self.send_queued()
        super()._set_autocommit(autocommit)

    def _commit(self) -> None:
        self.finish_exchange()
        is_aborted = self.connection.info.transaction_status == TransactionStatus.INERROR
        if is_aborted or not any(queued.tenant_statements for queued in self.queued):
            self.queued.clear()  # they would be rolled back
            super()._commit()
            return
        with debug_transaction(self, "COMMIT"), self.wrap_database_errors:
            begin_exchange(self).run(b"COMMIT")

    def _rollback(self) -> None:
        self.queued.clear()
        self.finish_exchange()
        super()._rollback()

    def _close(self) -> None:
        """Close the connection. One of a pool is returned if it is idle, otherwise discarded."""
        self.queued.clear()
        if self.connection is not None and self.pool is not None:
            with suppress(psycopg.Error):
                self.finish_exchange()
            if not is_idle(self.connection):
                self.connection.close()
        self._exchange = None
        super()._close()
        if self.pool is not None:
            self._count_in_use()

    def _count_in_use(self) -> None:
        stats = self.pool.get_stats()
        in_use = stats["pool_size"] - stats["pool_available"]
        POOL_IN_USE.of(server=self.alias).set(in_use)

    def copy(self, alias: str | None = None) -> "DatabaseWrapper":
        """Return a wrapper with a connection of its own, outside of the pool."""
        copied = cast(DatabaseWrapper, super().copy(alias))
        copied.settings_dict["OPTIONS"].pop("pool", None)
        return copied

    def release(self) -> None:
        """Return the connection to its pool, if it has one; the next statement takes another.

        Raises:
            ProgrammingError: a transaction is open, or statements are queued.
        """
        if self.connection is None or self.pool is None:
            return
        with suppress(psycopg.Error):
            self.finish_exchange()
        is_in_transaction = self.in_atomic_block or self.connection.info.transaction_status in (
            TransactionStatus.INTRANS,
            TransactionStatus.INERROR,
        )
        if is_in_transaction or self.queued:
            held = "statements are queued" if self.queued else "a transaction is open"
            raise ProgrammingError(
                f"{held} on the connection to {self.alias!r}, which cannot be given back to its "
                "pool: end the transaction before you wait for a model or a channel"
            )
        self.close()

    def __del__(self) -> None:
        # The thread has ended without closing it. Its slot in the pool must not be lost.
        if getattr(self.connection, "_pool", None) is not None:
            abandon(self.connection)


# A forked child must neither use nor close its parent's connections.
_inherited: list[Any] = []


def _forget_inherited_pools() -> None:
    pools = DatabaseWrapper._connection_pools
    _inherited.extend(pools.values())
    pools.clear()


os.register_at_fork(after_in_child=_forget_inherited_pools)
