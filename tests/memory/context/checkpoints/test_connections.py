"""Connections of the saver: few, returned, replaced, and not shared with forked processes."""

import asyncio
import os
import warnings

import psycopg
import pytest
from langgraph.checkpoint.conformance.test_utils import (
    put_test_checkpoint,
)

from memory.context.checkpoints.checkpointer import TenantPostgresSaver
from memory.context.checkpoints.connections import (
    APPLICATION_NAME,
    MAX_CONNECTIONS,
)
from tenants.models import Tenant
from tests.database import url_of
from tests.memory.context.checkpoints.stored import ids, put

# The saver has its own connections, which do not see uncommitted rows of a test.
pytestmark = pytest.mark.django_db(transaction=True)


def test_many_threads_of_a_run_wait_for_a_connection_instead_of_opening_more(
    tenant_a: Tenant,
) -> None:
    saver = TenantPostgresSaver(tenant_a.id)

    async def save_all() -> None:
        await asyncio.gather(
            *(put_test_checkpoint(saver, thread_id=f"thread-{n}") for n in range(40))
        )

    asyncio.run(save_all())

    assert len(list(saver.list(None))) == 40
    with psycopg.connect(url_of("superuser", tenant_a.server)) as superuser:
        row = superuser.execute(
            "SELECT count(*) AS n FROM pg_stat_activity WHERE application_name = %s"
            " AND datname = current_database()",
            (APPLICATION_NAME,),
        ).fetchone()
    assert row is not None
    assert 1 <= row[0] <= MAX_CONNECTIONS


def test_connections_that_postgres_has_ended_are_replaced(tenant_a: Tenant) -> None:
    saver = TenantPostgresSaver(tenant_a.id)
    put(saver, "thread")

    with psycopg.connect(url_of("superuser", tenant_a.server)) as superuser:
        ended = superuser.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE application_name = %s AND datname = current_database()",
            [APPLICATION_NAME],
        )
        assert ended.fetchall() != []

    assert len(ids(saver, "thread")) == 1


def test_a_forked_process_has_connections_of_its_own(tenant_a: Tenant) -> None:
    saver = TenantPostgresSaver(tenant_a.id)
    put(saver, "thread")
    result, child_end = os.pipe()
    with warnings.catch_warnings():
        # This test forks beside the threads of the pool.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        os.write(child_end, str(len(ids(saver, "thread"))).encode())
        os._exit(0)

    os.waitpid(child, 0)

    assert os.read(result, 10) == b"1"
    os.close(result)
    os.close(child_end)
    assert len(ids(saver, "thread")) == 1
