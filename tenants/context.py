"""Entering a tenant, leaving it again, and never another by accident."""

import functools
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar, cast
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import ProgrammingError, connections, transaction
from django.utils.asyncio import async_unsafe
from django_tenants.utils import get_tenant_database_alias
from psycopg.errors import UndefinedTable

from tenants.exceptions import NotInTenant, TenantPinned, UnknownTenant
from tenants.naming import as_tenant_id, schema_name_of
from tenants.postgresql.base import DatabaseWrapper

P = ParamSpec("P")
R = TypeVar("R")


def tenant_connection() -> DatabaseWrapper:
    """Return this thread's connection."""
    return cast(DatabaseWrapper, connections[get_tenant_database_alias()])


def current_tenant_id() -> UUID | None:
    """Return the tenant that this thread is in, None in the public schema."""
    return tenant_connection().tenant_id


def required_tenant_id() -> UUID:
    """Return the tenant that this thread is in.

    Raises:
        NotInTenant: it is in none.
    """
    tenant_id = current_tenant_id()
    if tenant_id is None:
        raise NotInTenant("this code serves a tenant, and runs outside of any: use tenant_scope")
    return tenant_id


@contextmanager
def tenant_scope(tenant_id: UUID | str, *, pinned: bool = False) -> Iterator[UUID]:
    """Do the block inside the tenant's schema and policies; afterwards be where we were.

    It costs no query: the schema's name is computed from the id. Where no such tenant exists,
    its tables do not either, and what is shared has no rows for it.

    Evaluate querysets inside: a lazy one evaluated later reads the tenant of that time.

    Args:
        tenant_id: the tenant, as a UUID or its text.
        pinned: inside, entering any other tenant raises. For code that serves one tenant on
            behalf of somebody outside (a request, a task).

    Yields:
        The tenant's id.

    Raises:
        InvalidTenantId: it is not a UUID.
        TenantPinned: an enclosing scope is pinned to another tenant.
    """
    entered = as_tenant_id(tenant_id)
    connection = _connection_of_sync_code()
    outer_tenant, outer_pin = connection.tenant, connection.pinned_tenant
    include_public = connection.include_public_schema
    if outer_pin not in (None, entered):
        raise TenantPinned(f"this code serves tenant {outer_pin} and cannot enter tenant {entered}")
    inside_already = connection.tenant_id == entered
    if not inside_already:
        connection.set_schema(schema_name_of(entered))
    if pinned:
        connection.pinned_tenant = entered
    try:
        yield entered
    finally:
        connection.pinned_tenant = outer_pin
        if not inside_already or connection.tenant is not outer_tenant:
            connection.set_tenant(outer_tenant, include_public)


@contextmanager
def known_tenant(tenant_id: UUID | str, *, reads_only: bool = False) -> Iterator[UUID]:
    """Do the block inside the tenant; a tenant without tables is said to be unknown.

    It costs no query of its own. Inside a transaction it is a savepoint, so that a tenant which
    does not exist breaks no transaction of the caller's.

    Args:
        reads_only: inside a transaction, undo everything at the end: settings that the block's
            statements need leave no trace.

    Raises:
        InvalidTenantId: it is not a UUID.
        TenantPinned: the caller serves another tenant.
        UnknownTenant: no such tenant, or one that `manage.py migrate` has not reached.
    """
    try:
        with tenant_scope(tenant_id) as entered, _savepoint(undo=reads_only):
            yield entered
    except ProgrammingError as error:
        if isinstance(error.__cause__, UndefinedTable):
            raise UnknownTenant(f"no tenant with migrated tables has the id {tenant_id}") from error
        raise


@contextmanager
def _savepoint(*, undo: bool) -> Iterator[None]:
    if not tenant_connection().in_atomic_block:
        yield
        return
    with transaction.atomic():
        yield
        if undo:
            transaction.set_rollback(True)


@contextmanager
def public_scope() -> Iterator[None]:
    """Do the block in the public schema, in no tenant; afterwards be where we were."""
    connection = _connection_of_sync_code()
    outer_tenant, include_public = connection.tenant, connection.include_public_schema
    connection.set_schema_to_public()
    try:
        yield
    finally:
        connection.set_tenant(outer_tenant, include_public)


@async_unsafe("A tenant can only be entered in a thread of its own: use the a… twin.")
def _connection_of_sync_code() -> DatabaseWrapper:
    """Return this thread's connection, unless an event loop runs in this thread.

    Coroutines take turns in one thread, and each would change the tenant of all others.
    """
    return tenant_connection()


def asynchronous(function: Callable[P, R]) -> Callable[P, Coroutine[None, None, R]]:
    """Make the asynchronous twin of a function: the same code, run in Django's sync thread.

    Django's connections belong to a thread, so the twin does not inherit the caller's tenant;
    ``function`` must take the tenant's id or enter the tenant itself.
    """
    run = sync_to_async(function, thread_sensitive=True)

    @functools.wraps(function)
    async def twin(*args: P.args, **kwargs: P.kwargs) -> R:
        return await run(*args, **kwargs)

    twin.__name__ = f"a{function.__name__}"
    twin.__qualname__ = twin.__name__
    return twin
