"""The owner's sessions beside this thread's connections, for what is in no tenant's name."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import psycopg
from django.db import connections
from psycopg import sql

from tenants.postgresql.base import DatabaseWrapper

Session = psycopg.Connection[Any]


@contextmanager
def session_on(server: str) -> Iterator[Session]:
    """Have a session of this process' role on a server, in autocommit; closed, it is rolled back.

    Errors of the driver that leave the block are Django's.

    Raises:
        ServerDown: the server takes no connections.
    """
    wrapper = cast(DatabaseWrapper, connections[server]).copy()
    try:
        wrapper.ensure_connection()
        with wrapper.wrap_database_errors:
            yield wrapper.connection
    finally:
        wrapper.close()


def run(session: Session, statement: str, *values: object) -> list[tuple[Any, ...]]:
    """Run a statement; the rows that it returns. Without values it may be several statements."""
    cursor = session.execute(statement.encode(), values or None)
    return cursor.fetchall() if cursor.description else []


def quoted(*names: str) -> str:
    """Names as SQL has them, such as "schema"."table"."""
    return sql.Identifier(*names).as_string()


def literal(value: object) -> str:
    """A value as SQL has it, for statements that take no values."""
    return sql.Literal(value).as_string()
