"""Cursors that send every statement together with its tenant.

SET LOCAL search_path and SET LOCAL app.current_tenant precede the statement in the same round trip
and the same transaction. Afterwards the session has no settings of the tenant.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

import psycopg
from django.db.backends.postgresql import base
from psycopg import sql
from psycopg.abc import Transformer
from psycopg.adapt import AdaptersMap, PyFormat
from psycopg.adapt import Transformer as TransformerClass
from psycopg.errors import ActiveSqlTransaction
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult

from tenants.postgresql.statements import number_placeholders, ordered_values
from tenants.postgresql.tenant_settings import Wrapper, begin_exchange


class Column(NamedTuple):
    """A column of a result, as PEP 249 describes it."""

    name: str
    type_code: int
    display_size: int | None
    internal_size: int | None
    precision: int | None
    scale: int | None
    null_ok: bool | None


class TenantCursor(base.CursorMixin):
    """Django's usual cursor. Values are bound by Postgres, one statement in a message."""

    itersize = arraysize = 100

    def __init__(self, wrapper: Wrapper) -> None:
        self._wrapper = wrapper
        self.connection: psycopg.Connection[Any] = wrapper.connection
        self.adapters: AdaptersMap = self.connection.adapters
        self.closed = False
        self._reset()

    def _reset(self) -> None:
        self._result: PGresult | None = None
        self._transformer: Transformer | None = None
        self._results: list[tuple[PGresult, Transformer]] = []
        self._position = 0
        self.rowcount = -1

    def execute(self, query: str | sql.Composable, params: Any = None) -> Self:
        """Send a statement and wait for its result."""
        self._reset()
        self._set_result(*self._run(query, params))
        return self

    def executemany(
        self, query: str | sql.Composable, params_seq: Any, *, returning: bool = False
    ) -> None:
        """Send a statement once for each of the values; with ``returning``, keep all results."""
        self._reset()
        done = [self._run(query, params) for params in params_seq]
        counted = sum(result.command_tuples or 0 for result, _ in done)
        if returning and done:
            self._results = done
            self._set_result(*done[0])
        else:
            self.rowcount = counted

    def nextset(self) -> bool | None:
        """Go to the next result of `executemany`; None if there is none."""
        if not self._results[1:]:
            return None
        self._results = self._results[1:]
        self._set_result(*self._results[0])
        return True

    def _run(self, query: str | sql.Composable, params: Any) -> tuple[PGresult, Transformer]:
        if self.closed or self.connection is not self._wrapper.connection:
            raise psycopg.InterfaceError("the cursor is closed, or its connection was given back")
        text = query.as_string(self.connection) if isinstance(query, sql.Composable) else query
        transformer: Transformer = TransformerClass(self)
        if params is None:
            statement, values = text.encode(), None
            if ";" in text.rstrip("; \n") and self._wrapper.is_owners:
                return self._wrapper.run_script(text), transformer
        else:
            statement, wanted = number_placeholders(text)
            given = ordered_values(wanted, params)
            values = transformer.dump_sequence(given, [PyFormat.AUTO] * len(given))
        self._wrapper.refuse_unless_allowed(text)
        self._wrapper.finish_exchange()
        is_alone = self.connection.info.transaction_status == TransactionStatus.IDLE
        exchange = begin_exchange(self._wrapper)
        try:
            result = exchange.run(statement, values, transformer.types, transformer.formats)
        except ActiveSqlTransaction:  # VACUUM, CREATE INDEX CONCURRENTLY: never in a transaction
            if not (is_alone and self.connection.autocommit and values is None):
                raise
            result = self._wrapper.run_outside_transaction(statement)
        return result, transformer

    def _set_result(self, result: PGresult, transformer: Transformer) -> None:
        self._result, self._transformer, self._position = result, transformer, 0
        if result.status == ExecStatus.TUPLES_OK:
            transformer.set_pgresult(result)
            self.rowcount = result.ntuples
        else:
            count = result.command_tuples
            self.rowcount = -1 if count is None else count

    @property
    def description(self) -> list[Column] | None:
        """The columns of the result; None if it has none."""
        result = self._result
        if result is None or result.status != ExecStatus.TUPLES_OK:
            return None
        return [_column(result, number) for number in range(result.nfields)]

    @property
    def statusmessage(self) -> str | None:
        """The command tag of Postgres, such as SELECT 3."""
        status = self._result.command_status if self._result is not None else None
        return status.decode() if status else None

    def fetchone(self) -> tuple[Any, ...] | None:
        rows = self._rows(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        return self._rows(size or self.arraysize)

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._rows(None)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        while rows := self.fetchmany(self.itersize):
            yield from rows

    def _rows(self, most: int | None) -> list[tuple[Any, ...]]:
        result, transformer = self._result, self._transformer
        if result is None or transformer is None or result.status != ExecStatus.TUPLES_OK:
            raise psycopg.ProgrammingError("the last operation didn't produce records")
        end = result.ntuples if most is None else min(result.ntuples, self._position + most)
        if self._position >= end:
            return []
        rows: list[tuple[Any, ...]] = transformer.load_rows(self._position, end, tuple)
        self._position = end
        return rows

    def close(self) -> None:
        """Discard the result."""
        self.closed = True
        self._reset()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class TenantNamedCursor(TenantCursor):
    """For ``QuerySet.iterator()`` in a transaction: Postgres keeps the unread rows."""

    def __init__(self, wrapper: Wrapper, name: str) -> None:
        super().__init__(wrapper)
        self._name = sql.Identifier(name).as_string(self.connection)
        self._is_open = False

    def execute(self, query: str | sql.Composable, params: Any = None) -> Self:
        """Declare the cursor in Postgres; the rows are read when they are fetched."""
        text = query.as_string(self.connection) if isinstance(query, sql.Composable) else query
        self._wrapper.refuse_unless_allowed(text)
        super().execute(f"DECLARE {self._name} NO SCROLL CURSOR FOR {text}", params)
        self._is_open = True
        return self

    def _rows(self, most: int | None) -> list[tuple[Any, ...]]:
        if not self._is_open:
            raise psycopg.ProgrammingError("the cursor was not executed")
        count = "ALL" if most is None else most
        super().execute(f"FETCH FORWARD {count} FROM {self._name}")
        return super()._rows(None)

    @property
    def description(self) -> list[Column] | None:
        """The columns of the rows that were fetched last."""
        return super().description

    def close(self) -> None:
        """Close the cursor in Postgres too, unless its transaction has ended."""
        status = self.connection.info.transaction_status
        is_ours = self.connection is self._wrapper.connection
        if self._is_open and is_ours and status == TransactionStatus.INTRANS:
            super().execute(f"CLOSE {self._name}")
        self._is_open = False
        super().close()


def _column(result: PGresult, number: int) -> Column:
    type_code, modifier, size = result.ftype(number), result.fmod(number), result.fsize(number)
    length = precision = scale = None
    if modifier >= 4 and type_code in _TEXTS:
        length = modifier - 4
    elif modifier >= 4 and type_code == _NUMERIC:
        precision, scale = (modifier - 4) >> 16, (modifier - 4) & 0x7FF
    name = (result.fname(number) or b"").decode()
    return Column(name, type_code, length, size if size >= 0 else None, precision, scale, None)


_TEXTS: Sequence[int] = [psycopg.postgres.types[name].oid for name in ("bpchar", "varchar")]
_NUMERIC = psycopg.postgres.types["numeric"].oid
