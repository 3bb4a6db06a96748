"""Count messages to Postgres: each is one round trip, with any number of statements."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from django.db import connections
from django.test.utils import CaptureQueriesContext

from tenants.postgresql.base import DatabaseWrapper
from tenants.postgresql.exchange import Exchange


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
def messages_to_postgres() -> Iterator[list[list[str]]]:
    """Collect the statements of each message sent in the block.

    The block runs inside the test's transaction. Statements that would go with a COMMIT are sent at
    the end.
    """
    sent: list[list[str]] = []
    begin, query = Exchange.__init__, Exchange.query
    prepared = Exchange.query_prepared

    def begun(self: Exchange, connection: Any) -> None:
        sent.append([])
        begin(self, connection)

    def asked(self: Exchange, sql: bytes, *args: Any) -> int:
        sent[-1].append(sql.decode())
        return query(self, sql, *args)

    def asked_prepared(self: Exchange, name: bytes, *args: Any) -> int:
        sent[-1].append(f"EXECUTE {name.decode()}")
        return prepared(self, name, *args)

    with mock.patch.multiple(Exchange, __init__=begun, query=asked, query_prepared=asked_prepared):
        yield sent
        for wrapper in connections.all(initialized_only=True):
            if isinstance(wrapper, DatabaseWrapper):
                wrapper.send_queued()
