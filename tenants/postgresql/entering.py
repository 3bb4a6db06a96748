"""Entering the tenant that a Django connection wants, for one exchange with Postgres."""

from typing import Any, Protocol

from psycopg.pq import TransactionStatus
from psycopg.pq.abc import PGresult

from tenants.postgresql.exchange import Exchange

# Forgets what a session may have been told by anybody. Being the first, it also makes a transaction
# of several statements out of the exchange, in which SET LOCAL may stand.
FORGET = b"RESET app.current_tenant"


class Wrapper(Protocol):
    """What exchanges and cursors need of the Django connection."""

    connection: Any
    entering: tuple[bytes, ...]

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


def begin_exchange(wrapper: Wrapper) -> Exchange:
    """Begin an exchange that enters the tenant which the Django connection wants.

    A transaction is begun where Django has ended autocommit. In an aborted transaction nothing can
    be set, and nothing but a rollback can run.
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
    for statement in wrapper.entering:
        exchange.query(statement)
    if is_pooled:
        # At the next synchronisation Postgres tells of a new search_path. Behind a long answer
        # PgBouncer would wait for ever for the end of that, where its buffer ends within it.
        exchange.synchronise()
    return exchange
