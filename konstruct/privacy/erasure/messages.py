"""Erases one message or a conversation. Other data of the user stays.

With a message, its reply, copies of both for other agents, and all derived rows are removed:
vectors, words of the index, facts that only it supports, traces of recalls. An erasure can be
killed at any point and run again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Q
from django.db.models.expressions import RawSQL
from django.db.models.functions import Now
from django_redis import get_redis_connection

from konstruct.api.models import IdempotencyRecord
from konstruct.consistency.indexing import forget_words
from konstruct.orchestrator.messages import Thread, locked_windows
from konstruct.orchestrator.models import Escalation, PendingReply
from konstruct.orchestrator.replies import queue
from konstruct.privacy.erasure.progress import add_rows, now
from konstruct.privacy.erasure.rows import delete_messages, delete_rows_of_messages
from konstruct.privacy.erasure.traces import (
    facts_of,
    forget_in_new_replies,
    forget_in_traces,
    quotes_of,
)
from memory.conversations import short_term, thread_window, window_store
from memory.conversations.copies import COPY_PREFIX, copy_id
from memory.models import ConversationItem, MemoryAttribute, MemoryEntry, Message
from memory.scopes import scope_number
from tenants import journal
from tenants.audit.models import MessageErasure
from tenants.context import connection, required_tenant_id
from tenants.redis_keys import idempotency_key, memory_short_key, partial_reply_key
from tenants.schemas.old_copies import drop_old_copies

# Approximate number of messages removed in one transaction: a message and its reply go together.
BATCH: Final = 500
IN_CACHE: Final = "in_cache"
REPLY_ERASED: Final = "Its reply was erased."
Tables = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Batch:
    """Messages that are removed in one transaction."""

    messages: Sequence[Message]

    @property
    def ids(self) -> list[UUID]:
        """Ids of the messages."""
        return [message.pk for message in self.messages]

    @property
    def threads(self) -> set[Thread]:
        """Threads of the messages."""
        return {Thread(each.agent_id, each.user_id, each.thread_id) for each in self.messages}

    @property
    def users(self) -> list[tuple[UUID, str]]:
        """Pairs of agent and user, sorted: all processes lock them in one order."""
        return sorted({(each.agent_id, each.user_id) for each in self.messages})

    def in_cache(self) -> dict[str, Any]:
        """Return the users, threads and messages of which the cache may have copies."""
        return {
            "users": [[str(agent_id), user_id] for agent_id, user_id in self.users],
            "threads": sorted({thread.thread_id for thread in self.threads}),
            "ids": [str(pk) for pk in self.ids],
        }


def carry_out(request: MessageErasure, *, is_replayed: bool = False) -> MessageErasure:
    """Erase the messages of the request in the current tenant.

    Args:
        is_replayed: the erasure is in the journal already, because a backup was restored.

    Returns:
        The request, with its receipt.

    Raises:
        JournalUnavailable: the messages are removed, and the journal of erasures cannot be written.
    """
    if request.done_at is not None:
        return request
    drop_old_copies(required_tenant_id())
    receipt = request.receipt or {"began_at": now(), "tables": {}, "quoted_in": []}
    # A killed process may have left copies of removed messages in the cache.
    _forget_in_cache(receipt.pop(IN_CACHE, None))
    for batch in _batches(request):
        _take_from_workers(batch)
        receipt["quoted_in"] += _quotes(batch, request)
        with _windows(batch):
            facts = _facts_of(batch)
            began_at = _remove(batch, request, receipt["tables"], facts)
            request.receipt = receipt | {IN_CACHE: batch.in_cache()}
            request.save(update_fields=["receipt"])
        _forget_in_cache(batch.in_cache())
        changed = forget_in_new_replies(batch.messages, began_at, facts=facts)
        for table, count in changed.items():
            add_rows(receipt["tables"], table, None, count, "changed")
    if request.message_id is None:
        _remove_items(request, receipt["tables"])
    if not is_replayed:
        write_journal(request)
    request.receipt = receipt | {
        "found": bool(receipt["tables"]),
        "ended_at": now(),
        "journal": "written" if journal.is_kept() else "none",
    }
    request.last_error, request.done_at = "", Now()
    request.save(update_fields=["receipt", "last_error", "done_at"])
    request.refresh_from_db()
    return request


def write_journal(request: MessageErasure) -> None:
    """Write the message or the conversation into the journal, by its digest.

    Raises:
        JournalUnavailable: the journal of erasures cannot be written.
    """
    tenant_id = required_tenant_id()
    names: tuple[str, ...] = (
        "conversation",
        str(request.agent_id),
        request.user_id,
        request.thread_id,
    )
    if request.message_id is not None:
        names = ("message", str(request.message_id))
    digest = journal.digest(tenant_id, *names)
    journal.append(tenant_id, names[0], request=str(request.pk), erased=digest)


def _batches(request: MessageErasure) -> Iterator[Batch]:
    """Yield the messages in batches; the caller removes each before it requests the next one."""
    if request.message_id is not None:
        named = Message.objects.filter(pk=request.message_id)
    else:
        named = Message.objects.filter(
            agent_id=request.agent_id, user_id=request.user_id, thread_id=request.thread_id
        ).order_by("created_at", "number")
    copies = Message.objects.filter(external_id__startswith=COPY_PREFIX).order_by()
    agents = list(copies.values_list("agent_id", flat=True).distinct())
    while ids := list(named.values_list("pk", flat=True)[:BATCH]):
        with_replies = Message.objects.filter(Q(pk__in=ids) | Q(in_reply_to__in=ids))
        own = list(with_replies.values_list("pk", flat=True))
        copied = [copy_id(pk, agent_id) for pk in own for agent_id in agents]
        yield Batch(list(Message.objects.filter(pk__in=_one_parameter(own + copied))))


def _one_parameter(values: Iterable[Any], kind: str = "uuid") -> RawSQL:
    """Return values for `__in` as one array: a statement has at most 65,535 parameters."""
    return RawSQL(f"SELECT unnest(%s::{kind}[])", [list(values)])  # noqa: S611


def _take_from_workers(batch: Batch) -> None:
    """Delete the jobs of their replies: workers lose the replies that they are writing."""
    PendingReply.objects.filter(message__in=_one_parameter(batch.ids)).delete()


def _quotes(batch: Batch, request: MessageErasure) -> list[str]:
    """Return ids of other messages that quote one of these."""
    named = [message for message in batch.messages if message.pk == request.message_id]
    gone = {str(pk) for pk in batch.ids}
    return [pk for message in named for pk in quotes_of(message) if pk not in gone]


def _remove(
    batch: Batch, request: MessageErasure, tables: Tables, facts: Sequence[MemoryEntry]
) -> datetime:
    """Remove rows of all tables, referencing ones first.

    Returns:
        The start of the transaction, by the clock of Postgres.
    """

    def add(table: str, keys: Iterable[str] | None, count: int, done: str) -> None:
        add_rows(tables, table, keys, count, done)

    unanswered = _left_without_reply(batch)
    with connection.cursor() as cursor:
        cursor.execute("SELECT now()")
        began_at: datetime = cursor.fetchone()[0]
        delete_rows_of_messages(cursor, batch.ids, add)
        for table, count in forget_in_traces(batch.messages, facts=facts).items():
            add(table, None, count, "changed")
        keys = [str(fact.pk) for fact in facts]
        # Facts that only these messages support are removed already.
        named = MemoryEntry.objects.filter(pk__in=keys)
        named_keys = [str(pk) for pk in named.values_list("pk", flat=True)]
        named.delete()
        add("memory_memoryentry", named_keys, len(named_keys), "removed")
        made, _ = IdempotencyRecord.objects.filter(
            made__in=_one_parameter(map(str, [*batch.ids, *keys]))
        ).delete()
        add("api_creation", None, made, "removed")
        add("orchestrator_escalation", None, _forget_in_escalations(batch, request), "changed")
        numbers = [message.number for message in batch.messages]
        scopes = [scope_number(*pair) for pair in batch.users]
        words = forget_words(numbers, scopes=scopes)
        for table, count in zip(("memory_posting", "memory_indexedmessage"), words, strict=True):
            add(table, None, count, "removed")
        delete_messages(cursor, batch.ids, add)
    for message in unanswered:
        queue.enqueue(message)
        queue.REPLIES.give_up(message.pk, code=queue.CLOSED, reason=REPLY_ERASED)
    return began_at


def _remove_items(request: MessageErasure, tables: Tables) -> None:
    """Remove items of frameworks that belong to no message, such as calls of tools."""
    items = ConversationItem.objects.filter(
        agent_id=request.agent_id, user_id=request.user_id, thread_id=request.thread_id
    )
    if count := items._raw_delete(items.db):
        add_rows(tables, ConversationItem._meta.db_table, None, count, "removed")


def _facts_of(batch: Batch) -> list[MemoryEntry]:
    """Return the facts that are erased with the batch, with all their versions.

    Their evidence is only in its messages, or their metadata has the `message_id` of one.
    """
    naming = MemoryAttribute.objects.filter(
        key="message_id", kind="text", text__in=_one_parameter(map(str, batch.ids), "text")
    )
    named: set[UUID] = set()
    for memory_id, version_of in naming.values_list("memory_id", "memory__version_of"):
        named.add(version_of or memory_id)
    of_users = Q(user_id__in={user_id for _, user_id in batch.users}) | Q(user_id__isnull=True)
    versions = MemoryEntry.objects.filter(of_users, Q(pk__in=named) | Q(version_of__in=named))
    return [*facts_of(batch.messages), *versions.defer("embedding")]


def _left_without_reply(batch: Batch) -> list[Message]:
    """Return messages that lose their reply: they must not be answered again."""
    asked = {
        message.in_reply_to_id
        for message in batch.messages
        if message.in_reply_to_id is not None and message.in_reply_to_id not in batch.ids
    }
    return list(Message.objects.filter(pk__in=asked, pending_reply__isnull=True))


def _forget_in_escalations(batch: Batch, request: MessageErasure) -> int:
    about = Escalation.objects.filter(message_id__in=_one_parameter(batch.ids))
    if request.message_id is None:
        about |= Escalation.objects.filter(
            agent_id=request.agent_id, user_id=request.user_id, thread_id=request.thread_id
        )
    return about.exclude(reason="", note="").update(reason="", note="", message_id=None)


def _forget_in_cache(left: Mapping[str, Any] | None) -> None:
    """Remove copies of removed messages from the cache: see Batch.in_cache."""
    if left is None:
        return
    tenant_id = required_tenant_id()
    for agent_id, user_id in left["users"]:
        shorten_window(UUID(agent_id), user_id)
    thread_window.forget_threads(tenant_id, left["threads"])
    keys = [
        key(tenant_id, pk) for pk in left["ids"] for key in (idempotency_key, partial_reply_key)
    ]
    get_redis_connection("default").unlink(*keys)


def shorten_window(agent_id: UUID, user_id: str) -> None:
    """Rebuild the window from the transcript, if the cache has one."""
    tenant_id = required_tenant_id()
    with locked_windows([Thread(agent_id, user_id, "")]):
        if window_store.read(memory_short_key(tenant_id, agent_id, user_id)):
            short_term.rebuild_window(tenant_id, agent_id, user_id)


def _windows(batch: Batch) -> AbstractContextManager[None]:
    """Lock the windows in a transaction, so that no reply is written meanwhile."""
    return locked_windows([Thread(agent_id, user_id, "") for agent_id, user_id in batch.users])
