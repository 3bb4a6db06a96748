"""The backend: rollbacks, reconnects and other cursors do not restore another tenant."""

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from random import Random
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, OperationalError, ProgrammingError, connection, transaction
from django.db.models.expressions import RawSQL
from django_tenants.utils import schema_context

from memory.models import Message
from tenants.context import public_scope, tenant_scope
from tenants.exceptions import TenantPinned
from tenants.models import Tenant
from tenants.postgresql import base
from tests.tenants.accidents import ACCIDENTS, SETTINGS, names

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.of_one_server(reason="one connection enters several tenants"),
]


@pytest.mark.parametrize("accident", ACCIDENTS)
def test_after_any_accident_the_next_query_is_of_the_tenant_last_entered(
    in_a: Tenant, accident: Callable[[Tenant], None]
) -> None:
    connection.close()  # a session without the settings that an earlier test has left
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


def test_terminated_connection_is_reopened_in_the_same_tenant(in_a: Tenant) -> None:
    connection.set_tenant(in_a)
    with connection.cursor() as cursor:
        connection.connection.pgconn.finish()
        with pytest.raises(OperationalError):
            cursor.execute("SELECT 1")
    connection.close()
    assert names() == ["of-tenant-b"]


@pytest.mark.parametrize("statement", ["BEGIN", "COMMIT", "ROLLBACK", "END", "SET LOCAL x.y = 1"])
def test_no_statement_ends_a_transaction_or_leaves_its_tenant(in_a: Tenant, statement: str) -> None:
    connection.set_tenant(in_a)
    with transaction.atomic():
        for sent in (statement, f"SELECT 1; {statement}", f"/* */ {statement}"):
            with connection.cursor() as cursor, pytest.raises(DatabaseError, match="denied"):
                cursor.execute(sent)
        assert names() == ["of-tenant-b"]


def test_many_statements_at_once_enter_the_tenant(in_a: Tenant) -> None:
    connection.set_tenant(in_a)
    with connection.cursor() as cursor:
        cursor.executemany("UPDATE auth_user SET first_name = %s", [("Ada",), ("Bo",)])
    assert list(User.objects.values_list("username", "first_name")) == [("of-tenant-b", "Bo")]


def test_a_failure_to_enter_the_tenant_fails_the_statement(
    in_a: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stock django-tenants ignores it and runs the statement in the previous tenant."""
    connection.set_tenant(in_a)
    monkeypatch.setattr(base, "_settings_of", lambda schemas, tenant_id: "SELECT 1 / 0")
    with pytest.raises(DatabaseError, match="division by zero"):
        names()


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


def test_another_tenant_inside_a_transaction_of_a_tenant_is_an_error_that_names_both(
    users: tuple[Tenant, Tenant],
) -> None:
    tenant_a, tenant_b = users
    message = f"this code serves tenant {tenant_a.id} and cannot enter tenant {tenant_b.id}"
    with tenant_scope(tenant_a.id), transaction.atomic():
        with pytest.raises(TenantPinned, match=message), tenant_scope(tenant_b.id):
            pytest.fail("entered")
        with pytest.raises(TenantPinned, match=message), schema_context(tenant_b.schema_name):
            pytest.fail("entered")
        with public_scope():
            with pytest.raises(TenantPinned, match=str(tenant_b.id)), tenant_scope(tenant_b.id):
                pytest.fail("entered")
            with tenant_scope(tenant_a.id):
                assert names() == ["of-tenant-a"]
        assert names() == ["of-tenant-a"]


def test_entering_a_tenant_costs_no_query_of_its_own(
    in_a: Tenant, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(1), tenant_scope(in_a.id):
        names()


def test_a_query_of_a_tenants_table_outside_of_tenants_names_the_remedy(in_a: Tenant) -> None:
    connection.set_schema_to_public()
    with pytest.raises(ProgrammingError, match=r"does not exist: .* see tenants.context.tenant_sc"):
        Message.objects.exists()
    with transaction.atomic(), pytest.raises(ProgrammingError, match="no tenant is entered"):
        Message.objects.exists()


@pytest.mark.parametrize("scope", [nullcontext, transaction.atomic])
def test_the_orm_explains_queries_of_the_tenant(in_a: Tenant, scope: Any) -> None:
    users = User.objects.filter(username__contains="of-").order_by("id")
    with tenant_scope(in_a.id), scope():
        for query in (users, users.union(User.objects.all(), all=True)):
            for format in (None, "text", "json", "xml", "yaml"):
                assert "auth_user" in query.explain(format=format)
                plan = query.explain(format=format, analyze=True, verbose=True)
                assert set(re.findall("t_[0-9a-f]{32}", plan)) == {in_a.schema_name}
        (plan,) = json.loads(users.explain(analyze=True, format="json"))
        assert plan["Plan"]["Actual Rows"] == 1
        assert names() == ["of-tenant-b"]


@pytest.mark.parametrize("scope", [nullcontext, transaction.atomic])
def test_no_raw_statement_explains_whatever_the_orm_has_explained(
    users: tuple[Tenant, Tenant], scope: Any
) -> None:
    """An estimate of another tenant's table tells how common a value is."""
    theirs = f"EXPLAIN SELECT FROM {users[1].schema_name}.auth_user"

    def refuse_raw() -> None:
        for begin in ("", "/* */ ", "EXPLAIN /* */ SELECT 1; ", "EXPLAIN (FORMAT json) "):
            with connection.cursor() as cursor, pytest.raises(DatabaseError, match="denied"):
                cursor.execute(begin + theirs)

    with tenant_scope(users[0].id), scope():
        refuse_raw()
        User.objects.all().explain()
        refuse_raw()
        for wrong in ("1 / 0", f"1; {theirs}"):
            query = User.objects.order_by(RawSQL(wrong, ()))  # noqa: S611 (constants)
            with pytest.raises(DatabaseError), transaction.atomic():
                query.explain(analyze=True)
            refuse_raw()
        connection.ops.explain_query_prefix()  # of a statement that is not sent
        refuse_raw()
