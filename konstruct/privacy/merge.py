"""Moves the history of a user to another user after the two are linked. Runs as the owner.

It can be killed at any point and run again. A worker that answers a message of either user waits
for one batch at most. If the message is moved while the worker writes its reply, it is answered
again (pipeline.respond.record_draft). Tables declare how their rows move: `tenants.personal_data`.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models.functions import Now

from konstruct.orchestrator.messages import STATES, Thread, lock_windows
from konstruct.orchestrator.models import HistoryMerge
from konstruct.privacy.erasure.messages import LOCK_EMBEDDING
from konstruct.privacy.erasure.person import with_replies
from memory.conversations import short_term, window_store
from memory.models import Message
from memory.models.recall import scope_number
from tenants import transaction
from tenants.audit.access_log import Actor, record_access
from tenants.audit.models import Action, ActorKind
from tenants.context import connection, execute, fetch_column, required_tenant_id
from tenants.personal_data import Merge, PersonalData, personal_tables
from tenants.postgres_tools import MERGE, owner_lock

logger = logging.getLogger(__name__)

# The number of messages, with their replies, that are moved in one transaction.
BATCH: Final = 500
# A request that began before the link may store a message under the old id: the merge is repeated
# for this time.
MIN_AGE: Final = timedelta(seconds=60)
MERGE_ACTOR: Final = Actor(ActorKind.OPERATOR, "moving", "moving")


def carry_out(move: HistoryMerge, *, min_age: timedelta | None = None) -> bool:
    """Move all current rows, in the current tenant.

    Args:
        move: the merge.
        min_age: the age from which the merge can be finished; None: MIN_AGE.

    Returns:
        Whether it is finished: no further row can get the old id.
    """
    with owner_lock(MERGE, move.pk) as is_held:
        if not is_held:
            return False
        agents = " UNION ".join(
            f"SELECT {data.agent} FROM {table}"
            f" WHERE {data.subject} = %(from)s AND {data.agent} IS NOT NULL"
            for table, data in personal_tables().items()
            if data.subject and data.agent and not data.merge.unchanged
        )
        for agent_id in sorted(fetch_column(agents, {"from": move.from_user})):
            # Ends: each batch moves messages from the old id, which gets no further ones.
            while _move_messages(move, agent_id):
                pass
            with _lock_windows(move, agent_id):
                if _lock_if_current(move):
                    _run_statements(move, _for_agent, _parameters(move, agent_id))
        _move_rows_of_user(move)
        _delete_windows(move)
        age = MIN_AGE if min_age is None else min_age
        old_enough = HistoryMerge.objects.open().filter(pk=move.pk, created_at__lte=Now() - age)
        return bool(old_enough.update(done_at=Now(), last_error=""))


# --- Rows -----------------------------------------------------------------------------------------


def _move_messages(move: HistoryMerge, agent_id: UUID) -> bool:
    """Move the next messages of one agent; return False if there are none."""
    parameters = _parameters(move, agent_id)
    with _lock_windows(move, agent_id):
        if not _lock_if_current(move):
            return False
        rows = Message.objects.filter(agent_id=agent_id, user_id=move.from_user)
        # Questions and their replies move together.
        batch = with_replies(rows.only("pk", "number"), BATCH)
        if not batch:
            return False
        ids, numbers = [row.pk for row in batch], [row.number for row in batch]
        execute(LOCK_EMBEDDING, {"ids": ids})
        _write_thread_states(move)
        _run_statements(move, _for_messages, {**parameters, "ids": ids, "numbers": numbers})
    return True


def _move_rows_of_user(move: HistoryMerge) -> None:
    with transaction.atomic():
        if not _lock_if_current(move):
            return
        _write_thread_states(move)
        moved = _run_statements(
            move, _for_user, {"from": move.from_user, "to": move.user_id, "by": str(move)}
        )
        if moved:
            record_access(
                Action.LINK,
                "earlier messages",
                by=MERGE_ACTOR,
                subject_id=move.pk,
                user_id=move.user_id,
                people=(move.from_user, move.user_id),
            )


def _for_messages(table: str, data: PersonalData) -> Iterable[str]:
    if data.message and data.subject and data.merge == Merge():
        yield f"UPDATE {table} SET {data.subject} = %(to)s WHERE {data.message} = ANY(%(ids)s)"
    elif data.merge.for_messages:
        yield data.merge.for_messages


def _for_agent(table: str, data: PersonalData) -> Iterable[str]:
    return filter(None, [data.merge.for_agent])


def _for_user(table: str, data: PersonalData) -> Iterable[str]:
    if data.subject and data.merge == Merge():
        yield f"UPDATE {table} SET {data.subject} = %(to)s WHERE {data.subject} = %(from)s"
    yield from data.merge.for_user


def _run_statements(
    move: HistoryMerge,
    statements_of: Callable[[str, PersonalData], Iterable[str]],
    parameters: dict[str, Any],
) -> Counter[str]:
    """Run the statements of all tables; store and return the numbers of moved rows by table."""
    moved: Counter[str] = Counter()
    with connection.cursor() as cursor:
        for table, data in personal_tables().items():
            for statement in statements_of(table, data):
                cursor.execute(statement, parameters)
                if cursor.rowcount:
                    moved[table] += cursor.rowcount
    if moved:
        locked = HistoryMerge.objects.get(pk=move.pk)
        locked.moved = dict(Counter(locked.moved) + moved)
        locked.save(update_fields=["moved"])
    return moved


def _parameters(move: HistoryMerge, agent_id: UUID) -> dict[str, Any]:
    return {
        "agent": agent_id,
        "from": move.from_user,
        "to": move.user_id,
        "from_scope": scope_number(agent_id, move.from_user),
        "to_scope": scope_number(agent_id, move.user_id),
    }


def _lock_if_current(move: HistoryMerge) -> bool:
    """Lock the merge until the transaction ends; return False if it was cancelled or changed."""
    locked = HistoryMerge.objects.select_for_update().open().filter(pk=move.pk).first()
    return locked is not None and locked.user_id == move.user_id


# --- The cache ------------------------------------------------------------------------------------


def _write_thread_states(move: HistoryMerge) -> None:
    """Write the cached states of threads with escalations and tool calls that move, on commit."""
    for state in STATES:
        threads = state.open_rows().filter(user_id=move.from_user).order_by()
        for thread_id in threads.values_list("thread_id", flat=True).distinct():
            state.write_on_commit(required_tenant_id(), thread_id)


def _delete_windows(move: HistoryMerge) -> None:
    """Delete the cached windows of both users: readers write them from the transcript."""
    tenant_id = required_tenant_id()
    agents = Message.objects.filter(user_id=move.user_id).values_list("agent_id", flat=True)
    for agent_id in list(agents.order_by().distinct()):
        for user_id in (move.from_user, move.user_id):
            short_term.delete_window(tenant_id, agent_id, user_id)
    window_store.delete_all_threads(tenant_id)


# --- Locks ----------------------------------------------------------------------------------------


def _lock_windows(move: HistoryMerge, agent_id: UUID) -> AbstractContextManager[None]:
    """Lock the windows of both users in a transaction, so that no reply is written meanwhile."""
    return lock_windows([Thread(agent_id, user, "") for user in (move.from_user, move.user_id)])
