"""Functions that enter and leave a tenant."""

import functools
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, ParamSpec, TypeVar, cast
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import ProgrammingError, connections, transaction  # noqa: TID251 (this is where it is chosen)
from django.utils.asyncio import async_unsafe
from django.utils.connection import ConnectionProxy
from psycopg.errors import UndefinedTable

from tenants.exceptions import NotInTenant, UnknownTenant
from tenants.naming import as_tenant_id, schema_name_of
from tenants.postgresql.base import DatabaseWrapper
from tenants.servers import MAIN, current_server, server_of

P = ParamSpec("P")
R = TypeVar("R")
Values = Sequence[Any] | Mapping[str, Any] | None

# This thread's connections. The one to the main server stores the current server.
_connections = cast(Mapping[str, DatabaseWrapper], connections)


def tenant_connection() -> DatabaseWrapper:
    """Return this thread's connection to its current server."""
    main = _connections[MAIN]
    return main if main.server == MAIN else _connections[main.server]


class _TenantConnection(ConnectionProxy):
    """A proxy of `tenant_connection`, as `django.db.connection` is one."""

    _alias = property(lambda self: current_server())


connection = cast(DatabaseWrapper, _TenantConnection(connections, MAIN))


def fetch_all(statement: str, values: Values = None) -> list[tuple[Any, ...]]:
    """Run a statement on `tenant_connection()`, and return its rows."""
    with tenant_connection().cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


def fetch_column(statement: str, values: Values = None) -> list[Any]:
    """Run a statement on `tenant_connection()`, and return the first value of each row."""
    return [row[0] for row in fetch_all(statement, values)]


def fetch_row(statement: str, values: Values = None) -> Any:
    """Run a statement on `tenant_connection()`, and return its first row; None without rows."""
    with tenant_connection().cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchone()


def fetch_value(statement: str, values: Values = None) -> Any:
    """Run a statement on `tenant_connection()`, and return the first value of its first row."""
    row = fetch_row(statement, values)
    return None if row is None else row[0]


def execute(statement: str, values: Values = None) -> int:
    """Run a statement on `tenant_connection()`, and return the number of its rows."""
    with tenant_connection().cursor() as cursor:
        cursor.execute(statement, values)
        return int(cursor.rowcount)


def current_tenant_id() -> UUID | None:
    """Return the tenant that this thread is in; None in the public schema."""
    return tenant_connection().tenant_id


def pinned_tenant_id() -> UUID | None:
    """Return the tenant of the innermost `tenant_scope`, the only one that may be entered in it."""
    return _connections[MAIN].pinned_tenant


def required_tenant_id() -> UUID:
    """Return the tenant that this thread is in.

    Raises:
        NotInTenant: the thread is in no tenant.
    """
    tenant_id = current_tenant_id()
    if tenant_id is None:
        raise NotInTenant("this code serves a tenant, and runs outside of any: use tenant_scope")
    return tenant_id


@contextmanager
def tenant_scope(tenant_id: UUID | str) -> Iterator[UUID]:
    """Run the block inside the tenant's schema and policies, then return to the scope before.

    Inside, entering another tenant raises, also from `public_scope`.

    It sends no query: the name of the schema is computed from the id. If the tenant does not exist,
    neither do its tables, and shared tables have no rows of it.

    Evaluate querysets inside the block: a lazy one runs in the tenant of its evaluation.

    Args:
        tenant_id: the tenant, as a UUID or its text.

    Yields:
        The tenant's id.

    Raises:
        InvalidTenantId: it is not a UUID.
        TenantPinned: the thread is in a scope, or an open transaction, of another tenant.
    """
    entered = as_tenant_id(tenant_id)
    main = _connection_of_sync_code()
    tenant_connection().refuse_unless_free(entered)
    outer_pin = main.pinned_tenant
    with ExitStack() as scopes:
        if main.tenant_id != entered:
            scopes.enter_context(_on_server(MAIN)).set_schema(schema_name_of(entered))
            if (server := server_of(entered)) != MAIN:
                scopes.enter_context(_on_server(server)).set_schema(schema_name_of(entered))
        main.pinned_tenant = entered
        scopes.callback(setattr, main, "pinned_tenant", outer_pin)
        yield entered


