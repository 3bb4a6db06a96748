"""Errors of connections to Postgres. Their base is Django's OperationalError."""

from typing import ClassVar

from django.db import OperationalError

from tenants.exceptions import KonstructError


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
