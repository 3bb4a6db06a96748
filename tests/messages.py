"""Count statements and messages to Postgres."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import psycopg
from django.db import connections
from django.test.utils import CaptureQueriesContext

TRANSACTIONS = ("BEGIN", "SET LOCAL", "SAVEPOINT", "RELEASE", "ROLLBACK")


@contextmanager
def statements() -> Iterator[list[str]]:
    """Collect the statements sent in the block, on all servers. The list is complete afterwards."""
    sent: list[str] = []
    with ExitStack() as captures:
        of_each = [
            captures.enter_context(CaptureQueriesContext(connections[alias]))
            for alias in connections
        ]
        yield sent
    sent += (query["sql"] for captured in of_each for query in captured)


@contextmanager
def messages_to_postgres() -> Iterator[list[str]]:
    """Collect the statements that this thread sends in the block, each of which is a message.

    Without those that begin and end transactions and savepoints, or enter a tenant: inside the
    test's transaction they are others than outside.
    """
    sent: list[str] = []
    execute, thread = psycopg.Cursor.execute, threading.get_ident()

    def executed(self: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
        text = query if isinstance(query, str) else query.as_string(self)
        is_own = threading.get_ident() == thread
        if is_own and not text.startswith(TRANSACTIONS):
            sent.append(text)
        return execute(self, query, *args, **kwargs)

    with mock.patch.object(psycopg.Cursor, "execute", executed):
        yield sent