@contextmanager
def known_tenant(tenant_id: UUID | str, *, savepoint: bool = True) -> Iterator[UUID]:
    """Run the block inside the tenant; raise UnknownTenant if the tenant has no tables.

    The block is a transaction, or a savepoint, so that an unknown tenant does not abort the
    caller's transaction.

    Args:
        tenant_id: the tenant.
        savepoint: False for a block that only reads: no savepoint in a transaction of this tenant.

    Raises:
        InvalidTenantId: it is not a UUID.
        TenantPinned: the caller serves another tenant.
        UnknownTenant: no such tenant, or one that `manage.py migrate` has not reached.
    """
    try:
        with tenant_scope(tenant_id) as entered:
            is_needed = savepoint or not tenant_connection().has_transaction
            with transaction.atomic(using=current_server()) if is_needed else nullcontext():
                yield entered
    except ProgrammingError as error:
        if isinstance(error.__cause__, UndefinedTable):
            raise UnknownTenant(f"no tenant with migrated tables has the id {tenant_id}") from error
        raise


def public_scope() -> AbstractContextManager[None]:
    """Run the block in the public schema of the main server, outside of tenants."""
    return server_scope(MAIN)


@contextmanager
def server_scope(server: str) -> Iterator[None]:
    """Run the block in the public schema of a server, outside of tenants."""
    main = _connection_of_sync_code()
    with _on_server(MAIN):
        main.set_schema_to_public()
        with _on_server(server) as connection:
            connection.set_schema_to_public()
            yield


@contextmanager
def _on_server(server: str) -> Iterator[DatabaseWrapper]:
    """Make a server the thread's current one during the block; yield its connection."""
    main = _connections[MAIN]
    connection = _connections[server]
    if server != MAIN:
        connection.close_if_broken()
    outer_server, outer_tenant = main.server, connection.tenant
    main.server = server
    try:
        yield connection
    finally:
        main.server = outer_server
        connection.set_tenant(outer_tenant)


def require_server_up() -> None:
    """Raise if this thread's server takes no connections. The main server is not checked.

    Raises:
        ServerDown: it takes none.
    """
    if current_server() != MAIN:
        connection = tenant_connection()
        connection.close_if_health_check_failed()
        connection.ensure_connection()


@contextmanager
def release_connections() -> Iterator[None]:
    """Release this thread's database connections during the block.

    Use it to wait for something outside of the database: with DATABASE_POOL_SIZE the connections
    return to their pools, for other threads. The tenant is kept, and the next statement takes a
    connection again.

    Raises:
        ProgrammingError: a transaction is open.
    """
    for wrapper in connections.all(initialized_only=True):
        cast(DatabaseWrapper, wrapper).release()
    yield


@contextmanager
def statement_timeout(seconds: int) -> Iterator[None]:
    """Have Postgres cancel statements that take longer, in transactions that begin meanwhile."""
    _connections[MAIN].statement_timeout = f"{seconds}s"
    try:
        yield
    finally:
        _connections[MAIN].statement_timeout = ""


def leave_tenant() -> None:
    """Go to the public schema of the main server, from any scope."""
    for wrapper in connections.all(initialized_only=True):
        cast(DatabaseWrapper, wrapper).set_schema_to_public()
    main = _connections[MAIN]
    main.set_schema_to_public()
    main.server = MAIN


@async_unsafe("A tenant can only be entered in its own thread: use the a… function.")
def _connection_of_sync_code() -> DatabaseWrapper:
    """Return this thread's connection; raise in a thread with a running event loop.

    Coroutines share one thread, so each would change the tenant of all others.
    """
    return _connections[MAIN]


def asynchronous(function: Callable[P, R]) -> Callable[P, Coroutine[None, None, R]]:
    """Return a coroutine function that runs this function in Django's sync thread.

    Django's connections belong to a thread, so the caller's tenant is not inherited: ``function``
    must take the tenant's id, or enter the tenant itself.
    """
    run = sync_to_async(function, thread_sensitive=True)

    @functools.wraps(function)
    async def run_in_sync_thread(*args: P.args, **kwargs: P.kwargs) -> R:
        return await run(*args, **kwargs)

    run_in_sync_thread.__name__ = f"a{function.__name__}"
    run_in_sync_thread.__qualname__ = run_in_sync_thread.__name__
    return run_in_sync_thread
