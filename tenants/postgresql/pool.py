"""Connects to a server, or takes a connection from the process's pool.

With DATABASE_POOL_SIZE the threads of a process share connections (Django's OPTIONS["pool"],
psycopg_pool). While a server takes no connection, the pool tries it twice a second if a thread asks
for one. The pool's own retries, with pauses that double up to minutes, are off.
"""

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, Final

import psycopg
from django.conf import settings
from psycopg_pool import ConnectionPool, PoolTimeout

from tenants.outages import PoolExhausted, ServerDown

# After a server has refused a connection, how long the next one is not tried.
DOWN_SECONDS = 2.0
# How long a thread waits for a connection of the pool, and how often it checks meanwhile whether
# the server is down.
MAX_POOL_WAIT_SECONDS: Final = 10.0
CHECK_SECONDS: Final = 1.0
_down_until: dict[str, float] = {}
# Connections of threads that have ended without returning them.
_abandoned: deque[psycopg.Connection[Any]] = deque()


@cache
def start_embedded_services() -> None:
    """Start the services of settings.EMBEDDED_SERVICES, before the first connection of a process.

    This process then counts as their user: they run until it ends.
    """
    for start in settings.EMBEDDED_SERVICES:
        start()


def pool_options(alias: str, size: int, max_lifetime: int) -> dict[str, Any]:
    """Return Django's `OPTIONS["pool"]` of a server: connections are opened as they are needed.

    Args:
        alias: Django's name of the server.
        size: the most connections that the process has to it.
        max_lifetime: seconds after which a connection is opened anew.
    """
    return {
        "name": alias,
        "min_size": 0,
        "max_size": size,
        "max_lifetime": max_lifetime,
        "timeout": CHECK_SECONDS,
        "reconnect_timeout": CHECK_SECONDS,
        "reconnect_failed": _mark_down,
    }


def _mark_down(pool: ConnectionPool[Any]) -> None:
    _down_until[pool.name] = time.monotonic() + DOWN_SECONDS


def connect_unless_down(alias: str, connect: Callable[[], Any]) -> Any:
    """Connect. After a failure this process does not try again for DOWN_SECONDS.

    Raises:
        ServerDown: the server does not answer, or did not during the last DOWN_SECONDS.
    """
    if time.monotonic() < _down_until.get(alias, 0.0):
        raise ServerDown(alias)
    try:
        return connect()
    except psycopg.OperationalError as error:
        _down_until[alias] = time.monotonic() + DOWN_SECONDS
        raise ServerDown(alias, detail=str(error)) from error


def take_from_pool(pool: ConnectionPool[Any], take: Callable[[], Any]) -> Any:
    """Take a connection that Postgres has not closed. Closed ones are discarded.

    The pool's own check asks Postgres, and pauses after each closed connection.

    Args:
        pool: the pool; its name is Django's alias of the server.
        take: takes a connection of it, or raises PoolTimeout after CHECK_SECONDS.

    Raises:
        ServerDown: no connection is free, and the server accepts no new one.
        PoolExhausted: no connection was free for MAX_POOL_WAIT_SECONDS.
    """
    with suppress(IndexError):
        # Ends: when none is left, perhaps because another thread has taken the last one.
        while True:
            discard(_abandoned.popleft())
    began = time.monotonic()
    while time.monotonic() < began + MAX_POOL_WAIT_SECONDS:
        try:
            connection = take()
        except PoolTimeout:
            if _down_until.get(pool.name, 0.0) > began:
                raise ServerDown(pool.name) from None
            continue
        if is_alive(connection):
            return connection
        discard(connection)
    raise PoolExhausted(pool.name, pool.max_size, MAX_POOL_WAIT_SECONDS)


def is_alive(connection: psycopg.Connection[Any]) -> bool:
    """Return whether Postgres has not closed the connection, by its socket: no round trip."""
    if connection.closed:
        return False
    try:
        for _ in ("pending data", "the end of the stream"):
            connection.pgconn.consume_input()
    except psycopg.OperationalError:
        return False
    return True


def discard(connection: psycopg.Connection[Any]) -> None:
    """Close a connection, and have its pool open another."""
    connection.close()
    if connection._pool is not None:
        connection._pool.putconn(connection)  # type: ignore[attr-defined]


def abandon(connection: psycopg.Connection[Any]) -> None:
    """Have the next thread that needs a connection discard this one.

    For finalizers: they may run inside the pool's own code, and must take no lock.
    """
    _abandoned.append(connection)
