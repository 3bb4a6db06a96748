"""LangGraph's saver in a tenant: its conformance suite, and further tests."""

import asyncio
from collections.abc import AsyncGenerator
from importlib import import_module
from threading import Thread
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.db import connections
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import Capability
from langgraph.checkpoint.conformance.test_utils import generate_config, put_test_checkpoint
from langgraph.checkpoint.postgres import PostgresSaver

from memory.context.checkpoints import MAX_CONNECTIONS, TenantPostgresSaver
from memory.exceptions import SessionTablesOutdated
from tenants import transaction
from tenants.context import tenant_connection, tenant_scope
from tenants.models import Tenant
from tests.database import url_of
from tests.konstruct.llm.test_waiting import wait_until
from tests.memory.context.checkpoints.stored import count, ids, put, tenant_transaction

# The saver has its own connections, which do not see uncommitted rows of a test.
pytestmark = pytest.mark.django_db(transaction=True)


def conformance_tests(capability: str) -> list[Any]:
    """Return the tests of LangGraph's suite for a capability."""
    spec = import_module(f"langgraph.checkpoint.conformance.spec.test_{capability}")
    tests: list[Any] = getattr(spec, f"ALL_{capability.upper()}_TESTS")
    assert len(tests) >= 5
    return tests


def test_the_saver_passes_langgraphs_conformance_suite(tenant_a: Tenant) -> None:
    @checkpointer_test(name="Konstruct")
    async def konstruct() -> AsyncGenerator[TenantPostgresSaver, None]:
        yield TenantPostgresSaver(tenant_a.id)

    report = asyncio.run(validate(konstruct))

    # LangGraph's own PostgresSaver has neither.
    missing = {Capability.COPY_THREAD.value, Capability.DELETE_FOR_RUNS.value}
    detected = {name: result for name, result in report.results.items() if result.detected}
    assert {*detected} == {capability.value for capability in Capability} - missing
    assert {name: (result.failures, result.tests_passed) for name, result in detected.items()} == {
        name: ([], len(conformance_tests(name))) for name in detected
    }


def test_the_same_thread_in_two_tenants_never_meets(tenant_a: Tenant, tenant_b: Tenant) -> None:
    saver_a, saver_b = TenantPostgresSaver(tenant_a.id), TenantPostgresSaver(tenant_b.id)
    stored = put(saver_a, "thread")

    assert saver_b.get_tuple(stored) is None
    assert list(saver_b.list(None)) == []
    saver_b.delete_thread("thread")
    saver_b.prune(["thread"], strategy="delete")

    assert ids(saver_a, "thread") == [stored["configurable"]["checkpoint_id"]]
    put(saver_b, "thread")
    assert len(ids(saver_a, "thread")) == len(ids(saver_b, "thread")) == 1
    assert ids(saver_a, "thread") != ids(saver_b, "thread")


@pytest.mark.of_one_server(reason="it attacks a neighbour on the same server")
@pytest.mark.parametrize("table", ["checkpoints", "checkpoint_blobs", "checkpoint_writes"])
def test_the_policy_holds_where_another_tenants_table_is_named(
    tenant_a: Tenant, tenant_b: Tenant, table: str
) -> None:
    saver = TenantPostgresSaver(tenant_a.id)
    saver.put_writes(put(saver, "thread"), [("channel", "value")], "task")

    with tenant_transaction(tenant_b.id) as lent:
        rows = lent.execute(f"SELECT * FROM {tenant_a.schema_name}.{table}").fetchall()
        deleted = lent.execute(f"DELETE FROM {tenant_a.schema_name}.{table}").rowcount
    assert rows == []
    assert deleted == 0
    assert count(tenant_a, table, "thread") == 1

    with (
        tenant_transaction(tenant_b.id) as lent,
        pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"),
    ):
        lent.execute(
            "INSERT INTO checkpoints (tenant_id, thread_id, checkpoint_id, checkpoint)"
            " VALUES (%s, 't', 'c', '{}')",
            (tenant_a.id,),
        )


