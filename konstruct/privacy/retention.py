"""Removes conversations that are older than the retention rules allow.

Facts expire by their own dates (`expires_at`). Sessions of graphs stay until they are cleared.
"""

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone
from django_redis import get_redis_connection

from konstruct.orchestrator.retention_rules import apply_due_changes
from konstruct.privacy.erasure.rows import delete_messages
from memory.conversations import short_term, thread_window
from memory.models import Message
from tenants import journal, transaction
from tenants.audit.access_log import Actor, record_access
from tenants.audit.models import Action, ActorKind, ListExport, RetentionRule
from tenants.context import connection, execute, fetch_row, required_tenant_id
from tenants.personal_data import personal_tables
from tenants.redis_keys import memory_short_key

logger = logging.getLogger(__name__)

BATCH = 1000
# The position before the first message: a time and a number.
_BEFORE_FIRST: tuple[datetime, int] = (datetime.min.replace(tzinfo=UTC), 0)
RETENTION_ACTOR = Actor(ActorKind.OPERATOR, "retention", "retention")

# A message and its reply are removed together. A message that waits for its reply stays. The order
# is that of the index on agent and time, so that Postgres sorts nothing and reads no row twice.
_OLD_MESSAGES = """
WITH asked AS (
    SELECT message.id, message.number, message.user_id, message.created_at, reply.id AS reply_id,
           reply.number AS reply_number, reply.user_id AS reply_user
    FROM memory_message AS message
    LEFT JOIN memory_message AS reply ON reply.in_reply_to_id = message.id
    WHERE message.agent_id = %(agent)s AND message.created_at < %(before)s
      AND (message.created_at, message.number) > (%(after)s, %(after_number)s)
      AND message.in_reply_to_id IS NULL
      AND coalesce(reply.created_at < %(before)s, true)
      AND NOT EXISTS (
        SELECT FROM orchestrator_pendingreply AS pending WHERE pending.message_id = message.id
      )
    ORDER BY message.created_at, message.number LIMIT %(limit)s
)
SELECT id, number, user_id, created_at, number FROM asked
UNION ALL
SELECT reply_id, reply_number, reply_user, created_at, number FROM asked WHERE reply_id IS NOT NULL
"""


def apply_rules() -> dict[UUID, int]:
    """Apply the rules of the current tenant, after due changes have taken effect.

    Returns:
        The numbers of removed messages by agent.
    """
    now = timezone.now()
    apply_due_changes(now, by=RETENTION_ACTOR)
    removed = {
        agent_id: _remove_before(agent_id, days, now - timedelta(days=days))
        for agent_id, days in _days_by_agent().items()
    }
    return {agent_id: number for agent_id, number in removed.items() if number}


def _days_by_agent() -> dict[UUID, int]:
    rules = dict(RetentionRule.objects.values_list("agent_id", "days"))
    of_one = {agent_id: days for agent_id, days in rules.items() if agent_id is not None}
    if None not in rules:
        return of_one
    agents = Message.objects.values_list("agent_id", flat=True).order_by().distinct()
    return {**dict.fromkeys(agents, rules[None]), **of_one}


def _remove_before(agent_id: UUID, days: int, before: datetime) -> int:
    if fetch_row(_OLD_MESSAGES, _values(agent_id, before, _BEFORE_FIRST, limit=1)) is not None:
        # Before the rows are removed: if the journal cannot be written, they stay.
        journal.append(
            required_tenant_id(), "retention", agent=str(agent_id), before=before.isoformat()
        )
    return remove_before(agent_id, days, before)


def remove_before(agent_id: UUID, days: int, before: datetime) -> int:
    """Remove the conversations of an agent before a time, without writing the journal.

    Returns the number of removed messages.
    """
    messages, users = 0, set[str]()
    for batch in _batches(agent_id, days, before):
        messages += len(batch)
        of_batch = {user_id for _, _, user_id in batch}
        for user_id in sorted(of_batch):
            short_term.delete_window(required_tenant_id(), agent_id, user_id)
        thread_window.delete_all_threads(required_tenant_id())
        users |= of_batch
    with transaction.atomic():
        values = {"agent": agent_id, "before": before, "users": list(users)}
        for table, data in personal_tables().items():
            if data.retention:
                of_agent = f"{data.agent} = %(agent)s"
                execute(
                    f"DELETE FROM {table} AS kept WHERE {of_agent} AND {data.retention}", values
                )
    return messages


def _batches(agent_id: UUID, days: int, before: datetime) -> Iterator[list[tuple[UUID, int, str]]]:
    """Remove messages with their replies, a batch in each transaction; yield the batches.

    The transaction also writes the access log. Windows are removed from the cache before the
    commit, so that a killed worker leaves no window with removed turns.
    """
    after = _BEFORE_FIRST
    # Ends: each batch begins after the last one, and none is newer than `before`.
    while True:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(_OLD_MESSAGES, _values(agent_id, before, after, limit=BATCH))
            found = cursor.fetchall()
            if not found:
                return
            batch = [(id, number, user_id) for id, number, user_id, *_ in found]
            after = max((created_at, number) for *_, created_at, number in found)
            users = {user_id for *_, user_id in batch}
            delete_messages(
                [
                    Message(pk=pk, number=number, agent_id=agent_id, user_id=user_id)
                    for pk, number, user_id in batch
                ]
            )
            ListExport.objects.all().remove()
            record_access(
                Action.DELETE,
                "messages past their time",
                by=RETENTION_ACTOR,
                agent_id=agent_id,
                days=days,
                said_before=before,
                messages=len(batch),
                users=len(users),
            )
            tenant_id = required_tenant_id()
            keys = [memory_short_key(tenant_id, agent_id, user_id) for user_id in users]
            get_redis_connection("default").unlink(*keys)
            thread_window.delete_all_threads(tenant_id)
        yield batch


def _values(
    agent_id: UUID, before: datetime, after: tuple[datetime, int], *, limit: int
) -> dict[str, Any]:
    """Return the parameters of _OLD_MESSAGES."""
    return {
        "agent": agent_id,
        "before": before,
        "after": after[0],
        "after_number": after[1],
        "limit": limit,
    }
