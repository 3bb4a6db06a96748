"""The backend: rollbacks, reconnects and other cursors do not restore another tenant."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import (
    DatabaseError,
    OperationalError,
    close_old_connections,
    connection,
    transaction,
)
from django.test import override_settings
from django_tenants.postgresql_backend.base import DatabaseWrapper as StockWrapper
from django_tenants.utils import schema_context

from tenants.context import tenant_scope
from tenants.models import Tenant
from tenants.postgresql.base import DatabaseWrapper
from tests import database
from tests.tenants.accidents import ACCIDENTS, SETTINGS, names

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.of_one_server(reason="one connection enters several tenants"),
]


@pytest.mark.parametrize("accident", ACCIDENTS)
def test_after_any_accident_the_next_query_is_of_the_tenant_last_entered(
    in_a: Tenant, accident: Callable[[Tenant], None]
) -> None:
    accident(in_a)
    assert names() == ["of-tenant-b"]
    # The driver's own cursor is in no tenant.
    tenant, schema = connection.connection.execute(SETTINGS).fetchone()
    assert (tenant or "", schema) == ("", "public")


@pytest.mark.parametrize("accident", ACCIDENTS)
def test_after_any_accident_a_named_cursor_is_of_the_tenant_last_entered(
    in_a: Tenant, accident: Callable[[Tenant], None]
) -> None:
    accident(in_a)
    with transaction.atomic():
        assert [user.username for user in User.objects.iterator()] == ["of-tenant-b"]


def test_an_accident_in_the_public_schema_brings_no_tenant_back(in_a: Tenant) -> None:
    with transaction.atomic():
        connection.set_schema_to_public()
        with connection.cursor() as cursor, pytest.raises(DatabaseError):
            cursor.execute("SELECT 1 / 0")
    with connection.cursor() as cursor:
        cursor.execute(SETTINGS)
        assert cursor.fetchone() == ("", "public")


def test_the_first_accident_leaks_in_the_stock_backend(users: tuple[Tenant, Tenant]) -> None:
    """This proves that the tests above can fail."""
    tenant_a, tenant_b = users
    with database.as_owner():  # Django sets UTC by set_config, which the application may not call
        stock = StockWrapper({**database.connections["default"].settings_dict}, alias="default")
    with override_settings(TENANT_LIMIT_SET_CALLS=True):
        try:
            stock.set_tenant(tenant_a)
            with stock.cursor() as cursor:
                cursor.execute("SELECT current_schema()")
            stock.set_autocommit(False)
            stock.set_tenant(tenant_b)
            with stock.cursor() as cursor, pytest.raises(DatabaseError):
                cursor.execute("SELECT 1 / 0")
            stock.commit()
            with stock.cursor() as cursor:
                cursor.execute("SELECT current_schema()")
                assert cursor.fetchone() == (tenant_a.schema_name,)
        finally:
            stock.close()


def test_terminated_connection_is_reopened_in_the_same_tenant(in_a: Tenant) -> None:
    connection.set_tenant(in_a)
    with connection.cursor() as cursor:
        connection.connection.pgconn.finish()
        with pytest.raises(OperationalError):
            cursor.execute("SELECT 1")
    connection.close()
    assert names() == ["of-tenant-b"]


@pytest.mark.of_a_session
def test_on_a_connection_that_was_terminated_every_statement_fails_as_in_an_outage(
    in_a: Tenant,
) -> None:
    connection.ensure_connection()
    pid = connection.connection.info.backend_pid
    with psycopg.connect(database.url_of("superuser"), autocommit=True) as superuser:
        superuser.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    for _ in range(3):
        with pytest.raises(OperationalError):
            names()
    connection.close()


@pytest.mark.of_a_session
@pytest.mark.parametrize("first", ["statement", "prepared", "queued"])
def test_terminated_connection_is_reopened_without_a_check(in_a: Tenant, first: str) -> None:
    connection.set_tenant(in_a)
    connection.ensure_connection()
    pid = connection.connection.info.backend_pid
    close_old_connections()
    with psycopg.connect(database.url_of("superuser"), autocommit=True) as superuser:
        superuser.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    if first == "statement":
        assert names() == ["of-tenant-b"]
    elif first == "queued":
        connection.queue("SELECT %(one)s::int", {"one": 1})
    else:
        with connection.prepared_cursor() as cursor:
            cursor.execute("SELECT current_schema()", {})
            assert cursor.fetchone() == (in_a.schema_name,)
    assert connection.connection.info.backend_pid != pid


@pytest.mark.parametrize("method", ["execute", "executemany", "callproc"])
def test_every_way_to_send_a_statement_enters_the_tenant(in_a: Tenant, method: str) -> None:
    connection.ensure_connection()
    connection.set_tenant(in_a)
    connection.connection.execute("SET search_path = public")
    with connection.cursor() as cursor:
        if method == "execute":
            cursor.execute("SELECT current_schema()")
        elif method == "executemany":
            cursor.cursor.executemany("SELECT current_schema()", [()], returning=True)
        else:
            cursor.callproc("current_schema")
        assert cursor.fetchone() == (in_a.schema_name,)


def test_a_transaction_that_was_left_open_ends_with_the_request(
    users: tuple[Tenant, Tenant],
) -> None:
    a, b = users
    with tenant_scope(a.id), connection.cursor() as cursor:
        cursor.execute("BEGIN")
        User.objects.create(username="lost")
    close_old_connections()
    with tenant_scope(b.id):
        User.objects.create(username="kept")
    connection.close()
    with tenant_scope(a.id):
        assert names() == ["of-tenant-a"]
    with tenant_scope(b.id):
        assert sorted(names()) == ["kept", "of-tenant-b"]


def test_a_failure_to_enter_the_tenant_fails_the_statement(in_a: Tenant) -> None:
    """Stock django-tenants ignores it and runs the statement in the previous tenant."""
    connection.set_tenant(in_a)
    connection.tenant_statements = (b"SELECT 1 / 0",)
    with pytest.raises(DatabaseError, match="division by zero"):
        names()


def test_server_side_binding_keeps_the_tenant(users: tuple[Tenant, Tenant]) -> None:
    binding = connection.copy()
    binding.settings_dict["OPTIONS"] = {
        **connection.settings_dict["OPTIONS"],
        "server_side_binding": True,
    }
    try:
        for tenant in users:
            binding.set_tenant(tenant)
            with binding.cursor() as cursor:
                cursor.execute(SETTINGS)
                assert cursor.fetchone() == (str(tenant.id), tenant.schema_name)
            with binding.chunked_cursor() as cursor:
                cursor.execute(SETTINGS)
                assert cursor.fetchone() == (str(tenant.id), tenant.schema_name)
    finally:
        binding.close()


@pytest.mark.of_a_session
def test_pooled_connection_forgets_its_former_tenant(
    users: tuple[Tenant, Tenant],
) -> None:
    tenant_a, tenant_b = users
    pooled_settings = {
        **connection.settings_dict,
        "OPTIONS": {**connection.settings_dict["OPTIONS"], "pool": {"min_size": 1, "max_size": 1}},
        "CONN_MAX_AGE": 0,
        "CONN_HEALTH_CHECKS": False,
    }
    first, second = (DatabaseWrapper(pooled_settings, alias="pooled") for _ in range(2))
    try:
        first.set_tenant(tenant_a)
        with first.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            (backend,) = cursor.fetchone()
        first.close()
        second.set_tenant(tenant_b)
        with second.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid(), username FROM auth_user")
            assert cursor.fetchall() == [(backend, "of-tenant-b")]
        second.close()
        first.set_schema_to_public()
        with first.cursor() as cursor:
            cursor.execute(SETTINGS)
            assert cursor.fetchone() == ("", "public")
        first.close()
    finally:
        first.close_pool()


def test_threads_never_read_each_others_tenant(users: tuple[Tenant, Tenant]) -> None:
    def read(seed: int) -> set[bool]:
        random, right = Random(seed), set()
        try:
            for _ in range(40):
                tenant = random.choice(users)
                with tenant_scope(tenant.id):
                    right.add(names() == [f"of-{tenant.slug}"])
                    if random.random() < 0.3:
                        with pytest.raises(DatabaseError), transaction.atomic():
                            User.objects.create(id=1, username=f"of-{tenant.slug}")
                    right.add(names() == [f"of-{tenant.slug}"])
        finally:
            connection.close()
        return right

    with ThreadPoolExecutor(6) as threads:
        assert set().union(*threads.map(read, range(6))) == {True}


def test_schema_context_of_django_tenants_sets_both(in_a: Tenant) -> None:
    with schema_context(in_a.schema_name), connection.cursor() as cursor:
        cursor.execute(SETTINGS)
        assert cursor.fetchone() == (str(in_a.id), in_a.schema_name)
    assert names() == ["of-tenant-a"]


def test_entering_a_tenant_costs_no_query_of_its_own(
    in_a: Tenant, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(1), tenant_scope(in_a.id):
        names()


def test_introspection_sees_the_tenants_tables_and_not_publics(in_a: Tenant) -> None:
    with tenant_scope(in_a.id):
        tables = connection.introspection.table_names()
        assert "auth_user" in tables
        assert "tenants_tenant" not in tables
        assert names() == ["of-tenant-b"]


_hooked: list[str] = []


def note_hook() -> None:
    """Called before the connection to the main server."""
    _hooked.append("connected")


@override_settings(DATABASE_BEFORE_CONNECT=f"{__name__}.note_hook")
def test_connection_outside_of_a_tenant_waits_for_the_main_server() -> None:
    """As in Django, which creates a database there, such as the tests'."""
    _hooked.clear()
    with connection.creation._nodb_cursor() as cursor:
        cursor.execute("SELECT current_database()")
        assert cursor.fetchone() == ("postgres",)
    assert _hooked == ["connected"]
