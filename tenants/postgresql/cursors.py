"""Cursors that name the tenant to Postgres before every statement.

Stock django-tenants does so when a cursor is made. A ROLLBACK in raw SQL, sent through a cursor
that is then used again, would fall back to the tenant of before the transaction.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db.backends.postgresql import base
from psycopg.errors import InvalidSqlStatementName
from psycopg.pq import TransactionStatus

# Of a statement that is planned once, whatever its values will be: by indexes, in their order, for
# no statistics tell of the rows that it will meet.
_PLANNED_ONCE = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_sort": "off",
}
_PLAN_ONCE = "".join(f", set_config('{name}', '{to}', true)" for name, to in _PLANNED_ONCE.items())
_PLAN_AS_EVER = ", ".join(f"set_config('{name}', NULL, true)" for name in _PLANNED_ONCE)


def enter_tenant(connection: psycopg.Connection[Any], also: bytes = b"") -> None:
    """Set search_path and app.current_tenant, together, to what the Django connection wants.

    With them, what `also` sets: more columns of that SELECT.

    In an aborted transaction nothing can be set and nothing but a rollback can run. An error here
    is raised and never swallowed: the statement would run for another tenant.
    """
    statement: bytes | None = getattr(connection, "enter_tenant_sql", None)
    if statement and connection.info.transaction_status != TransactionStatus.INERROR:
        psycopg.ClientCursor(connection).execute(statement + also)


class _EntersTenant:
    """Mixin for psycopg's cursor classes."""

    connection: psycopg.Connection[Any]
    also = b""

    def execute(self, *args: Any, **kwargs: Any) -> Any:
        enter_tenant(self.connection, self.also)
        return super().execute(*args, **kwargs)  # type: ignore[misc]  # psycopg's

    def executemany(self, *args: Any, **kwargs: Any) -> Any:
        enter_tenant(self.connection)
        return super().executemany(*args, **kwargs)  # type: ignore[misc]  # psycopg's

    def stream(self, *args: Any, **kwargs: Any) -> Any:
        enter_tenant(self.connection)
        return super().stream(*args, **kwargs)  # type: ignore[misc]  # psycopg's

    @contextmanager
    def copy(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        enter_tenant(self.connection)
        with super().copy(*args, **kwargs) as copy:  # type: ignore[misc]  # psycopg's
            yield copy


class TenantCursor(_EntersTenant, base.Cursor):
    """Django's usual cursor: values are bound on the client's side."""


class TenantServerBindingCursor(_EntersTenant, base.ServerBindingCursor):
    """Django's cursor where OPTIONS ask for server_side_binding."""


class TenantNamedCursor(_EntersTenant, base.ServerSideCursor):
    """Django's server-side cursor, for ``QuerySet.iterator()``."""


class TenantPreparedCursor(TenantServerBindingCursor):
    """For a statement that is sent often and whose right plan is the same for all values.

    Postgres parses and plans it once for each connection and tenant (docs/decisions/0024). The
    tenant, and that this is to be planned once, are said in the same message: one round trip.
    """

    also = _PLAN_ONCE.encode()

    def execute(self, query: str, params: Any = None) -> Any:
        connection = self.connection
        # Plans are of a search_path: the comment makes it another statement for each.
        named = query.encode() + b" -- " + getattr(connection, "enter_tenant_sql", b"")
        is_idle = connection.info.transaction_status == TransactionStatus.IDLE
        is_transaction = not (connection.autocommit and is_idle)
        with _preparing(connection):
            try:
                self._execute(named, params, is_transaction=is_transaction)
            except InvalidSqlStatementName:  # a DISCARD ALL, of which psycopg has not heard
                if is_transaction:
                    raise
                psycopg.ClientCursor(connection).execute("DEALLOCATE ALL")
                self._execute(named, params, is_transaction=False)
        return self

    def _execute(self, query: bytes, params: Any, *, is_transaction: bool) -> None:
        with self.connection.pipeline():
            super().execute(query, params, prepare=True)
            if is_transaction:  # where there is none, the settings end with the pipeline
                psycopg.ClientCursor(self.connection).execute(f"SELECT {_PLAN_AS_EVER}")


@contextmanager
def _preparing(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Let psycopg prepare statements, which it otherwise does not, and hear of it if they go."""
    usual = connection.prepare_threshold
    connection.prepare_threshold = 0
    try:
        yield
    finally:
        connection.prepare_threshold = usual
