"""Erases one message or a conversation. Other data of the user stays.

It also removes the reply, copies of both for other agents, and all derived rows: vectors, words of
the index, facts without other evidence, traces of recalls. It can be killed at any point, and
continues when run again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.db.models import Q
from django.db.models.expressions import RawSQL
from django.db.models.functions import Now
from django_redis import get_redis_connection

from konstruct.api.models import IdempotencyRecord
from konstruct.orchestrator import replies
from konstruct.orchestrator.messages import Thread, lock_windows
from konstruct.orchestrator.models import Escalation, PendingReply
from konstruct.privacy.erasure.progress import add_rows, now
from konstruct.privacy.erasure.prompts import erase_from_prompts
from konstruct.privacy.erasure.redaction import (
    facts_deleted_with,
    quoting_messages,
    redact_copies,
    redact_new_copies,
)
from konstruct.privacy.erasure.rows import delete_messages, delete_rows_of_messages
from memory.conf import HANDOVER_CHANNEL
from memory.conversations import short_term, thread_window
from memory.conversations.transcript import copy_id
from memory.indexing.service import remove_from_word_index
from memory.models import ConversationItem, MemoryAttribute, MemoryEntry, Message
from memory.scopes import scope_number
from tenants import journal
from tenants.audit.models import ListExport, MessageErasure
from tenants.context import connection, fetch_value, required_tenant_id
from tenants.redis_keys import idempotency_key, partial_reply_key
from tenants.schemas.left_overs import drop_left_overs

# Approximate number of messages that are removed in one transaction, with their replies.
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
        return {
            Thread(message.agent_id, message.user_id, message.thread_id)
            for message in self.messages
        }

    @property
    def users(self) -> list[tuple[UUID, str]]:
        """Pairs of agent and user, sorted: all processes lock them in one order."""
        return sorted({(message.agent_id, message.user_id) for message in self.messages})

    def in_cache(self) -> dict[str, Any]:
        """Return the users, threads and messages that may be in the cache, as JSON."""
        return {
            "users": [[str(agent_id), user_id] for agent_id, user_id in self.users],
            "threads": sorted({thread.thread_id for thread in self.threads}),
            "ids": [str(pk) for pk in self.ids],
        }


def carry_out(request: MessageErasure, *, is_replayed: bool = False) -> MessageErasure:
    """Erase the messages of the request in the current tenant.

    Args:
        request: the request.
        is_replayed: whether the erasure is in the journal already, because a backup was restored.

    Returns:
        The request, with its receipt.

    Raises:
        JournalUnavailable: the messages are removed, and the journal of erasures cannot be written.
    """
    if request.done_at is not None:
        return request
    drop_left_overs(required_tenant_id())
    receipt = request.receipt or {"began_at": now(), "tables": {}, "quoted_in": []}
    # A process that was killed may have left removed messages in the cache.
    _delete_from_cache(receipt.pop(IN_CACHE, None))
    for batch in _batches(request):
        # Workers lose their leases of the replies.
        PendingReply.objects.filter(message__in=_one_parameter(batch.ids)).delete()
        receipt["quoted_in"] += _quoting_messages(batch, request)
        # So that no reply is written meanwhile.
        with lock_windows([Thread(agent_id, user_id, "") for agent_id, user_id in batch.users]):
            facts = _facts_of(batch)
            began_at = _remove(batch, request, receipt["tables"], facts)
            request.receipt = receipt | {IN_CACHE: batch.in_cache()}
            request.save(update_fields=["receipt"])
        _delete_from_cache(batch.in_cache())
        changed = redact_new_copies(batch.messages, began_at, facts=facts)
        for table, count in changed.items():
            add_rows(receipt["tables"], table, None, count, "changed")
    if request.message_id is None:
        # Items of frameworks that belong to no message, such as calls of tools.
        items = ConversationItem.objects.filter(
            agent_id=request.agent_id, user_id=request.user_id, thread_id=request.thread_id
        )
        if count := items._raw_delete(items.db):
            table = ConversationItem._meta.db_table
            add_rows(receipt["tables"], table, None, count, "removed")
    ListExport.objects.all().remove()
    if not is_replayed:
        write_journal(request)
    request.receipt = receipt | {
        "found": bool(receipt["tables"]),
        "ended_at": now(),
        "journal": "written" if journal.is_enabled() else "none",
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
    """Yield the messages in batches. The caller removes a batch before it requests the next one."""
    if request.message_id is not None:
        requested = Message.objects.filter(pk=request.message_id)
    else:
        requested = Message.objects.filter(
            agent_id=request.agent_id, user_id=request.user_id, thread_id=request.thread_id
        ).order_by("created_at", "number")
    copies = Message.objects.filter(channel=HANDOVER_CHANNEL).order_by()
    agents = list(copies.values_list("agent_id", flat=True).distinct())
    while ids := list(requested.values_list("pk", flat=True)[:BATCH]):
        with_replies = Message.objects.filter(Q(pk__in=ids) | Q(in_reply_to__in=ids))
        originals = list(with_replies.values_list("pk", flat=True))
        copied = [copy_id(pk, agent_id) for pk in originals for agent_id in agents]
        yield Batch(list(Message.objects.filter(pk__in=_one_parameter(originals + copied))))


def _one_parameter(values: Iterable[Any], kind: str = "uuid") -> RawSQL:
    """Return values for `__in` as one array. A statement can have at most 65,535 parameters."""
    return RawSQL(f"SELECT unnest(%s::{kind}[])", [list(values)])  # noqa: S611


def _quoting_messages(batch: Batch, request: MessageErasure) -> list[str]:
    """Return ids of other messages that quote the requested message, if the batch contains it."""
    erased = {str(pk) for pk in batch.ids}
    for message in batch.messages:
        if message.pk == request.message_id:
            return [pk for pk in quoting_messages(message) if pk not in erased]
    return []


def _remove(
    batch: Batch, request: MessageErasure, tables: Tables, facts: Sequence[MemoryEntry]
) -> datetime:
    """Remove the rows of a batch from all tables, referencing rows first.

    Returns:
        The start of the transaction, by the clock of Postgres.
    """

    add = partial(add_rows, tables)
    # If only the reply to a message is erased, the message must not be answered again.
    answered = {message.in_reply_to_id for message in batch.messages} - {*batch.ids}
    unanswered = list(
        Message.objects.filter(pk__in=filter(None, answered), pending_reply__isnull=True)
    )
    began_at: datetime = fetch_value("SELECT now()")
    with connection.cursor() as cursor:
        changed = erase_from_prompts([*batch.messages, *facts])
        delete_rows_of_messages(cursor, batch.ids, add)
        changed |= redact_copies(batch.messages, facts=facts)
        for table, count in changed.items():
            add(table, None, count, "changed")
        keys = [str(fact.pk) for fact in facts]
        # Facts without other evidence are removed already.
        remaining = MemoryEntry.objects.filter(pk__in=keys)
        remaining_keys = [str(pk) for pk in remaining.values_list("pk", flat=True)]
        remaining.delete()
        add("memory_memoryentry", remaining_keys, len(remaining_keys), "removed")
        records, _ = IdempotencyRecord.objects.filter(
            made__in=_one_parameter(map(str, [*batch.ids, *keys]))
        ).delete()
        add("api_creation", None, records, "removed")
        add("orchestrator_escalation", None, _redact_escalations(batch, request), "changed")
        numbers = [message.number for message in batch.messages]
        scopes = [scope_number(*pair) for pair in batch.users]
        words = remove_from_word_index(numbers, scopes=scopes)
        for table, count in zip(("memory_posting", "memory_indexedmessage"), words, strict=True):
            add(table, None, count, "removed")
        delete_messages(cursor, batch.ids, add)
    for message in unanswered:
        replies.enqueue(message)
        replies.REPLIES.give_up(message.pk, code=replies.CLOSED, reason=REPLY_ERASED)
    return began_at


def _facts_of(batch: Batch) -> list[MemoryEntry]:
    """Return the facts that are erased with the batch, with all their versions.

    They have no evidence in other messages, or a `message_id` of the batch in their metadata.
    """
    attributes = MemoryAttribute.objects.filter(
        key="message_id", kind="text", text__in=_one_parameter(map(str, batch.ids), "text")
    )
    fact_ids: set[UUID] = set()
    for memory_id, version_of in attributes.values_list("memory_id", "memory__version_of"):
        fact_ids.add(version_of or memory_id)
    of_users = Q(user_id__in={user_id for _, user_id in batch.users}) | Q(user_id__isnull=True)
    versions = MemoryEntry.objects.filter(of_users, Q(pk__in=fact_ids) | Q(version_of__in=fact_ids))
    return [*facts_deleted_with(batch.messages), *versions.defer("embedding")]


def _redact_escalations(batch: Batch, request: MessageErasure) -> int:
    about = Escalation.objects.filter(message_id__in=_one_parameter(batch.ids))
    if request.message_id is None:
        about |= Escalation.objects.filter(
            agent_id=request.agent_id, user_id=request.user_id, thread_id=request.thread_id
        )
    return about.exclude(reason="", note="").update(reason="", note="", message_id=None)


def _delete_from_cache(cached: Mapping[str, Any] | None) -> None:
    """Remove erased messages from the cache.

    Args:
        cached: the result of Batch.in_cache; None: nothing.
    """
    if cached is None:
        return
    tenant_id = required_tenant_id()
    for agent_id, user_id in cached["users"]:
        short_term.delete_window(tenant_id, agent_id, user_id)
    thread_window.delete_threads(tenant_id, cached["threads"])
    keys = [
        key(tenant_id, pk) for pk in cached["ids"] for key in (idempotency_key, partial_reply_key)
    ]
    get_redis_connection("default").unlink(*keys)
