"""Begins exchanges with Postgres in the tenant of a Django connection."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol
from uuid import UUID

from psycopg import sql
from psycopg.abc import Buffer
from psycopg.pq import Format, TransactionStatus
from psycopg.pq.abc import PGresult

from tenants.postgresql.exchange import Exchange

# Resets settings that the session may have. As the first statement it also makes the exchange a
# transaction of several statements, in which SET LOCAL is allowed.
RESET_TENANT = b"RESET app.current_tenant"

_statement_limit: ContextVar[bytes] = ContextVar("statement_limit", default=b"")


@contextmanager
def statement_limit(seconds: int) -> Iterator[None]:
    """Have Postgres cancel statements that take longer, in transactions that begin meanwhile.

    With SET LOCAL, so that a pooled session keeps nothing of it. Applies to all servers.
    """
    token = _statement_limit.set(f"SET LOCAL statement_timeout = '{seconds}s'".encode())
    try:
        yield
    finally:
        _statement_limit.reset(token)


@dataclass(slots=True, eq=False)
class QueuedStatement:
    """A statement without a result, which is sent with the next message to Postgres."""

    statement: bytes
    tenant_statements: tuple[bytes, ...] = ()
    """Set the tenant in which it was queued; empty for SAVEPOINT and the like."""
    values: Sequence[Buffer | None] | None = None
    types: Sequence[int] | None = None
    formats: Sequence[Format] | None = None
    is_done: bool = False
    """Whether the message with it succeeded; its transaction, if any, may still roll back."""


class Wrapper(Protocol):
    """The parts of the Django connection that exchanges and cursors use."""

    connection: Any
    tenant_statements: tuple[bytes, ...]
    queued: list[QueuedStatement]

    @property
    def begin_sql(self) -> bytes: ...
    @property
    def is_owners(self) -> bool: ...
    @property
    def is_pooled(self) -> bool: ...
    def refuse_unless_allowed(self, statement: str) -> None: ...
    def run_outside_transaction(self, statement: bytes) -> PGresult: ...
    def run_script(self, script: str) -> PGresult: ...
    def finish_exchange(self) -> None: ...


@lru_cache(maxsize=4096)
def tenant_statements(schemas: tuple[str, ...], tenant_id: UUID | None) -> tuple[bytes, ...]:
    """Return the statements that set search_path and tenant. Each request needs them twice."""
    search_path = sql.SQL(",").join(sql.Identifier(schema) for schema in schemas)
    return (
        sql.SQL("SET LOCAL search_path = {}").format(search_path).as_bytes(),
        sql.SQL("SET LOCAL app.current_tenant = {}").format(str(tenant_id or "")).as_bytes(),
    )


def begin_exchange(wrapper: Wrapper) -> Exchange:
    """Begin an exchange that enters the tenant of the Django connection.

    Queued statements go first, each in its own tenant. A transaction is begun if Django has
    switched autocommit off. In an aborted transaction nothing can be set, and only a rollback can
    run.
    """
    wrapper.finish_exchange()
    connection = wrapper.connection
    status = connection.info.transaction_status
    if status == TransactionStatus.INERROR:
        return Exchange(connection)
    is_alone = connection.autocommit and status == TransactionStatus.IDLE
    is_pooled = not is_alone and wrapper.is_pooled
    exchange = Exchange(connection)
    if status == TransactionStatus.IDLE:
        exchange.query(RESET_TENANT if is_alone else wrapper.begin_sql)
        if limit := _statement_limit.get():
            exchange.query(limit)
    queued, wrapper.queued = wrapper.queued, []
    current: tuple[bytes, ...] = ()
    for item in queued:
        if item.tenant_statements and item.tenant_statements != current:
            current = item.tenant_statements
            _send_settings(exchange, current)
        exchange.query(item.statement, item.values, item.types, item.formats)
    exchange.track(queued)
    if wrapper.tenant_statements != current:
        _send_settings(exchange, wrapper.tenant_statements)
    if is_pooled:
        # At the next synchronisation Postgres reports the new search_path. Behind a long answer
        # PgBouncer would wait for ever for the end of that report if its buffer ends within it.
        exchange.synchronise()
    return exchange


def _send_settings(exchange: Exchange, statements: tuple[bytes, ...]) -> None:
    for statement in statements:
        exchange.query(statement)
