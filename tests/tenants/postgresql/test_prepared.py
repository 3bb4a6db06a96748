"""Prepared statements: of the current tenant, planned once, and answered one by one."""

from collections.abc import Callable
from contextlib import nullcontext, suppress

import psycopg
import pytest
from django.db import DatabaseError, NotSupportedError, OperationalError
from django.db.backends.utils import CursorWrapper
from django.test.utils import CaptureQueriesContext

from tenants import transaction
from tenants.context import connection, tenant_scope
from tenants.models import Tenant
from tenants.postgresql.prepared_cursor import Statements
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


@pytest.mark.of_a_session
def test_a_prepared_statement_is_planned_once_for_each_tenant(
    users: tuple[Tenant, Tenant],
) -> None:
    connection.close()  # another session than that of the previous tests
    for _ in range(3):
        for tenant in users:
            connection.set_tenant(tenant)
            assert prepared_names() == [f"of-{tenant.slug}"]
    with connection.cursor() as cursor:
        cursor.execute("SELECT generic_plans, custom_plans FROM pg_prepared_statements")
        assert cursor.fetchall() == [(3, 0)] * 2


@pytest.mark.of_a_session
def test_number_of_prepared_statements_is_limited(users: tuple[Tenant, Tenant]) -> None:
    connection.ensure_connection()
    connection.prepared.max_statements = 1
    for tenant in users * 2:
        connection.set_tenant(tenant)
        assert prepared_names() == [f"of-{tenant.slug}"]
    with connection.cursor() as cursor:
        cursor.execute("SELECT generic_plans FROM pg_prepared_statements")
        assert cursor.fetchall() == [(1,)]


@pytest.mark.of_a_session
@pytest.mark.parametrize("in_transaction", [False, True])
def test_a_prepared_statement_changes_no_other_statements_plan(
    in_a: Tenant, in_transaction: bool
) -> None:
    connection.set_tenant(in_a)
    with transaction.atomic() if in_transaction else nullcontext():
        assert prepared_names() == ["of-tenant-b"]
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT DISTINCT setting FROM pg_settings"
                " WHERE name LIKE 'enable_%scan' OR name = 'enable_sort'"
            )
            assert cursor.fetchall() == [("on",)]
            cursor.execute("SHOW plan_cache_mode")
            assert cursor.fetchone() == ("auto",)
            cursor.execute("SELECT username FROM auth_user WHERE id > %s", [0])
            cursor.execute(
                "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%username%'"
            )
            assert cursor.fetchone() == (1,)


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


def test_a_prepared_statement_can_be_read_in_the_log_of_queries(in_a: Tenant) -> None:
    connection.set_tenant(in_a)
    with CaptureQueriesContext(connection) as queries:
        prepared_names()
    assert [query["sql"] for query in queries.captured_queries] == [
        "SELECT username FROM auth_user WHERE id > 0"
    ]


@pytest.mark.parametrize("value", ["\0", object()], ids=["no text", "nothing known"])
def test_unsendable_statement_raises_a_django_error_with_a_query_log(
    in_a: Tenant, value: object
) -> None:
    for make_cursor in (connection.cursor, connection.prepared_cursor):
        with (
            CaptureQueriesContext(connection),
            make_cursor() as cursor,
            pytest.raises(DatabaseError),
        ):
            cursor.execute("SELECT %(value)s", {"value": value})
    assert names() == ["of-tenant-a"]


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


@pytest.mark.parametrize("in_transaction", [False, True])
def test_pipelined_statements_return_results_in_order(in_a: Tenant, in_transaction: bool) -> None:
    connection.set_tenant(in_a)
    with transaction.atomic() if in_transaction else nullcontext():
        for _ in range(3):
            assert answers_of(THREE) == [[("of-tenant-b",)], [(2, "")], [("of-tenant-b", 11)]]
            assert names() == ["of-tenant-b"]


def test_an_answer_does_not_wait_for_those_after_it(in_a: Tenant) -> None:
    with connection.prepared_cursor() as cursor:
        cursor.execute(THREE, {**VALUES, "pause": 2_000_000})
        assert cursor.fetchone() == ("of-tenant-a",)
        assert psycopg_is_busy(cursor)
        assert cursor.nextset()
        assert cursor.fetchone() == (2, "")


def psycopg_is_busy(cursor: CursorWrapper) -> bool:
    pgconn = cursor.connection.pgconn
    pgconn.consume_input()
    return bool(pgconn.is_busy())


@pytest.mark.parametrize("accident", ACCIDENTS)
def test_after_any_accident_all_of_them_are_of_the_tenant_last_entered(
    in_a: Tenant, accident: Callable[[Tenant], None]
) -> None:
    assert answers_of(THREE)[2] == [("of-tenant-a", 11)]
    accident(in_a)
    assert answers_of(THREE) == [[("of-tenant-b",)], [(2, "")], [("of-tenant-b", 11)]]


