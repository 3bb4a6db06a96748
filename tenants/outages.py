"""Errors of servers that are down, such as Postgres and the cache."""

from typing import ClassVar

from django.db import InterfaceError, OperationalError
from django_redis.exceptions import ConnectionInterrupted
from psycopg.errors import ReadOnlySqlTransaction
from redis.exceptions import ConnectionError as CacheDown, TimeoutError as CacheTimeout

from tenants.exceptions import KonstructError

# Raised while Postgres or the cache takes no connection, has no room left on its disk, is being
# restarted, or does not answer in time.
OUTAGES = (OperationalError, InterfaceError, CacheDown, CacheTimeout, ConnectionInterrupted)
MAX_REASON_CHARACTERS = 300


def is_outage(error: BaseException) -> bool:
    """Return whether the error comes from a server that is down, or that refuses every write.

    The same request or task succeeds when the server is back. The program has no defect, so a
    traceback does not help.
    """
    return isinstance(error, OUTAGES) or isinstance(error.__cause__, ReadOnlySqlTransaction)


def outage_reason(error: BaseException) -> str:
    """Return one line for the log: the class of the error and the first line of its text."""
    first = str(error).partition("\n")[0][:MAX_REASON_CHARACTERS]
    return f"{type(error).__name__}: {first}"


class ServerDown(KonstructError, OperationalError):
    """The database server of a tenant takes no connections; other servers may."""

    code = "server_down"
    public = "This service is not available at the moment; try again soon."
    retry_after: ClassVar[int] = 5
    """Seconds after which it is worth to ask again."""

    def __init__(self, server: str, detail: str = "") -> None:
        super().__init__(f"the database server {server!r} takes no connections")
        self.server = server
        self.detail = f"({detail})" if detail else ""


class PoolExhausted(KonstructError, OperationalError):
    """No connection of the process's pool became free in time."""

    code = "pool_exhausted"

    def __init__(self, server: str, size: int, seconds: float) -> None:
        super().__init__(
            f"none of this process's {size} connections to the database server {server!r} became "
            f"free within {seconds:g} seconds: raise DATABASE_POOL_SIZE, or find what holds them"
        )


class NotWritable(KonstructError, OperationalError):
    """The main database accepts logins and refuses writes."""

    code = "not_writable"
