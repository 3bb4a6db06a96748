"""Statements that are sent to Postgres together, in one round trip.

A pipeline of the extended protocol (docs/decisions/0039). Each message has one statement, and its
values apart from it. Outside of a transaction, all statements of an exchange are one transaction,
so that every SET LOCAL ends with the exchange.
"""

import select
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

import psycopg
from psycopg.abc import Buffer
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus, Format
from psycopg.pq.abc import PGresult

CANCEL_SECONDS = 5.0
_FAILURES = (ExecStatus.FATAL_ERROR, ExecStatus.PIPELINE_ABORTED)


class Tracked(Protocol):
    """An object that stores whether its exchange succeeded."""

    is_done: bool


class Exchange:
    """Statements to send, and their results in the same order.

    Until `finish` the connection can do nothing else.
    """

    __slots__ = (
        "_connection",
        "_is_ended",
        "_pgconn",
        "_results",
        "_sent",
        "_tracked",
        "is_finished",
    )

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        if connection.closed:  # perhaps during an exchange
            raise psycopg.OperationalError("the connection is closed")
        if connection.pgconn.pipeline_status:
            raise psycopg.NotSupportedError("a statement has no place in a connection.pipeline()")
        self._connection = connection
        self._pgconn = connection.pgconn
        self._results: list[PGresult] = []
        self._sent = 0
        self._tracked: Sequence[Tracked] = ()
        self._is_ended = self.is_finished = False
        self._pgconn.enter_pipeline_mode()

    def query(
        self,
        sql: bytes,
        values: Sequence[Buffer | None] | None = None,
        types: Sequence[int] | None = None,
        formats: Sequence[Format] | None = None,
        result_format: Format = Format.TEXT,
    ) -> int:
        """Add a statement; return the number of its result."""
        self._pgconn.send_query_params(sql, values, types, formats, result_format)
        return self._next()

    def run(
        self,
        sql: bytes,
        values: Sequence[Buffer | None] | None = None,
        types: Sequence[int] | None = None,
        formats: Sequence[Format] | None = None,
    ) -> PGresult:
        """Finish with this statement and return its result; raise the error of any that failed."""
        number = self.query(sql, values, types, formats)
        self.finish()
        return self.result(number)

    def prepare(self, name: bytes, sql: bytes, types: Sequence[int]) -> int:
        """Add the preparation of a statement; return the number of its result."""
        self._pgconn.send_prepare(name, sql, types)
        return self._next()

    def query_prepared(
        self,
        name: bytes,
        values: Sequence[Buffer | None],
        formats: Sequence[Format],
        result_format: Format = Format.TEXT,
    ) -> int:
        """Add a statement that is prepared; return the number of its result."""
        self._pgconn.send_query_prepared(name, values, formats, result_format)
        return self._next()

    def track(self, tracked: Sequence[Tracked]) -> None:
        """Set `is_done` of these objects at the end, if no statement of the exchange has failed."""
        self._tracked = tracked

    def synchronise(self) -> None:
        """Have Postgres end the added statements, in a transaction that continues."""
        self._pgconn.pipeline_sync()
        self._next()

    def send(self) -> None:
        """Send the added statements, and have Postgres answer them before more are added."""
        self._pgconn.send_flush_request()
        self._wait(self._flush)

    def end(self) -> None:
        """Send the added statements as the last ones: `finish` needs no further round trip."""
        self._end()
        self._wait(self._flush)

    def result(self, number: int) -> PGresult:
        """Wait for a result and those before it; raise the error of the first failed statement."""
        if len(self._results) <= number:
            self._wait(lambda: self._receive(number + 1))
        for result in self._results[: number + 1]:
            if result.status == ExecStatus.FATAL_ERROR:
                raise error_from_result(result, encoding="utf-8")
        return self._results[number]

    def is_ok(self, number: int) -> bool:
        """Return whether the result has come and is no error."""
        return len(self._results) > number and self._results[number].status in (
            ExecStatus.COMMAND_OK,
            ExecStatus.TUPLES_OK,
        )

    def finish(self) -> None:
        """Wait for all remaining results. The connection is free again."""
        if self.is_finished:
            return
        if not self._is_ended:
            self._end()
        self._wait(self._receive_all)
        self._leave()
        if self._tracked and all(result.status not in _FAILURES for result in self._results):
            for tracked in self._tracked:
                tracked.is_done = True

    def _next(self) -> int:
        self._sent += 1
        return self._sent - 1

    def _end(self) -> None:
        self._pgconn.pipeline_sync()
        self._is_ended = True

    def _leave(self) -> None:
        self.is_finished = True
        self._pgconn.exit_pipeline_mode()

    def _flush(self) -> None:
        """Send everything, and read meanwhile: Postgres does not read while its answers wait."""
        while self._pgconn.flush():
            if self._ready(select.POLLIN | select.POLLOUT) & ~select.POLLOUT:
                self._pgconn.consume_input()

    def _receive(self, number: int) -> None:
        """Wait for this number of results."""
        while len(self._results) < number:
            result = self._fetch()
            if result is None:
                continue
            self._results.append(result)
            if result.status in (ExecStatus.COPY_IN, ExecStatus.COPY_OUT):
                # In a pipeline, only the end of the connection ends a COPY.
                self._connection.close()
                self.is_finished = True
                raise psycopg.NotSupportedError("COPY is not supported")
            if result.status == ExecStatus.FATAL_ERROR:
                with suppress(psycopg.DatabaseError):  # the result has the reason
                    self._fetch()
            elif result.status != ExecStatus.PIPELINE_SYNC:
                self._fetch()  # the end of the statement's results

    def _receive_all(self) -> None:
        self._flush()
        self._receive(self._sent)
        while (result := self._fetch()) is None or result.status != ExecStatus.PIPELINE_SYNC:
            pass

    def _fetch(self) -> PGresult | None:
        while self._pgconn.is_busy():
            self._ready(select.POLLIN)
            self._pgconn.consume_input()
        result = self._pgconn.get_result()
        if result is None and self._pgconn.status == ConnStatus.BAD:
            raise psycopg.OperationalError("the connection to Postgres is lost")
        return result

    def _ready(self, events: int) -> int:
        """Wait for the socket; return its state, which may be an error or its end."""
        poll = select.poll()
        poll.register(self._pgconn.socket, events)
        ((_, ready),) = poll.poll()
        return ready

    def _wait(self, work: Callable[[], None]) -> None:
        try:
            work()
        except psycopg.Error:
            # The last statement sent cannot be distinguished from an answered one.
            self._connection.close()
            self.is_finished = True
            raise
        except BaseException:  # of a signal, such as a task's time limit
            self._cancel()
            raise

    def _cancel(self) -> None:
        """Cancel the running statement, and read all answers, so that none is left for the next."""
        try:
            self._connection.cancel_safe(timeout=CANCEL_SECONDS)
            if not self._is_ended:
                self._end()
            self._receive_all()
            self._leave()
        except Exception:  # after any error the connection cannot be used
            self.is_finished = True
            self._connection.close()
