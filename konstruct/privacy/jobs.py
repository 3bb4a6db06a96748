"""Jobs of the owner's worker, which need the owner's role, and merges of two users' histories.

Tenants take turns. A merge moves the history of a user to another user after the two are linked. It
can be killed at any point and run again. A worker that answers a message of either user waits for
one batch at most. If the message is moved while the worker writes its reply, it is answered again
(pipeline.respond.record_draft). Tables declare how their rows move: `tenants.personal_data`.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.db.models import Model
from django.db.models.functions import Now

from konstruct.orchestrator.identities.channel_identities import HISTORY_MERGES
from konstruct.orchestrator.identities.erasure_requests import ERASURES, MESSAGE_ERASURES
from konstruct.orchestrator.messages import STATES, Thread, lock_windows
from konstruct.orchestrator.models import HistoryMerge
from konstruct.privacy.erasure import erasing, messages, person
from memory.conversations import short_term, window_store
from memory.models import Message, recall
from tenants import jobs, postgres_tools, transaction
from tenants.audit import access_log, models as audit, tombstones
from tenants.context import connection, execute, fetch_column, required_tenant_id
from tenants.exceptions import reason_of
from tenants.outages import ServerDown
from tenants.personal_data import Merge, PersonalData, personal_tables
from tenants.servers import servers

logger = logging.getLogger(__name__)

# How often a merge is repeated for late messages under the old id, until it is finished.
MERGE_INTERVAL = timedelta(seconds=10)
RETENTION_INTERVAL = timedelta(hours=1)
# How long an erasure waits that another process, such as a command, carries out.
IN_PROGRESS_INTERVAL = timedelta(seconds=5)


@dataclass(frozen=True)
class OwnerJob:
    """A kind of job in the owner's worker, with its function."""

    kind: jobs.JobKind
    carry_out: Callable[[UUID], timedelta | None]
    """Runs the job with this key, in its tenant. Returns None if it is finished, or else the time
    until it runs again."""
    requests: type[Model] | None = None
    """The model of the requests, with `last_error`. The key of a job is the id of a request."""

    def run_due(self) -> int:
        """Run all due jobs of all tenants, by turns; return the number of finished ones.

        A server that is down is skipped.
        """
        finished: list[UUID] = []
        for server in servers():
            try:
                jobs.work(self.kind, server, do=partial(self._run, finished))
            except ServerDown as error:
                logger.warning("The %s of its tenants wait: %s", self.kind.name, error)
        return len(finished)

    def _run(self, finished: list[UUID], lease: jobs.Lease) -> None:
        try:
            self.kind.run(
                lease, partial(self._carry_out, finished), on_failure=partial(self._fail, lease.key)
            )
        except Exception:  # the next job is done
            logger.exception("The %s of tenant %s failed", self.kind.name, lease.tenant_id)
            connection.close()
            lease.abandon()

    def _carry_out(self, finished: list[UUID], lease: jobs.Lease) -> None:
        try:
            pause = self.carry_out(lease.key)
        except erasing.ErasureInProgress:
            pause = IN_PROGRESS_INTERVAL  # another process runs it
        if pause is not None:
            self.kind.postpone(lease.key, pause)
        elif self.kind.finish(lease.key):
            finished.append(lease.key)

    def _fail(self, key: UUID, error: Exception) -> bool:
        if self.requests is not None:
            rows = self.requests._default_manager.filter(pk=key)
            rows.update(last_error=reason_of(error))
        return self.kind.record_failure(key, error)


def _erase(key: UUID) -> None:
    request = audit.ErasureRequest.objects.filter(pk=key).first()
    if request is not None:
        erasing.carry_out(request)


def _erase_messages(key: UUID) -> None:
    request = audit.MessageErasure.objects.filter(pk=key).first()
    if request is not None:
        messages.carry_out(request)


def _merge(key: UUID) -> timedelta | None:
    merge = HistoryMerge.objects.open().filter(pk=key).first()
    return None if merge is None or merge_histories(merge) else MERGE_INTERVAL


def _retain(key: UUID) -> timedelta | None:
    messages.apply_rules()
    return RETENTION_INTERVAL if audit.RetentionRule.objects.exists() else None


ERASE: Final = OwnerJob(ERASURES, _erase, audit.ErasureRequest)
ERASE_MESSAGES: Final = OwnerJob(MESSAGE_ERASURES, _erase_messages, audit.MessageErasure)
MERGE: Final = OwnerJob(HISTORY_MERGES, _merge, HistoryMerge)
RETAIN: Final = OwnerJob(audit.RETENTION, _retain)
WRITE_TOMBSTONES: Final = OwnerJob(tombstones.TOMBSTONES, lambda _: tombstones.write_tombstones())
JOBS: Final = (MERGE, ERASE, ERASE_MESSAGES, RETAIN, WRITE_TOMBSTONES)


# --- Merges ---------------------------------------------------------------------------------------

# The number of messages, with their replies, that are moved in one transaction.
MERGE_BATCH: Final = 500
# A request that began before the link may store a message under the old id: the merge is repeated
# for this time.
MIN_AGE: Final = timedelta(seconds=60)
MERGE_ACTOR: Final = access_log.Actor(audit.ActorKind.OPERATOR, "moving", "moving")


def merge_histories(move: HistoryMerge, *, min_age: timedelta | None = None) -> bool:
    """Move all current rows, in the current tenant.

    Args:
        move: the merge.
        min_age: the age from which the merge can be finished; None: MIN_AGE.

    Returns:
        Whether it is finished: no further row can get the old id.
    """
    with postgres_tools.owner_lock(postgres_tools.MERGE, move.pk) as is_held:
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


# --- Rows of a merge ------------------------------------------------------------------------------


def _move_messages(move: HistoryMerge, agent_id: UUID) -> bool:
    """Move the next messages of one agent; return False if there are none."""
    parameters = _parameters(move, agent_id)
    with _lock_windows(move, agent_id):
        if not _lock_if_current(move):
            return False
        rows = Message.objects.filter(agent_id=agent_id, user_id=move.from_user)
        # Questions and their replies move together.
        batch = person.with_replies(rows.only("pk", "number"), MERGE_BATCH)
        if not batch:
            return False
        ids, numbers = [row.pk for row in batch], [row.number for row in batch]
        execute(messages.LOCK_EMBEDDING, {"ids": ids})
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
            access_log.record_access(
                audit.Action.LINK,
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
        "from_scope": recall.scope_number(agent_id, move.from_user),
        "to_scope": recall.scope_number(agent_id, move.user_id),
    }


def _lock_if_current(move: HistoryMerge) -> bool:
    """Lock the merge until the transaction ends; return False if it was cancelled or changed."""
    locked = HistoryMerge.objects.select_for_update().open().filter(pk=move.pk).first()
    return locked is not None and locked.user_id == move.user_id


# --- The cache after a merge ----------------------------------------------------------------------


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
