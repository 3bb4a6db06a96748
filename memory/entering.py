"""Entering a tenant on behalf of a caller who may have been wrong about it."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.db import ProgrammingError, connection, transaction
from psycopg.errors import UndefinedTable

from tenants.context import tenant_scope
from tenants.exceptions import UnknownTenant


@contextmanager
def known_tenant(tenant_id: UUID | str, *, reads_only: bool = False) -> Iterator[UUID]:
    """Do the block inside the tenant; a tenant without memory's tables is said to be unknown.

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
    if not connection.in_atomic_block:
        yield
        return
    with transaction.atomic():
        yield
        if undo:
            transaction.set_rollback(True)
