"""Events on a connection between two queries, while another tenant is entered.

In a transaction it is entered from the public schema: from another tenant it is refused.
"""

from collections.abc import Callable
from contextlib import suppress

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError

from tenants import transaction
from tenants.context import connection
from tenants.models import Tenant

SETTINGS = "SELECT current_setting('app.current_tenant', true), current_schema()"


def names() -> list[str]:
    return list(User.objects.values_list("username", flat=True))


def by_the_driver(statements: str) -> None:
    """Send statements that the cursors refuse."""
    connection.ensure_connection()
    connection.connection.execute(statements)


def swallowed_error_in_atomic(tenant: Tenant) -> None:
    connection.set_schema_to_public()
    with transaction.atomic():
        connection.set_tenant(tenant)
        with connection.cursor() as cursor, pytest.raises(DatabaseError):
            cursor.execute("SELECT 1 / 0")


def rollback_by_exception(tenant: Tenant) -> None:
    connection.set_schema_to_public()
    with suppress(ZeroDivisionError), transaction.atomic():
        connection.set_tenant(tenant)
        assert names() == ["of-tenant-b"]
        raise ZeroDivisionError


def savepoint_rollback(tenant: Tenant) -> None:
    connection.set_schema_to_public()
    with transaction.atomic(), suppress(ZeroDivisionError), transaction.atomic():
        connection.set_tenant(tenant)
        assert names() == ["of-tenant-b"]
        raise ZeroDivisionError


def savepoint_in_raw_sql(tenant: Tenant) -> None:
    connection.set_schema_to_public()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SAVEPOINT ours")
        connection.set_tenant(tenant)
        assert names() == ["of-tenant-b"]
        cursor.execute("ROLLBACK TO ours")
        assert names() == ["of-tenant-b"]


def swallowed_error_in_savepoint(tenant: Tenant) -> None:
    connection.set_schema_to_public()
    with transaction.atomic():
        connection.set_tenant(tenant)
        with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT 1 / 0")


def rollback_by_the_driver(tenant: Tenant) -> None:
    connection.set_schema_to_public()
    with transaction.atomic():
        connection.set_tenant(tenant)
        assert names() == ["of-tenant-b"]
        connection.connection.rollback()


def reset_in_raw_sql(tenant: Tenant) -> None:
    connection.set_tenant(tenant)
    by_the_driver("DISCARD ALL")


def search_path_in_raw_sql(tenant: Tenant) -> None:
    connection.set_tenant(tenant)
    by_the_driver("SET search_path = public; SET app.current_tenant = ''")


def reconnect(tenant: Tenant) -> None:
    connection.set_tenant(tenant)
    connection.close()


def cursor_made_before(tenant: Tenant) -> None:
    with connection.cursor() as cursor:
        cursor.execute(SETTINGS)
        connection.set_tenant(tenant)
        cursor.execute(SETTINGS)
        assert cursor.fetchone() == (str(tenant.id), tenant.schema_name)


ACCIDENTS: list[Callable[[Tenant], None]] = [
    swallowed_error_in_atomic, rollback_by_exception, savepoint_rollback, savepoint_in_raw_sql,
    swallowed_error_in_savepoint, rollback_by_the_driver, reset_in_raw_sql, search_path_in_raw_sql,
    reconnect, cursor_made_before,
]  # fmt: skip