@pytest.mark.of_a_session
def test_discarded_statements_are_prepared_again(in_a: Tenant) -> None:
    connection.set_tenant(in_a)
    for _ in range(2):
        assert prepared_names() == ["of-tenant-b"]
        # As a pooler does, without a notice to psycopg.
        connection.connection.pgconn.exec_(b"DISCARD ALL")
        assert answers_of(THREE) == [[("of-tenant-b",)], [(2, "")], [("of-tenant-b", 11)]]
        connection.connection.pgconn.exec_(b"DISCARD ALL")
        with pytest.raises(DatabaseError, match="does not exist"), transaction.atomic():
            answers_of(THREE)
        assert names() == ["of-tenant-b"]


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


@pytest.mark.parametrize("read", range(3))
def test_unread_results_do_not_block_the_connection(in_a: Tenant, read: int) -> None:
    connection.set_tenant(in_a)
    with connection.prepared_cursor() as cursor:
        cursor.execute(THREE, VALUES)
        for _ in range(read):
            cursor.nextset()
        cursor.execute("SELECT username FROM auth_user WHERE id > %(least)s", VALUES)
        assert cursor.fetchall() == [("of-tenant-b",)]
        assert cursor.nextset() is None
        cursor.execute(THREE, VALUES)
    assert names() == ["of-tenant-b"]


def test_an_error_of_the_caller_between_two_answers_leaves_the_connection_as_it_was(
    in_a: Tenant,
) -> None:
    connection.set_tenant(in_a)
    with suppress(ZeroDivisionError), connection.prepared_cursor() as cursor:
        cursor.execute(THREE, VALUES)
        raise ZeroDivisionError
    assert names() == prepared_names() == ["of-tenant-b"]


def test_another_query_between_two_answers_is_of_the_tenant_entered_for_it(in_a: Tenant) -> None:
    with connection.prepared_cursor() as cursor:
        cursor.execute(THREE, VALUES)
        with tenant_scope(in_a.id):
            assert names() == ["of-tenant-b"]
        assert cursor.nextset()
        assert cursor.nextset()
        assert cursor.fetchall() == [("of-tenant-a", 11)]
        assert names() == ["of-tenant-a"]


@pytest.mark.parametrize("in_transaction", [False, True])
def test_two_cursors_take_turns(in_a: Tenant, in_transaction: bool) -> None:
    with (
        transaction.atomic() if in_transaction else nullcontext(),
        connection.prepared_cursor() as one,
        connection.prepared_cursor() as other,
    ):
        one.execute(THREE, VALUES)
        other.execute(THREE, {**VALUES, "least": 1000})
        assert one.fetchone() == ("of-tenant-a",)
        assert other.fetchone() is None
        for expected in ((2, 1002), ("of-tenant-a", "of-tenant-a")):
            assert one.nextset()
            assert other.nextset()
            assert (one.fetchone()[0], other.fetchone()[0]) == expected
    assert names() == ["of-tenant-a"]


def test_more_than_a_socket_holds_is_sent_and_answered(in_a: Tenant) -> None:
    large = Statements(*["SELECT %(text)s || %(last)s::text"] * 2, "SELECT length(%(text)s)")
    text = "x" * 5_000_000
    with connection.prepared_cursor() as cursor:
        cursor.execute(large, {"text": text, "last": 1})
        answers = [cursor.fetchone()]
        while cursor.nextset():
            answers.append(cursor.fetchone())
    assert answers == [(f"{text}1",), (f"{text}1",), (len(text),)]


def test_a_pipeline_of_the_drivers_own_is_no_place_for_them(in_a: Tenant) -> None:
    connection.ensure_connection()
    with (
        connection.connection.pipeline(),
        connection.prepared_cursor() as cursor,
        pytest.raises(NotSupportedError, match="has no place"),
    ):
        cursor.execute(THREE, VALUES)
    assert names() == prepared_names() == ["of-tenant-a"]


def test_only_wanted_rows_are_read(in_a: Tenant) -> None:
    with connection.prepared_cursor() as cursor:
        cursor.execute("SELECT n::bigint, n::text FROM generate_series(1, %(most)s) AS n", VALUES)
        wanted = {(3).to_bytes(8, "big"), (7).to_bytes(8, "big"), (70).to_bytes(8, "big")}
        assert cursor.fetch_where(0, wanted) == [(3, "3"), (7, "7")]


def test_pipelined_statements_are_one_entry_in_the_query_log(in_a: Tenant) -> None:
    with CaptureQueriesContext(connection) as queries:
        answers_of(THREE)
    (query,) = queries.captured_queries
    assert query["sql"].count(";") == 2
    assert "WHERE id > 0" in query["sql"]
    assert "LIMIT 10" in query["sql"]


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
