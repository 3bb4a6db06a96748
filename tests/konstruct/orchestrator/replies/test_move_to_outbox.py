"""What waited in the table of a tenant's own moves to the outbox, and an older process goes on."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db.migrations.executor import MigrationExecutor

from konstruct.orchestrator.models import PendingReply
from konstruct.orchestrator.replies import outbox
from memory.models import Message
from tenants.context import connection, tenant_scope
from tenants.models import OutboxEntry, Tenant
from tests.outbox import claimed

pytestmark = pytest.mark.django_db(transaction=True)

AsOwner = Callable[[], AbstractContextManager[None]]
BEFORE = ("orchestrator", "0009_name_sweep_at")
AFTER = ("orchestrator", "0010_move_replies_to_the_outbox")
# As the version before writes it; its rows have no kind.
PUT = "INSERT INTO orchestrator_pendingreply (message_id, ring_at) VALUES (%s, now())"
WAITING = """
SELECT message_id, attempts, error_code, last_error, held_for, due_at, created_at, failed_at
FROM orchestrator_pendingreply ORDER BY message_id
"""


def run(sql: str, *values: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return cursor.fetchall() if cursor.description else [cursor.rowcount]


def relations(tenant: Tenant) -> list[Any]:
    """Columns, indexes, constraints, policies and grants of the tenant's own table, by name."""
    table = f"{tenant.schema_name}.orchestrator_pendingreply"
    return [
        run(f"SELECT {what} WHERE {column} = to_regclass(%s) ORDER BY 1", table)
        for what, column in (
            ("attname, atttypid, attnotnull FROM pg_attribute", "attnum > 0 AND attrelid"),
            ("pg_get_indexdef(indexrelid) FROM pg_index", "indrelid"),
            (
                "conname::text, pg_get_constraintdef(oid) FROM pg_constraint",
                "conname <> 'tenant_of_schema' AND conrelid",
            ),
            ("polname::text, pg_get_expr(polqual, polrelid) FROM pg_policy", "polrelid"),
            ("relrowsecurity, relforcerowsecurity, relacl::text FROM pg_class", "oid"),
        )
    ]


@pytest.fixture
def behind(make_tenant: Callable[[], Tenant], as_owner: AsOwner) -> Iterator[Tenant]:
    """A tenant whose replies wait in a table of its own: waiting, given up, held for either."""
    tenant = make_tenant()
    with as_owner(), tenant_scope(tenant.id):
        MigrationExecutor(connection).migrate([BEFORE])
        for number, held_for in enumerate(("", "", "person", "consent")):
            message = Message.objects.create(
                agent_id=uuid4(), user_id="u", thread_id="t", channel="rest", role="user",
                content=f"{number}", id=UUID(int=number + 1),
            )  # fmt: skip
            run(PUT, message.id)
            run(
                "UPDATE orchestrator_pendingreply SET held_for = %s, attempts = %s,"
                " failed_at = CASE WHEN %s THEN now() END, error_code = %s WHERE message_id = %s",
                held_for, number, number == 1, f"code{number}", message.id,
            )  # fmt: skip
        yield tenant


def test_what_waits_moves_forwards_and_back(behind: Tenant, as_owner: AsOwner) -> None:
    with tenant_scope(behind.id):
        table, waiting = relations(behind), run(WAITING)
        assert len(waiting) == 4
        MigrationExecutor(connection).migrate([AFTER])
        assert run(WAITING) == waiting
        assert run("SELECT to_regclass(%s)", f"{behind.schema_name}.orchestrator_pendingreply") == [
            (None,)
        ]
        kept = OutboxEntry.objects.order_by("key").values_list("kind", "key", "sweep_at")
        assert [(kind, key.int, sweep_at is None) for kind, key, sweep_at in kept] == [
            ("reply", 1, False),
            ("reply", 2, False),
            ("reply", 3, True),
            ("reply", 4, False),
        ]
        MigrationExecutor(connection).migrate([BEFORE])
        assert run(WAITING) == waiting
        assert not OutboxEntry.objects.exists()
        assert relations(behind) == table
        MigrationExecutor(connection).migrate([AFTER])
    assert {key.int for key in claimed(outbox.REPLIES)} == {1, 4}


def test_a_process_of_the_version_before_goes_on(tenant_a: Tenant, tenant_b: Tenant) -> None:
    """It accepts, begins, notes failures and removes what waits, under the names that it knows."""
    with tenant_scope(tenant_a.id):
        message = Message.objects.create(
            agent_id=uuid4(), user_id="u", thread_id="t", channel="rest", role="user", content="?"
        )
        run(PUT, message.id)
        assert PendingReply.objects.get().message == message
        assert OutboxEntry.objects.get().kind == "reply"
        (row,) = run(
            "SELECT ring_at, held_for FROM orchestrator_pendingreply"
            " WHERE ring_at <= now() AND failed_at IS NULL FOR UPDATE SKIP LOCKED"
        )
        assert row == (OutboxEntry.objects.get().sweep_at, "")
    assert claimed(outbox.REPLIES) == [message.id]
    change = (
        "UPDATE orchestrator_pendingreply SET attempts = attempts + 1, begun_at = now(),"
        " ring_at = now() + interval '1 minute' WHERE message_id = %s"
    )
    with tenant_scope(tenant_b.id):
        assert run("SELECT count(*) FROM orchestrator_pendingreply") == [(0,)]
        assert run(change, message.id) == [0]
    with tenant_scope(tenant_a.id):
        assert run(change, message.id) == [1]
        assert OutboxEntry.objects.get().attempts == 1
        assert run("DELETE FROM orchestrator_pendingreply WHERE message_id = %s", message.id) == [1]
        assert not OutboxEntry.objects.exists()
