"""Enters the tenant of a Django connection, for one exchange with Postgres."""

from collections.abc import Sequence
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
FORGET = b"RESET app.current_tenant"


@dataclass(slots=True, eq=False)
class Queued:
    """A statement without a result. It goes with the next message to Postgres."""

    statement: bytes
    entering: tuple[bytes, ...] = ()
    """The tenant that it was queued in; empty for what belongs to none, such as SAVEPOINT."""
    values: Sequence[Buffer | None] | None = None
    types: Sequence[int] | None = None
    formats: Sequence[Format] | None = None
    is_done: bool = False
    """Whether a message that held it was done, in the transaction that it was in, if any."""


class Wrapper(Protocol):
    """The parts of the Django connection that exchanges and cursors use."""

    connection: Any
    entering: tuple[bytes, ...]
    queued: list[Queued]

    @property
    def begin_sql(self) -> bytes: ...
    @property
    def is_owners(self) -> bool: ...
    @property
    def is_pooled(self) -> bool: ...
    def refuse_unless_allowed(self, statement: str) -> None: ...
    def run_alone(self, statement: bytes) -> PGresult: ...
    def run_script(self, script: str) -> PGresult: ...
    def finish_exchange(self) -> None: ...


@lru_cache(maxsize=4096)
def statements_entering(schemas: tuple[str, ...], tenant_id: UUID | None) -> tuple[bytes, ...]:
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
        exchange.query(FORGET if is_alone else wrapper.begin_sql)
    queued, wrapper.queued = wrapper.queued, []
    entered: tuple[bytes, ...] = ()
    for each in queued:
        if each.entering and each.entering != entered:
            entered = _enter(exchange, each.entering)
        exchange.query(each.statement, each.values, each.types, each.formats)
    exchange.track(queued)
    if wrapper.entering != entered:
        _enter(exchange, wrapper.entering)
    if is_pooled:
        # At the next synchronisation Postgres reports the new search_path. Behind a long answer
        # PgBouncer would wait for ever for the end of that report if its buffer ends within it.
        exchange.synchronise()
    return exchange


def _enter(exchange: Exchange, entering: tuple[bytes, ...]) -> tuple[bytes, ...]:
    for statement in entering:
        exchange.query(statement)
    return entering
