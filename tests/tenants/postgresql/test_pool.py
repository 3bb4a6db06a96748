"""Threads that share a connection pool: each in its tenant, without a connection while it waits."""

import gc
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from random import Random
from threading import Thread
from typing import Any
from unittest.mock import Mock
from uuid import UUID

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import (
    DatabaseError,
    OperationalError,
    ProgrammingError,
    close_old_connections,
    connections,
)
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool

from memory.conversations.transcript import record_message
from memory.models import Message
from tenants import transaction
from tenants.context import connection, fetch_column, release_connections, tenant_scope
from tenants.models import Tenant
from tenants.outages import PoolExhausted, is_outage
from tenants.postgresql import pool as pool_module
from tenants.servers import MAIN
from tests import database
from tests.database import MakeTenant
from tests.servers import pooler
from tests.tenants.accidents import ACCIDENTS, SETTINGS, by_the_driver, names

Pool = ConnectionPool[Any]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.of_one_server(reason="one connection enters several tenants"),
]

AGENT = UUID(int=7)
THREADS, UNITS, SIZE = 100, 20, 4
IDS = "SELECT id FROM memory_message WHERE agent_id = %(agent)s AND user_id = %(user)s"


@pytest.fixture
def pool(users: tuple[Tenant, Tenant]) -> Iterator[Pool]:
    """The only connection for all threads."""
    with database.pools(1) as made:
        yield made[MAIN]


def free(pool: Pool) -> int:
    """Return the number of free connections."""
    return pool.get_stats()["pool_available"]


def in_thread(function: Callable[[], Any]) -> Any:
    """Run it in a thread that returns its connections at the end."""

    def done() -> Any:
        try:
            return function()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(done).result()


def backend() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        number: int = cursor.fetchone()[0]
        return number


def terminate(number: int) -> None:
    with psycopg.connect(database.url_of("superuser"), autocommit=True) as superuser:
        superuser.execute("SELECT pg_terminate_backend(%s, 5000)", [number])


@pytest.fixture
def five(tenant_a: Tenant, tenant_b: Tenant, make_tenant: MakeTenant) -> dict[UUID, set[UUID]]:
    """Five tenants with the same agent, user and text, and the ids of their messages."""
    tenants = [tenant_a, tenant_b, *(make_tenant() for _ in range(3))]
    return {tenant.id: {record(tenant.id)} for tenant in tenants}


def record(tenant_id: UUID) -> UUID:
    message, _ = record_message(
        tenant_id=tenant_id, agent_id=AGENT, user_id="maria", thread_id="t", channel="rest",
        role="user", content="The canary sings.",
    )  # fmt: skip
    return UUID(str(message.id))


def ids_by_the_orm() -> set[UUID]:
    of_maria = Message.objects.filter(agent_id=AGENT, user_id="maria", content="The canary sings.")
    return set(of_maria.values_list("id", flat=True))


def ids_by_sql() -> set[UUID]:
    return set(fetch_column(IDS, {"agent": AGENT, "user": "maria"}))


def ids_in_a_transaction() -> set[UUID]:
    with transaction.atomic():
        ids_by_sql()
        return ids_by_the_orm()


def ids_after_an_error() -> set[UUID]:
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT 1 / 0")
    return ids_by_the_orm()


def ids_after_a_rollback() -> set[UUID]:
    with suppress(ZeroDivisionError), transaction.atomic():
        User.objects.create(username="rolled back")
        raise ZeroDivisionError
    return ids_by_sql()


WAYS = [ids_by_the_orm, ids_by_sql, ids_in_a_transaction, ids_after_an_error, ids_after_a_rollback]


