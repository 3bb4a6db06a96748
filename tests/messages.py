"""Counting messages to Postgres: what waits for an answer, whatever it holds."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from tenants.context import tenant_connection
from tenants.postgresql.exchange import Exchange


@contextmanager
def messages_to_postgres() -> Iterator[list[list[str]]]:
    """Collect the statements of each message that is sent inside.

    A test's own transaction is around it. What would go with a COMMIT is sent in the end.
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
        tenant_connection().send_queued()
