"""A cursor for statements that are sent often, and several at once: one round trip to Postgres.

Python works on the first answer while Postgres works on the next. Values, results and the state of
prepared statements are psycopg's; what it lacks is to wait for one answer of a pipeline and not
for all of them.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from typing import Any, Self

import psycopg
from psycopg.abc import PQGen
from psycopg.errors import InvalidSqlStatementName
from psycopg.generators import fetch_many
from psycopg.pq import Format, TransactionStatus

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

_NAMED_VALUE = re.compile(r"%\((\w+)\)s")


class Statements(str):
    """Several statements that are sent together, with the same named values."""

    __slots__ = ("each",)
    each: tuple[str, ...]

    def __new__(cls, *each: str) -> Self:
        self = super().__new__(cls, ";\n".join(each))
        self.each = each
        return self


class TenantPreparedCursor:
    """For statements that are sent often and whose right plan is the same for all values.

    Postgres parses and plans each once for each connection and tenant (docs/decisions/0024). The
    tenant, that this is to be planned once, and all statements are sent before any is answered. As
    in PEP 249, `execute()` returns when the first answer has come, and `nextset()` goes on to the
    next. Answers come in binary: what is large is not written as text and read again.

    Outside of a transaction, statements sent together are one. Each sees what had been committed
    when it began.
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self._answers: list[psycopg.Cursor[Any]] = []
        self._at = 0
        self._pipeline = ExitStack()

    def execute(self, query: str, params: Mapping[str, Any] | None = None) -> Self:
        """Send a statement, or `Statements`; wait for the first answer."""
        self.close()
        connection = self.connection
        is_idle = connection.info.transaction_status == TransactionStatus.IDLE
        is_transaction = not (connection.autocommit and is_idle)
        each = query.each if isinstance(query, Statements) else (query,)
        try:
            self._execute(each, params or {}, is_transaction=is_transaction)
        except InvalidSqlStatementName:  # a DISCARD ALL, of which psycopg has not heard
            if is_transaction:
                raise
            with _preparing(connection):
                psycopg.ClientCursor(connection).execute("DEALLOCATE ALL")
            self._execute(each, params or {}, is_transaction=False)
        return self

    def _execute(
        self, each: Sequence[str], params: Mapping[str, Any], *, is_transaction: bool
    ) -> None:
        self._answers, self._at = [], 0
        with self._pipeline, self._leaving_if_it_fails():
            pipeline = self._pipeline.enter_context(_pipeline_of(self.connection))
            entering: bytes = getattr(self.connection, "enter_tenant_sql", b"")
            # Once for all: nothing can come between them, and if this fails none is executed.
            self._send(entering + _PLAN_ONCE.encode())
            for query in each:
                numbered, names = _numbered(query)
                values = [params[name] for name in names]
                # Plans are of a search_path: the comment makes it another statement for each.
                self._answers.append(self._send(numbered + b" -- " + entering, values))
                # Postgres sends the answer when it has it, not when it has nothing else to do.
                self.connection.pgconn.send_flush_request()
                pipeline.flush()
            if is_transaction:  # where there is none, the settings end with the pipeline
                self._send(f"SELECT {_PLAN_AS_EVER}".encode())
            pipeline.send_end()
            self._wait()
            self._pipeline = self._pipeline.pop_all()

    def _send(self, numbered: bytes, values: Sequence[Any] = ()) -> psycopg.Cursor[Any]:
        answer: psycopg.Cursor[Any] = psycopg.RawCursor(self.connection)
        answer.format = Format.BINARY
        with _preparing(self.connection):
            answer.execute(numbered, values, prepare=True)
        return answer

    def _wait(self) -> None:
        """Wait for the answer that it is the turn of."""
        if self._at == len(self._answers) - 1:
            self._pipeline.close()
            return
        pipeline: Any = self.connection._pipeline
        pipeline.fetch(self._answers[self._at])

    @contextmanager
    def _leaving_if_it_fails(self) -> Iterator[None]:
        """Leave the pipeline: what came after the failure was not executed."""
        try:
            yield
        except psycopg.Error:
            with suppress(psycopg.Error):
                self._pipeline.close()
            raise

    def nextset(self) -> bool | None:
        """Go on to the answer of the next statement; None if there is none."""
        if self._at + 1 >= len(self._answers):
            return None
        self._at += 1
        with self._leaving_if_it_fails():
            self._wait()
        return True

    def fetchone(self) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None = self._answers[self._at].fetchone()
        return row

    def fetchall(self) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._answers[self._at].fetchall()
        return rows

    def fetch_where(self, column: int, sent: Collection[bytes]) -> list[tuple[Any, ...]]:
        """The rows in which the column is, as Postgres sends it, one of these.

        No other row is converted.
        """
        answer = self._answers[self._at]
        result: Any = answer.pgresult
        found: list[tuple[Any, ...]] = []
        for row in range(result.ntuples):
            if result.get_value(row, column) in sent:
                answer.scroll(row, mode="absolute")
                found += answer.fetchmany(1)
        return found

    def close(self) -> None:
        """Wait for what was sent; its answers can still be read."""
        self._pipeline.close()


