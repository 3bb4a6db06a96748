"""Cursors that name the tenant to Postgres before every statement.

Stock django-tenants does so when a cursor is made. A ROLLBACK in raw SQL, sent through a cursor
that is then used again, would fall back to the tenant of before the transaction.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db.backends.postgresql import base
from psycopg.pq import TransactionStatus


def enter_tenant(connection: psycopg.Connection[Any]) -> None:
    """Set search_path and app.current_tenant, together, to what the Django connection wants.

    In an aborted transaction nothing can be set and nothing but a rollback can run. An error here
    is raised and never swallowed: the statement would run for another tenant.
    """
    statement: bytes | None = getattr(connection, "enter_tenant_sql", None)
    if statement and connection.info.transaction_status != TransactionStatus.INERROR:
        psycopg.ClientCursor(connection).execute(statement)


class _EntersTenant:
    """Mixin for psycopg's cursor classes."""

    connection: psycopg.Connection[Any]

    def execute(self, *args: Any, **kwargs: Any) -> Any:
        enter_tenant(self.connection)
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
