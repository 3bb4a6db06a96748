"""Prepared statements: of the current tenant, planned once, and answered one by one."""

from collections.abc import Callable
from contextlib import nullcontext

import psycopg
import pytest
from django.db import DatabaseError, OperationalError
from tenants.postgresql.prepared_cursor import Statements

from tenants import transaction
from tenants.context import connection, tenant_scope
from tenants.models import Tenant
from tests import database
from tests.tenants.accidents import ACCIDENTS, names

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.of_one_server(reason="one connection enters several tenants"),
]


@pytest.mark.parametrize("accident", ACCIDENTS)
def test_after_any_accident_a_prepared_statement_is_of_the_tenant_last_entered(
    in_a: Tenant, accident: Callable[[Tenant], None]
) -> None:
    assert prepared_names() == ["of-tenant-a"]
    accident(in_a)
    assert prepared_names() == ["of-tenant-b"]
    connection.set_schema_to_public()
    assert prepared_names() == []


def prepared_names() -> list[str]:
    with connection.prepared_cursor() as cursor:
        cursor.execute("SELECT username FROM auth_user WHERE id > %(least)s", {"least": 0})
        return [name for (name,) in cursor.fetchall()]


@pytest.mark.parametrize("in_transaction", [False, True])
def test_a_prepared_statement_that_fails_leaves_the_connection_as_it_was(
    in_a: Tenant, in_transaction: bool
) -> None:
    connection.set_tenant(in_a)
    failing = ("SELECT 1 / %(by)s", "SELECT %(by)s FROM nowhere")
    for sql in failing * 2:
        with (
            pytest.raises(DatabaseError, match=r"division by zero|does not exist"),
            transaction.atomic() if in_transaction else nullcontext(),
            connection.prepared_cursor() as cursor,
        ):
            cursor.execute(sql, {"by": 0})
        assert prepared_names() == names() == ["of-tenant-b"]


def test_a_failure_to_enter_the_tenant_fails_the_statement(in_a: Tenant) -> None:
    connection.set_tenant(in_a)
    connection.tenant_statements = (b"SELECT 1 / 0",)
    with pytest.raises(DatabaseError, match="division by zero"):
        prepared_names()


THREE = Statements(
    "SELECT username FROM auth_user WHERE id > %(least)s",
    "SELECT %(least)s + 2, CASE WHEN count(*) >= 0 THEN '' END FROM generate_series(1, %(pause)s)",
    "SELECT username, length(username) FROM auth_user ORDER BY username LIMIT %(most)s",
)
VALUES = {"least": 0, "most": 10, "pause": 0}


def answers_of(statements: Statements) -> list[list[tuple[object, ...]]]:
    with connection.prepared_cursor() as cursor:
        cursor.execute(statements, VALUES)
        answers = [cursor.fetchall()]
        while cursor.nextset():
            answers.append(cursor.fetchall())
        return answers


@pytest.mark.parametrize("accident", ACCIDENTS)
def test_after_any_accident_all_of_them_are_of_the_tenant_last_entered(
    in_a: Tenant, accident: Callable[[Tenant], None]
) -> None:
    assert answers_of(THREE)[2] == [("of-tenant-a", 11)]
    accident(in_a)
    assert answers_of(THREE) == [[("of-tenant-b",)], [(2, "")], [("of-tenant-b", 11)]]


@pytest.mark.parametrize(("failing", "in_transaction"), [(0, False), (1, True), (2, False)])
def test_failed_pipeline_leaves_the_connection_unchanged(
    in_a: Tenant, failing: int, in_transaction: bool, caplog: pytest.LogCaptureFixture
) -> None:
    connection.set_tenant(in_a)
    statements = list(THREE.statements)
    statements[failing] = "SELECT 1 / %(least)s"
    for _ in range(2):
        with (
            pytest.raises(DatabaseError, match="division by zero"),
            transaction.atomic() if in_transaction else nullcontext(),
        ):
            answers_of(Statements(*statements))
        assert names() == prepared_names() == ["of-tenant-b"]
    assert not caplog.records


def test_another_query_between_two_answers_is_of_the_tenant_entered_for_it(in_a: Tenant) -> None:
    with connection.prepared_cursor() as cursor:
        cursor.execute(THREE, VALUES)
        with tenant_scope(in_a.id):
            assert names() == ["of-tenant-b"]
        assert cursor.nextset()
        assert cursor.nextset()
        assert cursor.fetchall() == [("of-tenant-a", 11)]
        assert names() == ["of-tenant-a"]


@pytest.mark.of_a_session
def test_server_lost_between_two_results_raises_a_django_error(
    in_a: Tenant,
) -> None:
    connection.set_tenant(in_a)
    with connection.prepared_cursor() as cursor:
        cursor.execute(THREE, {**VALUES, "pause": 20_000_000})
        with psycopg.connect(database.url_of("superuser"), autocommit=True) as superuser:
            superuser.execute(
                "SELECT pg_terminate_backend(%s, 5000)", [connection.connection.info.backend_pid]
            )
        with pytest.raises(OperationalError):
            cursor.nextset()
    connection.close()
    assert names() == prepared_names() == ["of-tenant-b"]
