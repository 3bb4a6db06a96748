"""Connections of the saver: the thread's own, or few that are closed after each operation."""

import asyncio
from threading import Thread

import psycopg
import pytest
from django.db import connections
from langgraph.checkpoint.conformance.test_utils import put_test_checkpoint

from memory.context.checkpoints import MAX_CONNECTIONS, TenantPostgresSaver
from tenants import transaction
from tenants.context import tenant_connection, tenant_scope
from tenants.models import Tenant
from tests.database import url_of
from tests.memory.context.checkpoints.stored import ids, put

# Other threads do not see uncommitted rows of a test.
pytestmark = pytest.mark.django_db(transaction=True)
COUNT = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'konstruct_app' AND datname = %s"


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
        assert count() == before

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