def test_prune_keeps_the_newest_and_all_it_needs(tenant_a: Tenant) -> None:
    saver = TenantPostgresSaver(tenant_a.id)
    stored = [None]
    for number in range(6):
        stored.append(put(saver, "thread", stored[-1], step=number))
        saver.put_writes(stored[-1], [("channel", number)], "task")
    other = put(saver, "other")

    saver.prune(["thread", "unknown"])

    tuples = list(saver.list(generate_config("thread")))
    assert [found.metadata["step"] for found in tuples] == [5]
    assert tuples[0].checkpoint["channel_values"]["large"] == ["thread"]
    assert tuples[0].pending_writes == [("task", "channel", 5)]
    assert tuples[-1].parent_config is None
    tables = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
    assert [count(tenant_a, table, "thread") for table in tables] == [1, 1, 1]
    assert ids(saver, "other") == [other["configurable"]["checkpoint_id"]]


def test_setup_without_tables_names_the_remedy() -> None:
    with pytest.raises(
        SessionTablesOutdated, match=r"version -1 and needs 9: run `manage.py migrate`"
    ):
        TenantPostgresSaver(uuid4()).setup()


class NewerSaver(TenantPostgresSaver):
    """A release of LangGraph with more migrations than this project has."""

    MIGRATIONS = [*PostgresSaver.MIGRATIONS, "ALTER TABLE checkpoints ADD COLUMN newer text"]


def test_tables_of_an_older_langgraph_name_the_remedy(tenant_a: Tenant) -> None:
    with pytest.raises(SessionTablesOutdated, match="version 9 and needs 10"):
        NewerSaver(tenant_a.id).setup()


COUNT = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'konstruct_app' AND datname = %s"


@pytest.mark.of_a_session
def test_many_threads_of_a_run_open_few_connections_and_close_them(
    tenant_a: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    saver, counts = TenantPostgresSaver(tenant_a.id), []
    name = connections["default"].settings_dict["NAME"]
    connections.close_all()
    with psycopg.connect(url_of("superuser", tenant_a.server), autocommit=True) as superuser:

        def count() -> int:
            row = superuser.execute(COUNT, [name]).fetchone()
            assert row is not None
            return int(row[0])

        before, enter = count(), type(connections["default"]).enter

        def counted(self: object, *args: str, **kwargs: bool) -> None:
            counts.append(count() - before)
            enter(self, *args, **kwargs)  # type: ignore[arg-type]

        monkeypatch.setattr(type(connections["default"]), "enter", counted)

        async def save_all() -> None:
            await asyncio.gather(
                *(put_test_checkpoint(saver, thread_id=f"thread-{n}") for n in range(40))
            )

        asyncio.run(save_all())
        monkeypatch.undo()
        # Postgres' process ends a moment after its connection.
        wait_until(lambda: count() == before)

    assert 1 <= max(counts) <= MAX_CONNECTIONS
    assert len(list(saver.list(None))) == 40


def test_a_connection_that_postgres_has_ended_is_replaced(tenant_a: Tenant) -> None:
    saver = TenantPostgresSaver(tenant_a.id)
    with tenant_scope(tenant_a.id):
        put(saver, "thread")
        connection = tenant_connection()
        connection.ensure_connection()
        with psycopg.connect(url_of("superuser", tenant_a.server)) as superuser:
            superuser.execute(
                "SELECT pg_terminate_backend(%s, 5000)", [connection.connection.info.backend_pid]
            )
        assert len(ids(saver, "thread")) == 1


def test_a_checkpoint_belongs_to_the_transaction_of_its_thread(tenant_a: Tenant) -> None:
    saver = TenantPostgresSaver(tenant_a.id)
    other = Thread(target=put, args=(saver, "other"))
    with tenant_scope(tenant_a.id), transaction.atomic():
        put(saver, "thread")
        other.start()
        other.join()
        assert len(ids(saver, "thread")) == 1
        transaction.set_rollback(True)
    assert ids(saver, "thread") == []
    assert len(ids(saver, "other")) == 1
