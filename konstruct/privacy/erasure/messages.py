"""Erases messages: one, a conversation, a batch of a person's, or those past the retention rules.

Other data of the user stays. It also removes the reply, copies of both for other agents, and all
derived rows: vectors, words of the index, facts without other evidence, traces of recalls. It can
be killed at any point, and continues when run again.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.db.models import Q, QuerySet
from django.db.models.expressions import RawSQL
from django.db.models.functions import Now
from django.utils import timezone
from django_redis import get_redis_connection

from konstruct.api.models import IdempotencyRecord
from konstruct.orchestrator import models as orchestrator, replies, retention_rules
from konstruct.orchestrator.messages import Thread, lock_windows
from konstruct.privacy.erasure.person import MESSAGES, AddRows, add_rows, delete_rows, now
from memory import indexing, models
from memory.context.recall_events import NO_ID
from memory.conversations import short_term, transcript, window_store
from memory.facts.rows import echoes_of_message
from memory.models import recall
from memory.models.facts import WITHOUT_OTHER_EVIDENCE
from tenants import journal, personal_data, redis_keys, transaction
from tenants.audit import access_log, models as audit
from tenants.context import connection, execute, required_tenant_id
from tenants.outbox import events, models as outbox
from tenants.schemas.provisioning import drop_left_overs

# Approximate number of messages that are removed in one transaction, with their replies.
BATCH: Final = 500
IN_CACHE: Final = "in_cache"
REPLY_ERASED: Final = "Its reply was erased."
_FACTS: Final = f"""
    SELECT tenant_id, memory_id, version_of, user_id, content FROM memory_memoryentry
    WHERE {WITHOUT_OTHER_EVIDENCE}
"""
# Workers hold these rows while they write embeddings.
LOCK_EMBEDDING: Final = (
    "SELECT FROM memory_pendingembedding WHERE message_id = ANY(%(ids)s) FOR UPDATE"
)
# Events of a source's own user are found by the user; those of others have rows of sources.
_ERASE_FROM_PROMPTS: Final = """
    UPDATE memory_recallevent SET
        sources = ARRAY(
            SELECT CASE WHEN id = ANY(%(ids)s) THEN %(no_id)s ELSE id END
            FROM unnest(sources) WITH ORDINALITY AS source (id, place) ORDER BY place
        ),
        left_out = ARRAY(
            SELECT CASE WHEN id = ANY(%(ids)s) THEN %(no_id)s ELSE id END
            FROM unnest(left_out) WITH ORDINALITY AS source (id, place) ORDER BY place
        ),
        unmatched = CASE WHEN NOT sources && %(ids)s THEN unmatched END
    WHERE user_id <> ALL(%(without)s) AND (reply_id IS NULL OR reply_id <> ALL(%(ids)s))
      AND id IN (
        SELECT id FROM memory_recallevent
        WHERE user_id = ANY(%(users)s) AND (sources && %(ids)s OR left_out && %(ids)s)
        UNION ALL
        SELECT event_id FROM memory_promptsource WHERE source_id = ANY(%(ids)s)
    )