@lru_cache
def _numbered(query: str) -> tuple[bytes, tuple[str, ...]]:
    """The statement with $1, $2, … for its named values, and their names in that order.

    psycopg does this too, and anew each time for a statement of more than 4 kB.
    """
    names = tuple(dict.fromkeys(_NAMED_VALUE.findall(query)))
    numbered = _NAMED_VALUE.sub(lambda value: f"${names.index(value[1]) + 1}", query)
    return numbered.replace("%%", "%").encode(), names


class _Pipeline(psycopg.Pipeline):
    """psycopg's pipeline, of which one answer can be awaited, and whose end is sent in advance.

    Statements wait in libpq's buffer until it is flushed, or an answer is waited for.
    """

    _is_ended = False

    def flush(self) -> None:
        """Send what waits to be sent."""
        while self.pgconn.flush():
            # More than the socket takes: Postgres may first have to get rid of answers.
            self._wait(super()._communicate_gen())

    def send_end(self) -> None:
        """Send the end of the pipeline before its answers have come: leaving is no round trip."""
        self._enqueue_sync()
        self._wait(self._communicate_gen())
        self.flush()
        self._is_ended = True

    def _communicate_gen(self) -> PQGen[None]:
        self._is_ended = False  # whatever is sent needs an end behind it
        while self.command_queue:
            self.command_queue.popleft()()
        yield from ()

    def fetch(self, answer: psycopg.Cursor[Any]) -> None:
        """Wait for this answer, and for those before it."""
        self._wait(self._fetch_until(answer))

    def _fetch_until(self, answer: psycopg.Cursor[Any]) -> PQGen[None]:
        while not answer.pgresult:
            results = yield from fetch_many(self.pgconn)
            self._process_results(self.result_queue.popleft(), results)

    def _exit_gen(self) -> PQGen[None]:
        if self._is_ended:
            yield from self._fetch_gen(flush=False)
        else:
            yield from super()._exit_gen()

    def _wait(self, generator: PQGen[None]) -> None:
        with self._lock:
            self._conn.wait(generator)


@contextmanager
def _pipeline_of(connection: psycopg.Connection[Any]) -> Iterator[_Pipeline]:
    """As `connection.pipeline()`: the same one for another cursor, before which it is ended."""
    pipeline = connection._pipeline or _Pipeline(connection)
    if not isinstance(pipeline, _Pipeline):
        raise psycopg.NotSupportedError("a prepared cursor has no place in a connection.pipeline()")
    connection._pipeline = pipeline
    try:
        with pipeline:
            yield pipeline
    finally:
        if pipeline.level == 0:
            connection._pipeline = None


@contextmanager
def _preparing(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Let psycopg prepare statements, which it otherwise does not, and hear of it if they go."""
    usual = connection.prepare_threshold
    connection.prepare_threshold = 0
    try:
        yield
    finally:
        connection.prepare_threshold = usual
