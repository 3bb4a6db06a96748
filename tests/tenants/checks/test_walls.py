"""SQL of the application's role, as in an injection: it reaches no other tenant."""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import psycopg
import pytest
from django.contrib.auth.models import Group
from django.db import DatabaseError

from tenants import transaction
from tenants.checks.privileges import ALLOWED_FUNCTIONS, unsafe_privileges
from tenants.context import connection, tenant_scope
from tenants.models import Tenant
from tests import database
from tests.konstruct.isolation.statements import (
    HARMING,
    NAMING,
    TENANT_SWITCHES,
    UNSENT,
    WRITING,
)
from tests.tenants.accidents import names

pytestmark = pytest.mark.django_db(transaction=True)

BOOTSTRAP = Path(__file__).resolve().parents[3] / "deploy" / "bootstrap.sql"


@contextmanager
def by_django(tenant: Tenant) -> Iterator[Callable[[str], list[tuple[object, ...]]]]:
    """Run it as an injected statement of the product."""

    with tenant_scope(tenant.id):
        yield database.execute


@contextmanager
def by_libpq(tenant: Tenant) -> Iterator[Callable[[str], list[tuple[object, ...]]]]:
    """Run it with libpq only, so that only Postgres can refuse it."""
    with psycopg.connect(database.url_of("app")) as plain:
        plain.execute(f"SET LOCAL search_path = {tenant.schema_name}, public, extensions")
        plain.execute(f"SET LOCAL app.current_tenant = '{tenant.id}'")

        def run(statement: str) -> list[tuple[object, ...]]:
            if statement.startswith("COPY"):  # psycopg has a separate method for it
                with plain.cursor().copy(statement) as copy:
                    return list(copy.rows())
            try:
                cursor = plain.execute(statement, binary=True)  # one statement in a message
                return cursor.fetchall() if cursor.description else []
            finally:
                plain.rollback()

        yield run


Way = Callable[[Tenant], AbstractContextManager[Callable[[str], list[tuple[object, ...]]]]]


def attempt(way: Way, users: tuple[Tenant, Tenant], statement: str) -> tuple[bool, object]:
    """Return whether it succeeded, and the result or error of the attacker."""
    a, b = users
    sql = statement.format(
        attacker=a.id, victim=b.id, schema=b.schema_name, table="auth_user", column="username"
    )
    with way(a) as run:
        try:
            return True, run(sql)
        except (DatabaseError, psycopg.Error) as error:
            return False, str(error)


@pytest.mark.parametrize("way", [by_django, by_libpq])
def test_no_statement_reads_another_tenant(users: tuple[Tenant, Tenant], way: Way) -> None:
    results = {
        statement: attempt(way, users, statement) for statement in (*NAMING, *TENANT_SWITCHES)
    }
    assert not [statement for statement, result in results.items() if "of-tenant-b" in str(result)]
    for tenant in users:
        with tenant_scope(tenant.id):
            assert names() == [f"of-{tenant.slug}"]


@pytest.mark.parametrize("way", [by_django, by_libpq])
def test_statements_cannot_write_rows_of_other_tenants(
    users: tuple[Tenant, Tenant], way: Way
) -> None:
    results = {statement: attempt(way, users, statement) for statement in WRITING}
    assert not [statement for statement, (done, rows) in results.items() if done and rows]
    with tenant_scope(users[1].id):
        assert names() == ["of-tenant-b"]
        assert not Group.objects.filter(name="x").exists()
        with transaction.atomic():
            Group.objects.create(name="x")  # B can still use the attacked resource
            transaction.set_rollback(True)


@pytest.mark.parametrize(
    ("way", "statements"), [(by_django, (*HARMING, *UNSENT)), (by_libpq, HARMING)]
)
def test_no_statement_harms_all(
    users: tuple[Tenant, Tenant], way: Way, statements: tuple[str, ...]
) -> None:
    results = {statement: attempt(way, users, statement) for statement in statements}
    assert not [statement for statement, (done, _) in results.items() if done]


def test_the_catalogue_opens_no_way_that_is_not_listed() -> None:
    with connection.cursor() as cursor:
        assert unsafe_privileges(cursor) == []


def test_the_script_and_the_check_list_the_same_functions() -> None:
    (listed,) = re.findall(r"proname <> ALL \(ARRAY\[(.*?)\]\)", BOOTSTRAP.read_text(), re.DOTALL)
    functions = {
        "give_back_jobs",
        "held_tenant_locks",
        "renew_worker",
        "return_expired_jobs",
        "try_tenant_lock",
        "wait_for_tenant_lock",
    }
    assert set(re.findall(r"'(\w+)'", listed)) == ALLOWED_FUNCTIONS - functions
