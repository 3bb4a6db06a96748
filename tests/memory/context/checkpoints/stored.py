"""Store checkpoints, and read the rows of a thread."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.conformance.test_utils import generate_config, generate_metadata
from langgraph.checkpoint.postgres import PostgresSaver
from psycopg import Cursor
from psycopg.rows import DictRow

from memory.context.checkpoints import TenantPostgresSaver
from tenants.models import Tenant


@contextmanager
def tenant_transaction(tenant_id: UUID) -> Iterator[Cursor[DictRow]]:
    """Run the block in a transaction of a saver."""
    with TenantPostgresSaver(tenant_id)._cursor() as cursor:
        yield cursor


def put(saver: PostgresSaver, thread: str, parent: Any = None, **metadata: Any) -> Any:
    """Store a checkpoint with one large value and one small one, after `parent`."""
    checkpoint = empty_checkpoint()
    version = saver.get_next_version(None, None)
    checkpoint["channel_values"] = {"large": [thread], "small": 1}
    checkpoint["channel_versions"] = {"large": version, "small": version}
    config = generate_config(thread)
    if parent is not None:
        config["configurable"]["checkpoint_id"] = parent["configurable"]["checkpoint_id"]
    return saver.put(
        config, checkpoint, generate_metadata(**metadata), checkpoint["channel_versions"]
    )


def count(tenant: Tenant, table: str, thread: str) -> int:
    with tenant_transaction(tenant.id) as lent:
        row = lent.execute(
            f"SELECT count(*) AS n FROM {table} WHERE thread_id = %s", (thread,)
        ).fetchone()
    assert row is not None
    return row["n"]


def ids(saver: PostgresSaver, thread: str) -> list[str]:
    return [found.checkpoint["id"] for found in saver.list(generate_config(thread))]
