"""The migration of retry columns to the job table keeps attempts, errors and due times."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from uuid import UUID

import pytest
from django.db.migrations.executor import MigrationExecutor

from memory.models import Message
from tenants.context import connection, tenant_scope
from tenants.models import Job, Tenant

pytestmark = pytest.mark.django_db(transaction=True)

AsOwner = Callable[[], AbstractContextManager[None]]
BEFORE = [("channels", "0009_name_event_and_encrypted_token"),
          ("memory", "0024_keep_why_replies_ended")]  # fmt: skip
AFTER = [("channels", "0010_move_retries_to_jobs"), ("memory", "0025_move_retries_to_jobs")]
SETUP = """
INSERT INTO memory_pendingembedding (message_id, attempts, last_error, due_at)
VALUES ('00000000-0000-0000-0000-000000000001', 3, 'broken', '2030-01-01Z');
INSERT INTO channels_delivery (message_id, channel, address, due_at, failed_at, attempts,
                               last_error, delivered_at)
VALUES ('00000000-0000-0000-0000-000000000001', 'slack', '{}', '2031-01-01Z', NULL, 2, 'late',
        '2020-01-01Z'),
       ('00000000-0000-0000-0000-000000000002', 'slack', '{}', '2031-01-01Z', '2025-01-01Z', 9,
        'refused', NULL),
       ('00000000-0000-0000-0000-000000000003', 'slack', '{}', NULL, NULL, 0, '', '2020-01-01Z');
INSERT INTO channels_arrival (channel, workspace, key, heard, attempts, due_at, ring_at, last_error)
VALUES ('slack', 'T1', 'slack/1', '{}', 1, '2032-01-01Z', '2032-01-01Z', 'down')
"""
OLD_COLUMNS = """
SELECT 'embedding', attempts, last_error, extract(year FROM due_at)::int, false
FROM memory_pendingembedding
UNION ALL
SELECT 'delivery', attempts, last_error, extract(year FROM due_at)::int, failed_at IS NOT NULL
FROM channels_delivery
UNION ALL
SELECT 'arrival', attempts, last_error, extract(year FROM due_at)::int, failed_at IS NOT NULL
FROM channels_arrival ORDER BY 1, 2
"""
EXPECTED = [
    ("arrival", 1, "down", 2032, False),
    ("delivery", 2, "late", 2031, False),
    ("delivery", 9, "refused", 2031, True),
    ("embedding", 3, "broken", 2030, False),
]


def run(sql: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall() if cursor.description else []


def test_attempts_move_to_jobs_and_back(
    make_tenant: Callable[[], Tenant], as_owner: AsOwner
) -> None:
    tenant = make_tenant()
    with as_owner(), tenant_scope(tenant.id):
        MigrationExecutor(connection).migrate(BEFORE)
        for number in (1, 2, 3):
            Message.objects.create(
                id=UUID(int=number), agent_id=UUID(int=9), user_id="u", thread_id="t",
                channel="slack", role="user", content="?",
            )  # fmt: skip
        run(SETUP)
        MigrationExecutor(connection).migrate(AFTER)
        jobs = [
            (job.kind, job.attempts, job.last_error, job.due_at.year, job.failed_at is not None)
            for job in Job.objects.order_by("kind", "attempts")
        ]
        assert jobs == EXPECTED
        assert run("SELECT delivered_at IS NULL FROM channels_delivery ORDER BY message_id") == [
            (True,), (True,), (False,),
        ]  # fmt: skip
        MigrationExecutor(connection).migrate(BEFORE)
        idle = ("delivery", 0, "", None, False)
        assert run(OLD_COLUMNS) == sorted([*EXPECTED, idle], key=lambda row: row[:2])
