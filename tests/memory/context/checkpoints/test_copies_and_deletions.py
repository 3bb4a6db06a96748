"""Copying threads and deleting checkpoints with shared values."""

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.conformance.test_utils import (
    generate_config,
    generate_metadata,
)

from memory.context.checkpoints.checkpointer import TenantPostgresSaver
from memory.context.checkpoints.connections import (
    tenant_transaction,
)
from tenants.models import Tenant
from tests.memory.context.checkpoints.stored import count, ids, put

# The saver has its own connections, which do not see uncommitted rows of a test.
pytestmark = pytest.mark.django_db(transaction=True)


def test_copied_thread_is_independent(tenant_a: Tenant) -> None:
    saver = TenantPostgresSaver(tenant_a.id)
    first = put(saver, "source")
    saver.put_writes(put(saver, "source", first), [("channel", {"a": 1})], "task")

    saver.copy_thread("source", "target")

    tables = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
    assert [count(tenant_a, table, "target") for table in tables] == [2, 2, 1]
    saver.delete_thread("source")
    copied = saver.get_tuple(generate_config("target"))
    assert copied is not None
    assert copied.checkpoint["channel_values"] == {"large": ["source"], "small": 1}
    assert copied.pending_writes == [("task", "channel", {"a": 1})]
    assert [count(tenant_a, table, "source") for table in tables] == [0, 0, 0]


def test_deleting_a_run_keeps_values_that_others_still_use(tenant_a: Tenant) -> None:
    saver = TenantPostgresSaver(tenant_a.id)
    first = put(saver, "thread", run_id="one")
    stored = saver.get_tuple(first)
    assert stored is not None
    # The second checkpoint reuses the large value of the first one, as in LangGraph.
    heir = {**empty_checkpoint(), "channel_values": {}}
    heir["channel_versions"] = stored.checkpoint["channel_versions"]
    second = saver.put(first, heir, generate_metadata(run_id="two"), {})

    saver.delete_for_runs(["one"])

    kept = saver.get_tuple(second)
    assert kept is not None
    assert kept.checkpoint["channel_values"] == {"large": ["thread"]}
    assert kept.parent_config is None
    saver.delete_for_runs(["two"])
    assert count(tenant_a, "checkpoint_blobs", "thread") == 0


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


def test_delete_for_runs_refuses_a_lone_text(tenant_a: Tenant) -> None:
    with pytest.raises(TypeError, match="run_ids='run' is one id"):
        TenantPostgresSaver(tenant_a.id).delete_for_runs("run")


def test_runs_are_found_by_index_under_the_policy(tenant_a: Tenant) -> None:
    with tenant_transaction(tenant_a.id) as lent:
        lent.execute(
            "INSERT INTO checkpoints (thread_id, checkpoint_id, checkpoint, metadata)"
            " SELECT 't' || n, 'c', '{}', jsonb_build_object('run_id', 'run' || n)"
            " FROM generate_series(1, 5000) AS n"
        )
        plan = lent.execute(
            "EXPLAIN SELECT 1 FROM checkpoints WHERE run_id = ANY(%s)", (["run7"],)
        ).fetchall()

    assert "checkpoints_run_id_idx" in str(plan)
