"""Database backend: django-tenants', with each transaction in one schema and tenant.

A transaction begins with one message: BEGIN, and SET LOCAL of search_path and tenant. A statement
outside of a transaction gets a transaction around it. The settings end with their transaction, so
that no pooled session keeps a tenant (docs/decisions/0039).
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from secrets import token_hex
from typing import Any, Final, cast
from uuid import UUID

import django.db.backends.postgresql.base  # noqa: F401  (Django 6.1: base before introspection)
import psycopg
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, InterfaceError, ProgrammingError, connections
from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.postgresql.introspection import DatabaseIntrospection
from django.db.backends.postgresql.operations import DatabaseOperations
from django_tenants.postgresql_backend import base
from psycopg import errors, pq, sql

from tenants import exceptions, metrics, naming
from tenants.postgresql import pool

# The largest number of values in one message of the protocol.
MAX_VALUES: Final = 2**16 - 1
POOL_WAIT: Final = metrics.histogram(
    "konstruct_pool_wait_seconds",
    "How long threads waited for a connection of their pool.",
    server=tuple(settings.DATABASES),
)
# The beginnings of statements that the application sends. Others are refused, because Postgres
# allows them to every role: changing the session, ending the transaction, dropping granted objects
# (DROP OWNED), changing the role's settings and password. EXPLAIN reveals the frequency of a value
# from the statistics of any table: only `QuerySet.explain` may begin with it, by a random comment
# that is not sent to Postgres, where other sessions could read it.
_EXPLAIN: Final = f"EXPLAIN /* {token_hex()} */"
_ALLOWED: Final = re.compile(
    r"[\s(]*(SELECT|WITH|INSERT|UPDATE|DELETE|MERGE|VALUES|TABLE|SHOW|SAVEPOINT|RELEASE"
    rf"|ROLLBACK\s+TO|SET\s+CONSTRAINTS|{re.escape(_EXPLAIN)})(?!\w)",
    re.IGNORECASE,
)
_RESET_LOCAL: Final = "ROLLBACK TO SAVEPOINT local_settings; RELEASE SAVEPOINT local_settings"
# The owner's statements that Postgres refuses in a transaction.
_OUTSIDE_TRANSACTIONS: Final = re.compile(
    r"\s*(VACUUM|((CREATE|DROP)(\s+UNIQUE)?\s+INDEX|REINDEX\s+\w+)\s+CONCURRENTLY|REFRESH"
    r"|ALTER\s+SYSTEM|(CREATE|DROP)\s+DATABASE)\b",
    re.IGNORECASE,
)


class TenantOperations(DatabaseOperations):
    """Splits statements with too many values, and marks those of `QuerySet.explain`."""

    explain_prefix = _EXPLAIN

    def bulk_batch_size(self, fields: Sequence[Any], objs: Sequence[Any]) -> int:
        """Return how many objects with these fields one statement may have."""
        return min(len(objs), MAX_VALUES // max(len(fields), 1))


class OwnSchemaIntrospection(DatabaseIntrospection):
    """Lists the tables of a tenant's own schema, without those of public.

    Otherwise a table that a tenant lacks would count as existing if public has it.
    """

    connection: Any

    def get_table_list(self, cursor: Any) -> Any:
        self.connection.include_public_schema = False
        try:
            return super().get_table_list(cursor)
        finally:
            self.connection.include_public_schema = True


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection that is in one schema, and in a tenant only if the schema is the tenant's.

    ``set_tenant`` only stores the tenant. The next statement enters it: with the BEGIN of its
    transaction, or with SET LOCAL in a transaction that is open.
    """

    # On the connection to the main server (tenants/context.py). While pinned_tenant is set, no
    # other tenant can be entered on any server; server is the thread's current server.
    pinned_tenant: UUID | None = None
    server: str = DEFAULT_DB_ALIAS
    # Of transactions on every server, with SET LOCAL: a pooled session keeps nothing of it.
    statement_timeout: str = ""
    ops_class = TenantOperations
    include_public_schema: bool

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # The settings of the open transaction. Empty: a rollback to a savepoint may have undone it.
        self._entered = ""
        self.introspection = OwnSchemaIntrospection(self)
        self.execute_wrappers.append(_run_in_tenant)

    @property
    def tenant_id(self) -> UUID | None:
        """The tenant of the connection's schema."""
        return naming.tenant_id_of(self.schema_name)

    @property
    def is_owners(self) -> bool:
        """Whether the role is the owner's, which migrates, provisions and erases."""
        return bool(self.settings_dict["USER"] == naming.OWNER_ROLE)

    @property
    def is_pooled(self) -> bool:
        """Whether a pooler is between this process and Postgres, so that sessions change.

        A pooler sends its clients a made-up process id. The driver asks without a transaction,
        which a pooler in statement mode refuses.
        """
        self.ensure_connection()
        with self.wrap_database_errors:
            (backend_pid,) = self.connection.execute("SELECT pg_backend_pid()").fetchone()
        return bool(backend_pid != self.connection.info.backend_pid)

    def set_tenant(self, tenant: Any, include_public: bool = True) -> None:
        """Enter the tenant's schema with the next statement."""
        if (tenant_id := naming.tenant_id_of(tenant.schema_name)) is not None:
            self.refuse_unless_free(tenant_id)
        super().set_tenant(tenant, include_public)

    def refuse_unless_free(self, tenant_id: UUID) -> None:
        """Refuse to enter a tenant while the thread, or an open transaction, is another tenant's.

        Raises:
            TenantPinned: it is.
        """
        pinned = cast(DatabaseWrapper, connections[DEFAULT_DB_ALIAS]).pinned_tenant
        if pinned not in (None, tenant_id):
            raise exceptions.TenantPinned(
                f"this code serves tenant {pinned} and cannot enter tenant {tenant_id}"
            )
        if self.tenant_id not in (None, tenant_id) and self.has_transaction:
            raise exceptions.TenantPinned(
                f"a transaction of tenant {self.tenant_id} is open: end it before entering"
                f" {tenant_id}"
            )

    @property
    def is_in_transaction(self) -> bool:
        """Whether statements are in a transaction of Django's until it commits or rolls back."""
        return self.in_atomic_block or not self.get_autocommit()

    @property
    def has_transaction(self) -> bool:
        """Whether `atomic` is open. As with ``durable=True``, Django's test cases do not count."""
        return bool(self.atomic_blocks) and not self.atomic_blocks[-1]._from_testcase

    def _handle_search_path(self, cursor: Any = None) -> None:
        """Nothing: transactions set the search_path, not django-tenants' cursors."""

    def set_local(self, values: Mapping[str, str]) -> None:
        """Change settings of Postgres until the transaction ends.

        Raises:
            ProgrammingError: no transaction is open.
        """
        if not self.is_in_transaction:
            raise ProgrammingError("settings are changed in a transaction only: use atomic()")
        self.enter(*_local(values))

    @contextmanager
    def local_settings(self, values: Mapping[str, str]) -> Iterator[None]:
        """Change settings of Postgres for the block, which only reads, in an open transaction.

        After the block they are again what the transaction had before.
        """
        self.enter("SAVEPOINT local_settings", *_local(values))
        try:
            yield
        finally:
            if not self.connection.closed:
                self._send(_RESET_LOCAL)

    def enter(self, *further: str, is_rollback: bool = False) -> None:
        """Have the open transaction, or one that this begins, be in the schema and tenant.

        Args:
            further: statements of this module to send in the same message.
            is_rollback: the next statement may undo the settings, so the one after it sets them.
        """
        status = self.connection.info.transaction_status
        wanted = _settings_of(tuple(self._get_cursor_search_paths()), self.tenant_id)
        statements = list(further)
        if status == pq.TransactionStatus.IDLE:
            level = self.connection.isolation_level
            begin = f"BEGIN ISOLATION LEVEL {level.name.replace('_', ' ')}" if level else "BEGIN"
            if limit := cast(DatabaseWrapper, connections[DEFAULT_DB_ALIAS]).statement_timeout:
                begin += f"; SET LOCAL statement_timeout = '{limit}'"
            statements = [begin, wanted, *further]
        elif status == pq.TransactionStatus.INTRANS:
            statements = [*([wanted] if wanted != self._entered else ()), *further]
        if statements:
            self._send("; ".join(statements))
        self._entered = "" if is_rollback else wanted

    def _send(self, statements: str) -> None:
        """Send statements of this module in one message, which Postgres allows without values."""
        with self.wrap_database_errors:
            self.connection.execute(statements)

    @contextmanager
    def session(self) -> Iterator[None]:
        """Set the search_path of the session, for statements that run in no transaction."""
        path = sql.SQL(", ").join(map(sql.Identifier, self._get_cursor_search_paths()))
        self._send(f"SET search_path = {path.as_string()}")
        try:
            yield
        finally:
            if not self.connection.closed:
                self._send("RESET search_path")

    def _set_autocommit(self, autocommit: bool) -> None:
        # The driver sends no BEGIN: `enter` does.
        if autocommit:
            super()._set_autocommit(True)

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        pool.start_embedded_services()
        connect = partial(super().get_new_connection, conn_params)
        if self.pool is not None:
            with POOL_WAIT.of(server=self.alias).time():
                return pool.take_from_pool(self.pool, connect)
        if self.alias not in (DEFAULT_DB_ALIAS, NO_DB_ALIAS):
            return pool.connect_unless_down(self.alias, connect)
        return connect()

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
        if name and self.is_in_transaction:
            return self.connection.cursor(name, scrollable=False)
        return super().create_cursor()

    def is_usable(self) -> bool:
        """Return whether Postgres has not closed the connection.

        Django's own method asks Postgres, which is a round trip for each request.
        """
        return (
            self.connection is not None
            and pool.is_alive(self.connection)
            and self.connection.info.transaction_status != pq.TransactionStatus.INERROR
        )

    def close_if_broken(self) -> None:
        """Close a connection that Postgres has closed, so that the next statement opens a new one.

        For threads outside of requests, which may have waited for a server that was down.
        """
        if not self.in_atomic_block and not self.is_usable():
            self.close()

    def copy(self, alias: str | None = None) -> "DatabaseWrapper":
        """Return a wrapper with a connection of its own, outside of the pool."""
        copied = cast(DatabaseWrapper, super().copy(alias))
        copied.settings_dict["OPTIONS"].pop("pool", None)
        return copied

    def release(self) -> None:
        """Return the connection to its pool, if it has one; the next statement takes another.

        Raises:
            ProgrammingError: a transaction is open.
        """
        if self.has_transaction:
            raise ProgrammingError(
                f"a transaction is open on the connection to {self.alias!r}: end it before you "
                "wait for a model, a tool or a channel"
            )
        if self.connection is not None and self.pool is not None:
            self.close()

    def __del__(self) -> None:
        # The thread has ended without closing it. Its slot in the pool must not be lost.
        if getattr(self.connection, "_pool", None) is not None:
            pool.abandon(self.connection)


