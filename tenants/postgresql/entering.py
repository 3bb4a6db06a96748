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
    exchange = Exchange(connection)
    match connection.info.transaction_status:
        case TransactionStatus.INERROR:
            return exchange
        case TransactionStatus.IDLE:
            exchange.query(FORGET if connection.autocommit else wrapper.begin_sql)
    for statement in wrapper.entering:
        exchange.query(statement)
    return exchange
