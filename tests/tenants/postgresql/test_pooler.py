"""Behind a real PgBouncer that pools by transaction, with fewer sessions than clients."""

import os
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random
from uuid import uuid4

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError

from memory.context import SessionStore
from memory.conversations.transcript import record_message
from memory.recall import recall
from tenants import transaction
from tenants.checks import CANNOT_BOOT
from tenants.context import connection, public_scope, tenant_scope
from tenants.models import Tenant
from tests import database
from tests.konstruct.running import run_python
from tests.servers import pooler
from tests.tenants.accidents import SETTINGS, names

pytestmark = [
    pytest.mark.data,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        pooler.EXECUTABLE is None and not os.environ.get("CI"), reason="there is no pgbouncer"
    ),
]


@pytest.fixture
def pooled(users: tuple[Tenant, Tenant]) -> Iterator[tuple[Tenant, Tenant]]:
    """The two tenants. All connections of the application go through the pooler."""
    with pooler.pooler() as url, database.through(url):
        yield users


def read_at_random(users: tuple[Tenant, Tenant], seed: int, calls: int) -> Counter[str]:
    random, found = Random(seed), Counter[str]()
    try:
        for _ in range(calls):
            tenant = random.choice(users)
            try:
                with tenant_scope(tenant.id):
                    if random.random() < 0.3:
                        with transaction.atomic():
                            read = [names(), names()][1]
                    elif random.random() < 0.1:
                        with pytest.raises(DatabaseError), transaction.atomic():
                            User.objects.create(id=1, username=f"of-{tenant.slug}")
                        continue
                    else:
                        read = names()
            except DatabaseError:
                found["failed"] += 1
                connection.close()
            else:
                found["right" if read == [f"of-{tenant.slug}"] else "crossed"] += 1
    finally:
        connection.close()
    return found


def test_many_clients_on_three_sessions_never_meet_another_tenant(
    pooled: tuple[Tenant, Tenant],
) -> None:
    with ThreadPoolExecutor(8) as threads:
        found = sum(
            threads.map(lambda seed: read_at_random(pooled, seed, 60), range(8)), Counter[str]()
        )
    assert set(found) == {"right"}


def test_sessions_that_are_killed_fail_calls_and_cross_none(pooled: tuple[Tenant, Tenant]) -> None:
    done = threading.Event()

    def kill() -> None:
        with psycopg.connect(database.url_of("superuser"), autocommit=True) as superuser:
            while not done.wait(0.2):
                superuser.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename ="
                    " 'konstruct_app' AND datname = current_database() ORDER BY random() LIMIT 1"
                )

    killer = threading.Thread(target=kill)
    killer.start()
    with ThreadPoolExecutor(8) as threads:
        found = sum(
            threads.map(lambda seed: read_at_random(pooled, seed, 60), range(8)), Counter[str]()
        )
    done.set()
    killer.join()
    assert found["right"] > 0
    assert found["crossed"] == 0


def test_session_keeps_no_state_of_a_tenant(pooled: tuple[Tenant, Tenant]) -> None:
    for tenant in pooled * 3:
        with tenant_scope(tenant.id):
            assert names() == [f"of-{tenant.slug}"]
            assert connection.is_pooled
        for _ in range(3):
            found, schema = connection.connection.execute(SETTINGS).fetchone()
            assert (found or "", schema) == ("", "public")


def test_a_recall_and_a_session_work_through_it(pooled: tuple[Tenant, Tenant]) -> None:
    agent = uuid4()
    for number in range(7):  # more often than the driver's threshold for preparing
        for tenant in pooled:
            record_message(
                tenant_id=tenant.id, agent_id=agent, user_id="maria", thread_id="t", role="user",
                channel="rest", content=f"{tenant.slug} said {number}",
            )  # fmt: skip
            assert recall(tenant.id, agent, "maria", "What was said?").hits == ()
            assert SessionStore(tenant.id).get_session_messages("t") == []


def test_session_statements_of_the_owner_are_refused_through_a_pooler(
    process_environment: dict[str, str],
) -> None:
    name = connection.settings_dict["NAME"]
    with pooler.pooler(role="owner") as url:
        for command in (["migrate"], ["migrate", "--schema", "tenant-a"], ["create_tenant", "c"]):
            ran = run_python(
                "manage.py",
                *command,
                env={**process_environment, "DATABASE_OWNER_URL": f"{url}/{name}"},
            )
            assert (ran.returncode, ran.stdout) == (1, "")
            assert ran.stderr.startswith(
                "CommandError: DATABASE_OWNER_URL goes through a connection pooler:"
            )
            assert "Set it to the address of Postgres itself" in ran.stderr
    with public_scope():
        assert not Tenant.objects.exclude(slug__in=database.SHARED_TENANTS).exists()


@pytest.mark.parametrize(("mode", "status"), [("statement", CANNOT_BOOT), ("session", 0)])
def test_pooler_without_transactions_prevents_serving(
    process_environment: dict[str, str], mode: str, status: int
) -> None:
    name = connection.settings_dict["NAME"]
    with pooler.pooler(mode=mode) as url:
        ran = run_python(
            "-c",
            "import konstruct.asgi",
            env={**process_environment, "DATABASE_URL": f"{url}/{name}"},
        )
    assert (ran.returncode, ran.stdout) == (status, "")
    if status:
        assert ran.stderr.startswith(
            "konstruct: refusing to serve: behind the connection pooler of DATABASE_URL"
            " transactions fail ("
        )
        assert ran.stderr.count("\n") == 1
