"""The process' pool of plain psycopg connections for LangGraph, each lent out inside one tenant.

LangGraph saves checkpoints from threads of its own, which come and go with every run; Django's
connections belong to a thread, and would pile up there. One pool serves all tenants: its size
bounds what a process takes of Postgres, however many tenants it serves.
"""

import atexit
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self
from uuid import UUID

import psycopg
from django.conf import settings
from django.utils.module_loading import import_string
from psycopg import IsolationLevel, sql
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool

from tenants.context import tenant_connection
from tenants.naming import schema_name_of

MAX_CONNECTIONS = 8
# How the connections call themselves in pg_stat_activity.
APPLICATION_NAME = "konstruct checkpoints"
# Seconds after which a connection that nobody needs is given back to Postgres.
MAX_IDLE = 60

_ENTER_SQL = """
BEGIN ISOLATION LEVEL {level};
SET LOCAL search_path = {schema};
SET LOCAL app.current_tenant = {tenant}
"""

TenantConnection = psycopg.Connection[DictRow]


class _Connection(psycopg.Connection[Any]):
    """Starts the embedded Postgres where there is no URL, as Django's connections do."""

    @classmethod
    def connect(cls, conninfo: str = "", **kwargs: Any) -> Self:
        if hook := getattr(settings, "DATABASE_BEFORE_CONNECT", None):
            import_string(hook)()
        return super().connect(conninfo, **kwargs)


_lock = threading.Lock()
_pool: ConnectionPool[TenantConnection] | None = None
_pool_target: dict[str, Any] = {}
# A forked child must neither use nor close what its parent is connected to.
_inherited: list[ConnectionPool[TenantConnection]] = []


@contextmanager
def connection_in(
    tenant_id: UUID, *, level: IsolationLevel = IsolationLevel.READ_COMMITTED
) -> Iterator[TenantConnection]:
    """Lend a connection inside the tenant's schema and policies, in a transaction.

    Schema and tenant end with the transaction, so that nobody who is lent it later, nor another
    client of a pooler, inherits them.
    """
    pool = _current_pool()
    connection = _entered(pool, tenant_id, level)
    try:
        with connection:
            yield connection
    finally:
        pool.putconn(connection)


@contextmanager
def session_in(tenant_id: UUID) -> Iterator[TenantConnection]:
    """Lend the owner a connection in autocommit, whose session names the tenant until it is back.

    For what Postgres does in no transaction. Not through a pooler.
    """
    with connection_in(tenant_id) as connection:
        connection.commit()
        schema = sql.Identifier(schema_name_of(tenant_id))
        try:
            connection.execute(sql.SQL("SET search_path = {}").format(schema))
            connection.execute(sql.SQL("SET app.current_tenant = {}").format(str(tenant_id)))
            yield connection
        finally:
            if not connection.closed:
                connection.rollback()
                connection.execute("RESET search_path")
                connection.execute("RESET app.current_tenant")


def _entered(
    pool: ConnectionPool[TenantConnection], tenant_id: UUID, level: IsolationLevel
) -> TenantConnection:
    """A connection that Postgres has just answered on; those that a restart has ended are dropped.

    The pool's own check waits longer after each of them, and gives up before it has met them all.
    """
    enter = sql.SQL(_ENTER_SQL).format(
        level=sql.SQL(level.name.replace("_", " ")),
        schema=sql.Identifier(schema_name_of(tenant_id)),
        tenant=sql.Literal(str(tenant_id)),
    )
    tries_left = MAX_CONNECTIONS
    while True:
        connection = pool.getconn()
        try:
            connection.execute(enter)
        except BaseException as error:
            pool.putconn(connection)
            if not (tries_left and isinstance(error, psycopg.OperationalError)):
                raise
            tries_left -= 1
        else:
            return connection


def close_pool() -> None:
    """Give all connections back to Postgres. The next use opens a new pool."""
    global _pool
    with _lock:
        pool, _pool = _pool, None
    if pool is not None:
        pool.close()


def _current_pool() -> ConnectionPool[TenantConnection]:
    """The pool to the database that Django is configured for at this moment, as Django's role."""
    global _pool, _pool_target
    target = _connect_arguments()
    with _lock:
        if _pool is not None and _pool_target == target:
            return _pool
        replaced = _pool
        _pool_target = target
        _pool = ConnectionPool(
            kwargs=target,
            connection_class=_Connection,
            min_size=0,
            max_size=MAX_CONNECTIONS,
            max_idle=MAX_IDLE,
            name=APPLICATION_NAME,
            open=True,
        )
        pool = _pool
    if replaced is not None:
        replaced.close()
    return pool


def _connect_arguments() -> dict[str, Any]:
    """How Django would connect, without what is Django's own: its cursors and its type adapters."""
    django = tenant_connection()
    arguments = dict(django.get_connection_params())
    del arguments["context"]
    if role := django.settings_dict["OPTIONS"].get("assume_role"):
        arguments["options"] = f"{arguments.get('options', '')} -c role={role}".strip()
    return {
        **arguments,
        "application_name": APPLICATION_NAME,
        "autocommit": True,
        "row_factory": dict_row,
    }


def _forget_inherited_pool() -> None:
    global _pool, _lock
    _lock = threading.Lock()
    if _pool is not None:
        _inherited.append(_pool)
        _pool = None


os.register_at_fork(after_in_child=_forget_inherited_pool)
atexit.register(close_pool)