def read_and_write(tenants: dict[UUID, set[UUID]], seed: int) -> tuple[set[UUID], int]:
    """Run transactions of random tenants. Return written ids, and the count of foreign reads."""
    random, written, crossed = Random(seed), set(), 0
    known = {tenant_id: set(found) for tenant_id, found in tenants.items()}
    try:
        for _ in range(UNITS):
            tenant_id = random.choice(list(known))
            with tenant_scope(tenant_id):
                if random.random() < 0.1:
                    new_id = record(tenant_id)
                    written.add(new_id)
                    known[tenant_id].add(new_id)
                others = set().union(*(ids for owner, ids in known.items() if owner != tenant_id))
                for way in random.sample(WAYS, 2):
                    with release_connections():
                        found = way()
                    crossed += not (known[tenant_id] <= found and not found & others)
    finally:
        connections.close_all()
    return written, crossed


@contextmanager
def behind(kind: str) -> Iterator[None]:
    with ExitStack() as stack:
        if kind == "a pooler":
            stack.enter_context(database.through(stack.enter_context(pooler.pooler(size=3))))
        yield


@pytest.mark.parametrize(
    "place",
    [
        "Postgres",
        pytest.param(
            "a pooler",
            marks=pytest.mark.skipif(
                pooler.EXECUTABLE is None and not os.environ.get("CI"), reason="no pgbouncer"
            ),
        ),
    ],
)
def test_a_hundred_threads_on_four_connections_see_their_own_tenants_rows_alone(
    five: dict[UUID, set[UUID]], place: str
) -> None:
    with behind(place), database.pools(SIZE) as pools:
        with ThreadPoolExecutor(THREADS) as threads:
            done = list(threads.map(lambda seed: read_and_write(five, seed), range(THREADS)))
        assert [crossed for _, crossed in done] == [0] * THREADS
        assert pools[MAIN].get_stats()["pool_size"] == free(pools[MAIN]) == SIZE
        left = []
        for tenant_id in five:
            with tenant_scope(tenant_id):
                left.append(ids_by_the_orm())
    expected = set().union(*five.values(), *(written for written, _ in done))
    assert set().union(*left) == expected
    assert sum(map(len, left)) == len(expected)


@pytest.mark.parametrize("accident", ACCIDENTS)
def test_after_any_accident_the_next_thread_is_in_its_own_tenant(
    pool: Pool, users: tuple[Tenant, Tenant], accident: Callable[[Tenant], None]
) -> None:
    a, b = users
    connection.set_tenant(a)
    accident(b)
    connection.close()

    def read() -> list[str]:
        with tenant_scope(a.id):
            return names()

    assert in_thread(read) == ["of-tenant-a"]
    assert in_thread(settings_now) == ("", "public")


def settings_now() -> tuple[str, str]:
    with connection.cursor() as cursor:
        cursor.execute(SETTINGS)
        found: tuple[str, str] = cursor.fetchone()
        return found


def leave_raw_transaction() -> None:
    by_the_driver("BEGIN")


def leave_aborted_transaction() -> None:
    leave_raw_transaction()
    with suppress(psycopg.Error):
        by_the_driver("SELECT 1 / 0")


def leave_settings_of_the_session() -> None:
    connection.ensure_connection()
    connection.connection.execute("SET app.current_tenant = 'x'; SET search_path = pg_catalog")


def run_for_long() -> None:
    connection.set_local({"statement_timeout": "10ms"})
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM generate_series(1, 1000000000)")


def leave_statement_that_was_stopped() -> None:
    with pytest.raises(OperationalError, match="statement timeout"), transaction.atomic():
        run_for_long()


def leave_killed_backend() -> None:
    number = backend()
    terminate(number)


def read_on_killed_backend() -> None:
    terminate(backend())
    names()


def leave_backend_that_was_killed_in_a_transaction() -> None:
    with pytest.raises(OperationalError), transaction.atomic():
        read_on_killed_backend()


LEAVERS = [
    leave_raw_transaction,
    leave_aborted_transaction,
    leave_settings_of_the_session,
    leave_statement_that_was_stopped,
    leave_killed_backend,
    leave_backend_that_was_killed_in_a_transaction,
]