"""


def carry_out(request: audit.MessageErasure, *, is_replayed: bool = False) -> audit.MessageErasure:
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
    add = partial(add_rows, receipt["tables"])
    # A process that was killed may have left removed messages in the cache.
    _delete_from_cache(receipt.pop(IN_CACHE, None))

    def save(cached: dict[str, Any]) -> None:
        request.receipt = receipt | {IN_CACHE: cached}
        request.save(update_fields=["receipt"])

    for batch in _batches(request):
        for message in batch:
            if message.pk == request.message_id:
                quoting = {reply.pk for reply in echoes_of_message(message)}
                quoting -= {message.pk for message in batch}
                receipt["quoted_in"] = sorted(map(str, quoting))
        erase_batch(batch, add, save=save)
    about = Thread.of(request).as_filter
    if request.message_id is None:
        # Items of frameworks that belong to no message, such as calls of tools.
        for model in (models.ConversationItem, models.Conversation):
            found = model._default_manager.filter(**about)
            add(model._meta.db_table, None, found._raw_delete(found.db), "removed")
        _empty(orchestrator.Escalation.objects.filter(**about), add)
    audit.ListExport.objects.all().remove()
    orchestrator.HistoryImport.objects.all().remove()
    if not is_replayed:
        write_journal(request)
    request.receipt = receipt | {
        "found": bool(receipt["tables"]),
        "ended_at": now(),
        "journal": "written" if journal.is_enabled() else "none",
    }
    request.last_error, request.done_at = "", Now()
    with transaction.atomic():
        request.save(update_fields=["receipt", "last_error", "done_at"])
        events.record_event(outbox.EventType.ERASURE_DONE, request.pk)
    request.refresh_from_db()
    return request


def write_journal(request: audit.MessageErasure) -> None:
    """Write the message and its quotations, or the conversation, into the journal, by digests.

    Raises:
        JournalUnavailable: the journal of erasures cannot be written.
    """
    if request.message_id is not None:
        for message_id in (request.message_id, *request.reply_ids):
            write_journal_of_message(request.pk, message_id)
        return
    tenant_id = required_tenant_id()
    names = (str(request.agent_id), request.user_id, request.thread_id)
    digest = journal.digest(tenant_id, "conversation", *names)
    journal.append(tenant_id, "conversation", request=str(request.pk), erased=digest)


def write_journal_of_message(request_id: UUID, message_id: UUID) -> None:
    """Write an erased message into the journal, by its digest; see `write_journal`."""
    tenant_id = required_tenant_id()
    digest = journal.digest(tenant_id, "message", str(message_id))
    journal.append(tenant_id, "message", request=str(request_id), erased=digest)


def _batches(request: audit.MessageErasure) -> Iterator[list[models.Message]]:
    """Yield the messages in batches. The caller removes a batch before it requests the next one."""
    if request.message_id is not None:
        requested = models.Message.objects.filter(pk__in=[request.message_id, *request.reply_ids])
    else:
        requested = models.Message.objects.filter(**Thread.of(request).as_filter)
    requested = requested.order_by("created_at", "number")
    while ids := list(requested.values_list("pk", flat=True)[:BATCH]):
        with_replies = models.Message.objects.filter(Q(pk__in=ids) | Q(in_reply_to__in=ids))
        yield with_copies(with_replies.values_list("pk", flat=True))


def with_copies(ids: Iterable[UUID]) -> list[models.Message]:
    """Return messages with their copies for agents that got the thread in a handover."""
    ids, agents = list(ids), list(orchestrator.Agent.objects.values_list("pk", flat=True))
    copies = [transcript.copy_id(pk, agent_id) for pk in ids for agent_id in agents]
    return list(models.Message.objects.filter(pk__in=_one_parameter(ids + copies)))


def erase_batch(
    messages: Sequence[models.Message],
    add: AddRows,
    *,
    save: Callable[[dict[str, Any]], None],
    without_users: Collection[str] = (),
) -> int:
    """Erase messages, which are in memory, with everything that belongs to them.

    Args:
        messages: the messages. Their replies are erased only if they are among them.
        add: counts removed and changed rows.
        save: saves the progress in the transaction. It gets the messages that may be in the cache.
        without_users: users whose prompts are skipped, because they are all removed.

    Returns:
        The number of keys removed from the cache.
    """
    ids = [message.pk for message in messages]
    users = sorted({(message.agent_id, message.user_id) for message in messages})
    threads = sorted({message.thread_id for message in messages})
    cached = {
        "users": [[str(agent_id), user_id] for agent_id, user_id in users],
        "threads": threads,
        "ids": [str(pk) for pk in ids],
    }
    facts = _facts_of(messages)
    # Workers lose their leases of the replies.
    orchestrator.PendingReply.objects.filter(message__in=_one_parameter(ids)).delete()
    # So that no reply is written meanwhile.
    with lock_windows([Thread(agent_id, user_id, "") for agent_id, user_id in users]):
        _remove(messages, facts, add, without_users=without_users)
        save(cached)
    removed = _delete_from_cache(cached)
    # Workers may have read the messages for other replies. They begin these anew, and what they
    # wrote before the end of their leases is changed.
    waiting = orchestrator.PendingReply.objects.all()
    if all(fact.user_id is not None for fact in facts):  # others are in prompts of any user
        of_users = Q(message__user_id__in=[user_id for _, user_id in users])
        waiting = waiting.filter(of_users | Q(message__thread_id__in=threads))
    replies.REPLIES.cancel_attempts(list(waiting.values_list("pk", flat=True)))
    changed = erase_from_prompts([*messages, *facts], without_users=without_users)
    add(models.RecallEvent._meta.db_table, None, changed, "changed")
    return removed


def _remove(
    messages: Sequence[models.Message],
    facts: Sequence[models.MemoryEntry],
    add: AddRows,
    *,
    without_users: Collection[str],
) -> None:
    """Remove the rows of messages and facts from all tables, referencing rows first."""
    ids = [message.pk for message in messages]
    # If only the reply to a message is erased, the message must not be answered again.
    answered = list(filter(None, {message.in_reply_to_id for message in messages} - {*ids}))
    unanswered = list(models.Message.objects.filter(pk__in=answered, pending_reply__isnull=True))
    delete_messages(messages, add, facts=facts, without_users=without_users)
    keys = [str(fact.pk) for fact in facts]
    # Facts without other evidence are removed already.
    remaining = models.MemoryEntry.objects.filter(pk__in=keys)
    remaining_keys = [str(pk) for pk in remaining.values_list("pk", flat=True)]
    remaining.delete()
    add(models.MemoryEntry._meta.db_table, remaining_keys, len(remaining_keys), "removed")
    made = IdempotencyRecord.objects.filter(made__in=_one_parameter([*map(str, ids), *keys]))
    add(IdempotencyRecord._meta.db_table, None, made.delete()[0], "removed")
    calls, _ = orchestrator.ToolCall.objects.filter(
        message__in=[message.pk for message in unanswered]
    ).delete()
    add(orchestrator.ToolCall._meta.db_table, None, calls, "removed")
    _empty(orchestrator.Escalation.objects.filter(message_id__in=_one_parameter(ids)), add)
    # Turns that a program sent may repeat the messages: the window has the remaining ones.
    waiting = orchestrator.AnswerOptions.objects.filter(
        message__user_id__in={message.user_id for message in messages}, history__isnull=False
    )
    add(orchestrator.AnswerOptions._meta.db_table, None, waiting.update(history=None), "changed")
    for message in unanswered:
        replies.enqueue(message)
        replies.REPLIES.give_up(message.pk, code=replies.CLOSED, reason=REPLY_ERASED)


def _one_parameter(values: Iterable[Any], kind: str = "uuid") -> RawSQL:
    """Return values for `__in` as one array. A statement can have at most 65,535 parameters."""
    return RawSQL(f"SELECT unnest(%s::{kind}[])", [list(values)])  # noqa: S611


def _facts_of(messages: Sequence[models.Message]) -> list[models.MemoryEntry]:
    """Return the facts that are erased with the messages, with all their versions.

    They have no evidence in other messages, or a `message_id` of these in their metadata.
    """
    ids = [message.pk for message in messages]
    attributes = models.MemoryAttribute.objects.filter(
        key="message_id", kind="text", text__in=_one_parameter(map(str, ids), "text")
    )
    fact_ids: set[UUID] = set()
    for memory_id, version_of in attributes.values_list("memory_id", "memory__version_of"):
        fact_ids.add(version_of or memory_id)
    of_users = Q(user_id__in={message.user_id for message in messages}) | Q(user_id__isnull=True)
    versions = models.MemoryEntry.objects.filter(
        of_users, Q(pk__in=fact_ids) | Q(version_of__in=fact_ids)
    )
    return [*models.MemoryEntry.objects.raw(_FACTS, {"ids": ids}), *versions.defer("embedding")]


def _empty(escalations: Any, add: AddRows) -> None:
    """Empty the texts of escalations, which may quote the messages that led to them."""
    led = escalations.exclude(reason="", note="")
    changed = led.update(reason="", note="", message_id=None)
    add(orchestrator.Escalation._meta.db_table, None, changed, "changed")


def _delete_from_cache(cached: Mapping[str, Any] | None) -> int:
    """Remove erased messages from the cache; return the number of keys.

    Args:
        cached: the argument of `save` in `erase_batch`; None: nothing.
    """
    if cached is None:
        return 0
    tenant_id = required_tenant_id()
    for agent_id, user_id in cached["users"]:
        short_term.delete_window(tenant_id, agent_id, user_id)
    window_store.delete_threads(tenant_id, cached["threads"])
    keys = [
        key(tenant_id, pk)
        for pk in cached["ids"]
        for key in (redis_keys.idempotency_key, redis_keys.partial_reply_key)
    ]
    return int(get_redis_connection("default").unlink(*keys))


# --- Rows -----------------------------------------------------------------------------------------


def erase_from_prompts(
    sources: Sequence[models.Message | models.MemoryEntry], *, without_users: Collection[str] = ()
) -> int:
    """Erase the references of prompts to messages and facts: one indexed statement.

    Their ids are replaced by zero, which is displayed as erased, and texts of a program in the
    prompt, which may quote any source of it, are removed. Call it before the messages are deleted,
    together with the rows of `PromptSource`; and after the commit, for prompts that were written
    meanwhile.

    Args:
        sources: the messages, and the facts that are deleted with them. Prompts of replies among
            the messages are skipped.
        without_users: users whose prompts are skipped, because they are all removed.

    Returns:
        The number of changed events.
    """
    owners = {source.pk: source.user_id for source in sources}
    owners |= {
        fact.fact_id: fact.user_id for fact in sources if isinstance(fact, models.MemoryEntry)
    }
    values = {
        "ids": list(owners),
        "users": sorted(filter(None, {*owners.values()} - {*without_users})),
        "without": list(without_users),
        "no_id": NO_ID,
    }
    with connection.cursor() as cursor:
        cursor.execute(_ERASE_FROM_PROMPTS, values)
        return int(cursor.rowcount)


def delete_messages(
    messages: Sequence[models.Message],
    add: AddRows = lambda *_: None,
    *,
    facts: Sequence[models.MemoryEntry] = (),
    without_users: Collection[str] = (),
) -> None:
    """Delete messages with all rows that belong to them, in the current transaction.

    It waits for workers that write embeddings of the messages.

    Args:
        messages: the messages.
        add: counts deleted and changed rows.
        facts: facts that the caller deletes in the same transaction: prompts refer to them no more.
        without_users: see `erase_from_prompts`.
    """
    ids = {"ids": [message.pk for message in messages]}
    numbers = [message.number for message in messages]
    scopes = {recall.scope_number(message.agent_id, message.user_id) for message in messages}
    changed = erase_from_prompts([*messages, *facts], without_users=without_users)
    add(models.RecallEvent._meta.db_table, None, changed, "changed")
    with connection.cursor() as cursor:
        cursor.execute(LOCK_EMBEDDING, ids)
        tables = personal_data.personal_tables()
        for table, data in tables.items():
            if data.derived:
                delete_rows(cursor, table, data, data.derived, ids, add)
        for table, data in tables.items():
            if data.message and table != MESSAGES:
                delete_rows(cursor, table, data, f"{data.message} = ANY(%(ids)s)", ids, add)
        words = indexing.remove_from_word_index(numbers, scopes=[*scopes])
        for model, count in zip((models.Posting, models.IndexedMessage), words, strict=True):
            add(model._meta.db_table, None, count, "removed")
        delete_rows(cursor, MESSAGES, tables[MESSAGES], "id = ANY(%(ids)s)", ids, add)


# --- Retention -----------------------------------------------------------------------------------

# Facts expire by their own dates (`expires_at`). Sessions of graphs stay until they are cleared.
RETENTION_BATCH = 1000
RETENTION_ACTOR = access_log.Actor(audit.ActorKind.OPERATOR, "retention", "retention")


def apply_rules() -> dict[UUID, int]:
    """Apply the rules of the current tenant, after due changes have taken effect.

    Returns:
        The numbers of removed messages by agent.
    """
    now = timezone.now()
    retention_rules.apply_due_changes(now, by=RETENTION_ACTOR)
    removed = {
        agent_id: _remove_before(agent_id, days, now - timedelta(days=days))
        for agent_id, days in _days_by_agent().items()
    }
    return {agent_id: number for agent_id, number in removed.items() if number}


def _days_by_agent() -> dict[UUID, int]:
    rules = dict(audit.RetentionRule.objects.values_list("agent_id", "days"))
    of_one = {agent_id: days for agent_id, days in rules.items() if agent_id is not None}
    if None not in rules:
        return of_one
    agents = models.Message.objects.values_list("agent_id", flat=True).order_by().distinct()
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
    while asked := list(rows[:RETENTION_BATCH]):
        rows = _old_messages(agent_id, before).filter(created_at__gte=asked[-1].created_at)
        batch = [*asked, *(message.reply for message in asked if hasattr(message, "reply"))]
        of_batch = {message.user_id for message in batch}
        with transaction.atomic():
            delete_messages(batch)
            audit.ListExport.objects.all().remove()
            access_log.record_access(
                audit.Action.DELETE,
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
        for table, data in personal_data.personal_tables().items():
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


def _old_messages(agent_id: UUID, before: datetime) -> QuerySet[models.Message]:
    """Return messages with their replies, which are removed together, in the order of the index.

    A message that waits for its reply stays, and one with a reply that is not old.
    """
    has_no_new_reply = Q(reply__isnull=True) | Q(reply__created_at__lt=before)
    rows = models.Message.objects.filter(
        has_no_new_reply,
        agent_id=agent_id,
        created_at__lt=before,
        in_reply_to__isnull=True,
        pending_reply__isnull=True,
    )
    rows = rows.select_related("reply").defer("content", "reply__content")
    return rows.order_by("created_at", "number")
