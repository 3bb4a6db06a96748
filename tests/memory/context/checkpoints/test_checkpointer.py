"""LangGraph's saver in a tenant: its conformance suite, and further tests."""

import asyncio
from collections.abc import AsyncGenerator
from importlib import import_module
from typing import Any

import psycopg
import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import Capability

from memory.context.checkpoints import TenantPostgresSaver
from tenants.models import Tenant
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
