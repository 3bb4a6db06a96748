"""Pruning a thread keeps the values that its newest checkpoint needs."""

import pytest
from langgraph.checkpoint.conformance.test_utils import (
    generate_config,
)

from memory.context.checkpoints import TenantPostgresSaver
from tenants.models import Tenant
from tests.memory.context.checkpoints.stored import count, ids, put

# The saver has its own connections, which do not see uncommitted rows of a test.
pytestmark = pytest.mark.django_db(transaction=True)


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
