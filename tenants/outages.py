"""Errors of servers that are down, such as Postgres and the cache."""

from django.db import InterfaceError, OperationalError
from django_redis.exceptions import ConnectionInterrupted
from psycopg.errors import ReadOnlySqlTransaction
from redis.exceptions import ConnectionError as CacheDown
from redis.exceptions import TimeoutError as CacheTimeout

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
