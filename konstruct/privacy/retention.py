"""Removes conversations that are older than the retention rules allow.

Facts expire by their own dates (`expires_at`). Sessions of graphs stay until they are cleared.
"""

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils import timezone

from konstruct.orchestrator.retention_rules import apply_due_changes
from konstruct.privacy.erasure.messages import delete_messages
from memory.conversations import short_term, window_store
from memory.models import Message
from tenants import journal, transaction
from tenants.audit.access_log import Actor, record_access
from tenants.audit.models import Action, ActorKind, ListExport, RetentionRule
from tenants.context import execute, required_tenant_id
from tenants.personal_data import personal_tables

logger = logging.getLogger(__name__)

BATCH = 1000
RETENTION_ACTOR = Actor(ActorKind.OPERATOR, "retention", "retention")


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
    if _old_messages(agent_id, before).exists():
        # Before the rows are removed: if the journal cannot be written, they stay.
        journal.append(
            required_tenant_id(), "retention", agent=str(agent_id), before=before.isoformat()
        )
    return remove_before(agent_id, days, before)


def remove_before(agent_id: UUID, days: int, before: datetime) -> int:
    """Remove the conversations of an agent before a time, without writing the journal.

    A transaction removes a batch of messages with their replies, and writes the access log. Windows
    are removed from the cache before the commit, so that a killed worker leaves no window with
    removed turns; and after it, because a reader may have written them again.

    Returns the number of removed messages.
    """
    messages, users = 0, set[str]()
    rows = _old_messages(agent_id, before)
    # Ends: each batch is removed, and begins where the last one ended.
    while asked := list(rows[:BATCH]):
        rows = _old_messages(agent_id, before).filter(created_at__gte=asked[-1].created_at)
        batch = [*asked, *(message.reply for message in asked if hasattr(message, "reply"))]
        of_batch = {message.user_id for message in batch}
        with transaction.atomic():
            delete_messages(batch)
            ListExport.objects.all().remove()
            record_access(
                Action.DELETE,
                "messages past their time",
                by=RETENTION_ACTOR,
                agent_id=agent_id,
                days=days,
                said_before=before,
                messages=len(batch),
                users=len(of_batch),
            )
            _delete_windows(agent_id, of_batch)
        _delete_windows(agent_id, of_batch)
        messages += len(batch)
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


def _delete_windows(agent_id: UUID, users: Iterable[str]) -> None:
    for user_id in sorted(users):
        short_term.delete_window(required_tenant_id(), agent_id, user_id)
    window_store.delete_all_threads(required_tenant_id())


def _old_messages(agent_id: UUID, before: datetime) -> QuerySet[Message]:
    """Return messages with their replies, which are removed together, in the order of the index.

    A message that waits for its reply stays, and one with a reply that is not old.
    """
    has_no_new_reply = Q(reply__isnull=True) | Q(reply__created_at__lt=before)
    rows = Message.objects.filter(
        has_no_new_reply,
        agent_id=agent_id,
        created_at__lt=before,
        in_reply_to__isnull=True,
        pending_reply__isnull=True,
    )
    rows = rows.select_related("reply").defer("content", "reply__content")
    return rows.order_by("created_at", "number")
