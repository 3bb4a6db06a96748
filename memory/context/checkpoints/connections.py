"""The process' pools of psycopg connections for LangGraph, with a transaction in one tenant.

LangGraph saves checkpoints from its own threads, which begin and end with every run; Django's
connections belong to a thread, and would accumulate. One pool serves all tenants of a server:
its size limits the connections of a process, for any number of tenants.
"""

import atexit
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast
from uuid import UUID

import psycopg
from django.db import connections
from psycopg import IsolationLevel, sql
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool

from tenants.context import current_server, tenant_scope
from tenants.limits import quotas
from tenants.models import Tenant
from tenants.naming import schema_name_of
from tenants.postgresql.base import DatabaseWrapper
from tenants.postgresql.pool import HookedConnection
from tenants.servers import MAIN

MAX_CONNECTIONS = 8
# The application_name of the connections in pg_stat_activity.
APPLICATION_NAME = "konstruct checkpoints"
# Seconds after which an unused connection is closed.
MAX_IDLE_SECONDS = 60

_ENTER_SQL = """
BEGIN ISOLATION LEVEL {level};
SET LOCAL search_path = {schema};
SET LOCAL app.current_tenant = {tenant}
"""

TenantConnection = psycopg.Connection[DictRow]


_lock = threading.Lock()
# By server, with the connection parameters.
_pools: dict[str, tuple[dict[str, Any], ConnectionPool[TenantConnection]]] = {}
# A forked child must neither use nor close its parent's connections.
_inherited: list[ConnectionPool[TenantConnection]] = []


@contextmanager
def tenant_transaction(
    tenant_id: UUID, *, level: IsolationLevel = IsolationLevel.READ_COMMITTED
) -> Iterator[TenantConnection]:
    """Run the block in a transaction inside the tenant's schema and policies.

    Schema and tenant are reset with the transaction, so that neither a later user of the connection
    nor another client of a pooler inherits them.
    """
    pool = _pool_of(_server_of(tenant_id))
    connection = _get_connection(pool, tenant_id, level)
    try:
        with connection:
            yield connection
    finally:
        pool.putconn(connection)


@contextmanager
def tenant_session(tenant_id: UUID) -> Iterator[TenantConnection]:
    """Run the block with a connection in autocommit, in a session inside the tenant.

    For the owner's statements that cannot run in a transaction. Not through a pooler.
    """
    with tenant_transaction(tenant_id) as connection:
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


def _get_connection(
    pool: ConnectionPool[TenantConnection], tenant_id: UUID, level: IsolationLevel
) -> TenantConnection:
    """Return a connection of the pool, in a transaction inside the tenant.

    Connections that a restart of Postgres has closed are dropped. The pool's own check waits longer
    after each of them, and stops before it has checked all.
    """
    enter = sql.SQL(_ENTER_SQL).format(
        level=sql.SQL(level.name.replace("_", " ")),
        schema=sql.Identifier(schema_name_of(tenant_id)),
        tenant=sql.Literal(str(tenant_id)),
    )
    tries_left = MAX_CONNECTIONS
    # Ends: after MAX_CONNECTIONS attempts.
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


def close_pools() -> None:
    """Close all connections. The next use opens a new pool."""
    with _lock:
        pools = [pool for _, pool in _pools.values()]
        _pools.clear()
    for pool in pools:
        pool.close()


def refuse_full_storage(tenant_id: UUID) -> None:
    """Raise QuotaExceeded if the tenant's storage has reached its hard limit."""
    with _tenant_on_main_server(tenant_id):
        quotas.refuse_full_storage(Tenant.objects.only("quotas", "usage").get(pk=tenant_id))


def _server_of(tenant_id: UUID) -> str:
    with _tenant_on_main_server(tenant_id):
        return current_server()


@contextmanager
def _tenant_on_main_server(tenant_id: UUID) -> Iterator[None]:
    """Enter the tenant. A connection that its queries open is closed again."""
    main = connections[MAIN]
    was_open = main.connection is not None
    try:
        with tenant_scope(tenant_id):
            yield
    finally:
        if not was_open:
            main.close()


def _pool_of(server: str) -> ConnectionPool[TenantConnection]:
    """Return the pool of a server, with the role of Django's connection."""
    target = _connect_arguments(server)
    with _lock:
        before, replaced = _pools.get(server, ({}, None))
        if replaced is not None and before == target:
            return replaced
        pool: ConnectionPool[TenantConnection] = ConnectionPool(
            kwargs=target,
            connection_class=HookedConnection,
            min_size=0,
            max_size=MAX_CONNECTIONS,
            max_idle=MAX_IDLE_SECONDS,
            name=APPLICATION_NAME,
            open=True,
        )
        _pools[server] = (target, pool)
    if replaced is not None:
        replaced.close()
    return pool


def _connect_arguments(server: str) -> dict[str, Any]:
    """Return Django's connection parameters without its cursors and type adapters."""
    django = cast(DatabaseWrapper, connections[server])
    arguments = dict(django.get_connection_params())
    del arguments["context"], arguments["cursor_factory"]
    if role := django.settings_dict["OPTIONS"].get("assume_role"):
        arguments["options"] = f"{arguments.get('options', '')} -c role={role}".strip()
    return {
        **arguments,
        "application_name": APPLICATION_NAME,
        "autocommit": True,
        "row_factory": dict_row,
    }


def _forget_inherited_pool() -> None:
    global _lock
    _lock = threading.Lock()
    _inherited.extend(pool for _, pool in _pools.values())
    _pools.clear()


os.register_at_fork(after_in_child=_forget_inherited_pool)
atexit.register(close_pools)
