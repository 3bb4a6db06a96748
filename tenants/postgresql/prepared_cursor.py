"""A cursor for frequent statements, several in one round trip to Postgres.

Python processes the first answer while Postgres runs the next statement.
"""

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from itertools import count
from typing import Any, Protocol, Self

import psycopg
from psycopg.abc import Buffer, Transformer
from psycopg.adapt import PyFormat
from psycopg.adapt import Transformer as TransformerClass
from psycopg.errors import InvalidSqlStatementName
from psycopg.pq import Format, TransactionStatus
from psycopg.pq.abc import PGresult

from tenants.postgresql.exchange import Exchange
from tenants.postgresql.statements import number_placeholders, ordered_values
from tenants.postgresql.tenant_settings import Wrapper, begin_exchange

# The prepared statements of a recall take Postgres 0.23 MB, those of a large scope 0.5 MB, for each
# connection and tenant. Above this number, the least recently used are deallocated.
MAX_PREPARED = 128

# Settings for statements with a generic plan: indexes in the order of the statement, since no
# statistics describe the rows that it will read.
_GENERIC_PLAN_SETTINGS = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_sort": "off",
}


class Statements(str):
    """Several statements that are sent together, with the same named values.

    ``settings`` apply to their planning and execution.
    """

    __slots__ = ("settings", "statements")
    statements: tuple[str, ...]
    settings: Mapping[str, str]

    def __new__(cls, *statements: str, settings: Mapping[str, str] | None = None) -> Self:
        self = super().__new__(cls, ";\n".join(statements))
        self.statements = statements
        self.settings = settings or {}
        return self


Key = tuple[bytes, bytes, tuple[int, ...]]


class PreparedStatements:
    """The prepared statements of a connection, by search_path, statement and types of values."""

    def __init__(self) -> None:
        self._names: OrderedDict[Key, bytes] = OrderedDict()
        self._numbers = count(1)
        self.max_statements = MAX_PREPARED

    def name_of(self, key: Key) -> bytes | None:
        """Return the name of a prepared statement and mark it as used; None if there is none."""
        name = self._names.get(key)
        if name is not None:
            self._names.move_to_end(key)
        return name

    def new_name(self) -> bytes:
        """Return a name that no other statement of the connection has."""
        return f"konstruct_{next(self._numbers)}".encode()

    def add(self, key: Key, name: bytes) -> None:
        """Store that Postgres has prepared it."""
        self._names[key] = name

    def forget_excess(self) -> list[bytes]:
        """Forget the least recently used statements above MAX_PREPARED, and return their names."""
        return [
            self._names.popitem(last=False)[1]
            for _ in range(len(self._names) - self.max_statements)
        ]

    def clear(self) -> None:
        """Forget all statements of the connection."""
        self._names.clear()


class PreparingWrapper(Wrapper, Protocol):
    """The further parts of the Django connection that this cursor uses."""

    @property
    def prepared(self) -> PreparedStatements: ...
    def keep_exchange(self, exchange: Exchange) -> None: ...