@pytest.mark.of_a_session
@pytest.mark.parametrize("given_back", [connections.close_all, close_old_connections])
@pytest.mark.parametrize("leave", LEAVERS)
def test_next_user_of_a_pooled_connection_finds_it_clean(
    pool: Pool,
    users: tuple[Tenant, Tenant],
    leave: Callable[[], None],
    given_back: Callable[[], None],
) -> None:
    a, b = users
    with tenant_scope(a.id):
        leave()
    given_back()

    def work() -> tuple[list[str], TransactionStatus, bool]:
        with tenant_scope(b.id):
            User.objects.create(username="kept")
            found = names()
            return found, connection.connection.info.transaction_status, connection.is_pooled

    found, status, is_pooled = in_thread(work)
    assert sorted(found) == ["kept", "of-tenant-b"]
    assert (status, is_pooled) == (TransactionStatus.IDLE, False)
    with tenant_scope(a.id):
        assert names() == ["of-tenant-a"]
    with tenant_scope(b.id):
        assert sorted(names()) == ["kept", "of-tenant-b"]


def test_no_statement_of_the_application_changes_a_shared_session(pool: Pool) -> None:
    for statement in ("SET statement_timeout = 1", "SELECT set_config('work_mem', '64kB', false)"):
        with pytest.raises(DatabaseError, match="permission denied"), connection.cursor() as cursor:
            cursor.execute(statement)


def test_all_connections_that_a_restart_has_ended_are_replaced_at_once(
    users: tuple[Tenant, Tenant],
) -> None:
    with database.pools(3) as pools:
        pool = pools[MAIN]
        pool.open()
        connections_taken = [pool.getconn() for _ in range(3)]
        numbers = [taken_connection.info.backend_pid for taken_connection in connections_taken]
        for taken_connection in connections_taken:
            pool.putconn(taken_connection)
        for number in numbers:
            terminate(number)
        with tenant_scope(users[0].id):
            assert names() == ["of-tenant-a"]
            assert backend() not in numbers


@pytest.mark.slow
def test_exhausted_pool_is_an_outage_that_names_the_setting(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "MAX_POOL_WAIT_SECONDS", 0.2)
    connection.ensure_connection()
    with pytest.raises(PoolExhausted) as caught:
        in_thread(names)
    assert is_outage(caught.value)
    assert str(caught.value) == (
        "none of this process's 1 connections to the database server 'default' became free within "
        "0.2 seconds: raise DATABASE_POOL_SIZE, or find what holds them"
    )
    connection.close()
    assert in_thread(settings_now) == ("", "public")


def test_a_connection_is_free_while_a_thread_waits(
    pool: Pool, users: tuple[Tenant, Tenant]
) -> None:
    with tenant_scope(users[0].id):
        assert names() == ["of-tenant-a"]
        assert free(pool) == 0
        with release_connections():
            assert free(pool) == 1
            assert in_thread(settings_now) == ("", "public")
            assert names() == ["of-tenant-a"]  # takes one again
            assert free(pool) == 0
        assert names() == ["of-tenant-a"]
        with release_connections(), release_connections():
            assert free(pool) == 1


def test_in_a_transaction_no_thread_may_wait(pool: Pool, users: tuple[Tenant, Tenant]) -> None:
    with tenant_scope(users[0].id):
        with (
            transaction.atomic(),
            pytest.raises(ProgrammingError, match="a transaction is open on the connection"),
            release_connections(),
        ):
            pass
        with release_connections():
            assert free(pool) == 1


def test_two_threads_discard_an_abandoned_connection_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class TakenByAnother(deque[Any]):
        def __bool__(self) -> bool:
            found = len(self) > 0
            self.clear()
            return found

    monkeypatch.setattr(pool_module, "_abandoned", TakenByAnother([Mock()]))
    monkeypatch.setattr(pool_module, "is_alive", lambda _: True)
    assert pool_module.take_from_pool(Mock(), lambda: "another") == "another"


def test_a_thread_that_ends_without_closing_keeps_no_slot_of_the_pool(pool: Pool) -> None:
    for _ in range(pool.max_size + 1):
        thread = Thread(target=backend)
        thread.start()
        thread.join(timeout=30)
        gc.collect()
    assert in_thread(backend)