def _local(values: Mapping[str, str]) -> Iterator[str]:
    for name, value in values.items():
        yield f"SET LOCAL {name} = {sql.quote(value)}"


@lru_cache(maxsize=4096)
def _settings_of(schemas: tuple[str, ...], tenant_id: UUID | None) -> str:
    """Return the statements that set search_path and tenant until the transaction ends."""
    path = sql.SQL(", ").join(map(sql.Identifier, schemas)).as_string()
    return f"SET LOCAL search_path = {path}; SET LOCAL app.current_tenant = '{tenant_id or ''}'"


def _run_in_tenant(
    execute: Callable[..., Any], statement: Any, params: Any, many: bool, context: dict[str, Any]
) -> Any:
    """Run a statement in a transaction of the connection's tenant: one of Django's, or its own."""
    connection: DatabaseWrapper = context["connection"]
    if context["cursor"].cursor.connection is not connection.connection:
        raise InterfaceError("the cursor's connection was given back to its pool, or closed")
    text = statement if isinstance(statement, str) else statement.as_string(connection.connection)
    if not connection.is_owners:
        with connection.wrap_database_errors:
            _refuse_unless_allowed(text, params)
    if text.startswith(_EXPLAIN):
        statement = text.replace(_EXPLAIN, "EXPLAIN", 1)
    if connection.is_in_transaction:
        connection.enter(is_rollback=text.lstrip("( \n").upper().startswith("ROLLBACK"))
        return _execute(connection, execute, statement, params, many, context)
    if connection.is_owners and _OUTSIDE_TRANSACTIONS.match(text):
        with connection.session():
            return execute(statement, params, many, context)
    connection.enter()
    try:
        result = _execute(connection, execute, statement, params, many, context)
    except BaseException:
        with suppress(psycopg.Error):
            connection.connection.rollback()
        raise
    with connection.wrap_database_errors:
        connection.connection.commit()
    return result


def _refuse_unless_allowed(statement: str, params: Any) -> None:
    """Refuse statements that the application does not send.

    Without values the driver uses the simple protocol, in which a message can have several
    statements, so that a semicolon is allowed at its end only.

    Raises:
        InsufficientPrivilege: it is another kind of statement, or several ones.
    """
    if not _ALLOWED.match(statement):
        raise errors.InsufficientPrivilege(
            f"permission denied for {statement.strip()[:20]!r}: no statement of the application"
            " changes the session, its transaction or a role"
        )
    if not params and ";" in statement.rstrip("; \n"):
        raise errors.InsufficientPrivilege(
            "permission denied for several statements in one: send each by itself, and texts with"
            " a semicolon as values"
        )


def _execute(connection: DatabaseWrapper, execute: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return execute(*arguments)
    except ProgrammingError as error:
        if connection.tenant_id is None and isinstance(error.__cause__, errors.UndefinedTable):
            (reason, *_) = str(error).splitlines()
            raise ProgrammingError(
                f"{reason}: no tenant is entered, see tenants.context.tenant_scope"
            ) from error.__cause__
        raise