class TenantPreparedCursor:
    """A cursor for frequent statements whose best plan is the same for all values.

    Postgres parses and plans each once for each connection and tenant (docs/decisions/0017). The
    tenant, the settings for planning and all statements are sent before any is answered. As in PEP
    249, `execute()` returns with the first answer, and `nextset()` goes to the next. Answers are
    binary: large values are not converted to text and back.

    The statements may only read. Outside of a transaction, statements that are sent together are
    one transaction. Each sees the rows that were committed when it began.

    Behind a pooler nothing stays prepared, since the next statement may run in another session.
    """

    def __init__(self, wrapper: PreparingWrapper) -> None:
        self._wrapper = wrapper
        self.connection: psycopg.Connection[Any] = wrapper.connection
        self._prepared = wrapper.prepared
        self._exchange: Exchange | None = None
        self._numbers: list[int] = []
        self._at = 0
        self._row = 0
        self._transformer: Transformer = TransformerClass()
        self._preparing: list[tuple[Key, bytes, int]] = []

    def execute(self, query: str, params: Mapping[str, Any] | None = None) -> Self:
        """Send a statement, or `Statements`; wait for the first answer."""
        statements = query if isinstance(query, Statements) else Statements(query)
        if self.connection is not self._wrapper.connection:
            raise psycopg.InterfaceError("the cursor's connection was given back")
        self._wrapper.finish_exchange()
        is_alone = (
            self.connection.autocommit
            and self.connection.info.transaction_status == TransactionStatus.IDLE
        )
        try:
            self._execute(statements, params or {}, is_alone=is_alone)
        except InvalidSqlStatementName:  # after a DISCARD ALL of the session
            if not is_alone:
                raise
            self._prepared.clear()
            self._execute(statements, params or {}, is_alone=True)
        return self

    def _execute(
        self, statements: Statements, params: Mapping[str, Any], *, is_alone: bool
    ) -> None:
        transformer: Transformer = TransformerClass(self.connection)
        bound = [_bind(statement, params, transformer) for statement in statements.statements]
        prepared = None if self._wrapper.is_pooled else self._prepared
        exchange = self._exchange = begin_exchange(self._wrapper)
        self._wrapper.keep_exchange(exchange)
        self._numbers, self._at, self._preparing = [], -1, []
        if not is_alone:
            exchange.query(b"SAVEPOINT konstruct_prepared")
        settings = {**_GENERIC_PLAN_SETTINGS, **statements.settings}
        for setting, value in settings.items():
            exchange.query(f"SET LOCAL {setting} = '{value}'".encode())
        for sql, values, types, formats in bound:
            if prepared is None:
                number = exchange.query(sql, values, types, formats, Format.BINARY)
            else:
                name = self._prepare(exchange, prepared, sql, types)
                number = exchange.query_prepared(name, values, formats, Format.BINARY)
            self._numbers.append(number)
            # Have Postgres send the answer now, and not with the last one.
            exchange.send()
        if not is_alone:
            # Restore the caller's settings, as the end of the exchange does outside of one.
            exchange.query(b"ROLLBACK TO SAVEPOINT konstruct_prepared")
            exchange.query(b"RELEASE SAVEPOINT konstruct_prepared")
        exchange.end()
        self._show_next()

    def _prepare(
        self, exchange: Exchange, prepared: PreparedStatements, sql: bytes, types: Sequence[int]
    ) -> bytes:
        """Return the statement's name; prepare it in the same exchange if it is not prepared."""
        # A plan belongs to a search_path.
        key = (self._wrapper.tenant_statements[0], sql, tuple(types))
        if name := prepared.name_of(key):
            return name
        name = prepared.new_name()
        self._preparing.append((key, name, exchange.prepare(name, sql, types)))
        return name

    def _show_next(self) -> None:
        exchange = self._exchange
        if exchange is None:
            raise psycopg.ProgrammingError("nothing was executed")
        self._at += 1
        self._row = 0
        is_last = self._at == len(self._numbers) - 1
        try:
            if is_last:
                exchange.finish()
            result = exchange.result(self._numbers[self._at])
        except psycopg.Error:
            if not self.connection.closed:
                exchange.finish()  # statements after the failed one were not executed
            raise
        finally:
            self._note_prepared(exchange)
        self._transformer = TransformerClass(self.connection)
        self._transformer.set_pgresult(result)
        if is_last:
            self._deallocate_excess()

    def _note_prepared(self, exchange: Exchange) -> None:
        for key, name, number in self._preparing:
            if exchange.is_ok(number):
                self._prepared.add(key, name)

    def _deallocate_excess(self) -> None:
        if self.connection is not self._wrapper.connection:
            return
        names = self._prepared.forget_excess()
        if names and self.connection.info.transaction_status != TransactionStatus.INERROR:
            exchange = begin_exchange(self._wrapper)
            for name in names:
                exchange.query(b"DEALLOCATE " + name)
            exchange.finish()

    @property
    def _result(self) -> PGresult:
        if self._exchange is None:
            raise psycopg.ProgrammingError("nothing was executed")
        return self._exchange.result(self._numbers[self._at])

    def nextset(self) -> bool | None:
        """Go to the answer of the next statement; None if there is none."""
        if self._at + 1 >= len(self._numbers):
            return None
        self._show_next()
        return True

    def fetchone(self) -> tuple[Any, ...] | None:
        rows = self._rows(1)
        return rows[0] if rows else None

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._rows(self._result.ntuples)

    def _rows(self, most: int) -> list[tuple[Any, ...]]:
        end = min(self._result.ntuples, self._row + most)
        if self._row >= end:
            return []
        rows: list[tuple[Any, ...]] = self._transformer.load_rows(self._row, end, tuple)
        self._row = end
        return rows

    def fetch_where(self, column: int, sent: Collection[bytes]) -> list[tuple[Any, ...]]:
        """Return the rows whose column, in Postgres' binary form, is among these values.

        Other rows are not converted.
        """
        result, transformer = self._result, self._transformer
        found: list[tuple[Any, ...]] = []
        for row in range(result.ntuples):
            if result.get_value(row, column) in sent:
                found += transformer.load_rows(row, row + 1, tuple)
        return found

    def close(self) -> None:
        """Wait for the sent statements; their answers can still be read."""
        if self._exchange is not None and not self._exchange.is_finished:
            self._exchange.finish()
            self._note_prepared(self._exchange)


def _bind(
    statement: str, params: Mapping[str, Any], transformer: Transformer
) -> tuple[bytes, Sequence[Buffer | None], Sequence[int], Sequence[Format]]:
    """Return the statement to send, and its values with their types and formats."""
    sql, wanted = number_placeholders(statement)
    given = ordered_values(wanted, params)
    values = transformer.dump_sequence(given, [PyFormat.AUTO] * len(given))
    return sql, values, transformer.types or (), transformer.formats or ()
