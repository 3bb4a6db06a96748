"""Excludes messages, and statements of a corrected fact, from recall, and includes them again.

The agent's echoes are excluded too: replies that were written with the message or the fact, and
repeat it. What is excluded as a whole is in no window either. The functions work in the current
tenant, in the transaction of a correction.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final
from uuid import UUID

from django.db.models import Q, QuerySet

from memory.conversations import short_term, window_store
from memory.exceptions import InvalidArgument
from memory.models import FactEvidence, MemoryEntry, Message, RecallExclusion
from memory.models.facts import Author, MemoryEntryQuerySet
from memory.text.lexical import lexemes
from tenants import transaction
from tenants.audit.access_log import Actor, record_access
from tenants.audit.models import Action, ActorKind
from tenants.context import required_tenant_id

# Number of the newest recall events of the owners of sources that are searched for the sources.
MAX_EVENTS: Final = 10_000
# The number of its words that an echo of a whole message repeats at least: "ok" has no echoes.
MIN_REPEATED: Final = 2
SUBJECT: Final = "recall exclusions"

# The replies that answer one of these messages, or had one of these messages or facts in their
# prompt. Prompts of the users who own the sources are found by the user, others by the source.
_WRITTEN_WITH: Final = """
SELECT * FROM memory_message WHERE role = 'assistant' AND id IN (
    SELECT id FROM memory_message WHERE in_reply_to_id = ANY(%(ids)s)
    UNION ALL
    SELECT reply_id FROM (
        SELECT reply_id, sources FROM memory_recallevent WHERE user_id = ANY(%(users)s)
        ORDER BY created_at DESC LIMIT %(most)s
    ) AS newest WHERE sources && %(ids)s
    UNION ALL
    SELECT event.reply_id FROM memory_promptsource AS source
    JOIN memory_recallevent AS event ON event.id = source.event_id
    WHERE source.source_id = ANY(%(ids)s)
)
"""


def echoes(
    sources: Collection[UUID], user_ids: Collection[str], stems: set[str], *, minimum: int = 1
) -> list[Message]:
    """Return the replies that were written with a message or a fact, and repeat its words.

    Args:
        sources: the ids of messages and facts.
        user_ids: the users who own them.
        stems: of the repeated words (`memory.text.lexical`). A reply has at least half of them.
        minimum: the number of them that a reply has at least.
    """
    values = {"ids": [*sources], "users": [*user_ids], "most": MAX_EVENTS}
    needed = max(minimum, (len(stems) + 1) // 2)
    if needed > len(stems):
        return []
    replies = Message.objects.raw(_WRITTEN_WITH, values)
    return [reply for reply in replies if len(stems.intersection(lexemes(reply.content))) >= needed]


def echoes_of_message(
    message: Message, start: int | None = None, end: int | None = None
) -> list[Message]:
    """Return the echoes of a message, or of some of its words."""
    stems = set(lexemes(message.content[start:end]))
    minimum = MIN_REPEATED if start is None else 1
    return echoes([message.pk], [message.user_id], stems, minimum=minimum)


def exclude_from_recall(
    message: Message,
    *,
    author: Author,
    start: int | None = None,
    end: int | None = None,
    reason: str = "",
    request_id: str = "",
) -> RecallExclusion:
    """Leave a message, or some of its words, and the echoes of it out of recall.

    A whole message leaves the windows too. It is recorded in the access log.

    Args:
        message: a message of the current tenant.
        author: a person, a program or an operator.
        start: first character of the words; None: the whole message.
        end: position after their last character.
        reason: kept with the exclusion.
        request_id: of the request, for the access log.

    Returns:
        The exclusion; the existing one if the same words are excluded already.

    Raises:
        InvalidArgument: the message has no such words.
    """
    if (start is None) != (end is None) or (
        start is not None and end is not None and not 0 <= start < end <= len(message.content)
    ):
        raise InvalidArgument(
            f"start={start}, end={end} are not words of a message of {len(message.content)}"
            " characters"
        )
    fields: dict[str, Any] = {"memory_id": None, "echo_of": None, "start": start, "end": end}
    with transaction.atomic():
        exclusion, is_new = RecallExclusion.objects.get_or_create(
            message=message, **fields, defaults=_columns(message, author, reason)
        )
        if is_new:
            replies = echoes_of_message(message, start, end)
            fields |= {"echo_of": exclusion.pk, "start": None, "end": None}
            _exclude(replies, author, reason, **fields)
            detail = {"reason": reason, "start": start, "end": end, "echoes": len(replies)}
            _record(Action.CREATE, message, author, request_id, **detail)
    return exclusion


def include_again(
    message: Message,
    *,
    author: Author,
    exclusion_id: UUID | None = None,
    reason: str = "",
    request_id: str = "",
) -> int:
    """Include a message in recall again: remove its exclusions, also those of corrected facts.

    Their echoes are included too. It is recorded in the access log.

    Args:
        message: a message of the current tenant.
        author: a person, a program or an operator.
        exclusion_id: the one exclusion to remove; None: all of them.
        reason: kept in the access log.
        request_id: of the request, for the access log.

    Returns:
        The number of removed exclusions of the message.
    """
    rows = RecallExclusion.objects.filter(message=message)
    if exclusion_id is not None:
        rows = rows.filter(pk=exclusion_id)
    with transaction.atomic():
        removed = [
            {"start": row.start, "end": row.end, "memory_id": str(row.memory_id or "")}
            for row in rows
        ]
        _remove(RecallExclusion.objects.filter(Q(pk__in=rows) | Q(echo_of__in=rows)))
        if removed:
            _record(Action.DELETE, message, author, request_id, reason=reason, removed=removed)
    return len(removed)


def exclude_corrected(
    fact: MemoryEntry,
    *,
    author: Author,
    reason: str = "",
    new_content: str = "",
) -> None:
    """Exclude statements of a fact that was wrong from recall: its evidence and its echoes.

    Args:
        fact: the fact with the wrong value, or its version that has the evidence.
        author: of the correction.
        reason: stored with the exclusions.
        new_content: the corrected fact. Its words do not count as the wrong value.
    """
    cited = list(FactEvidence.objects.filter(memory=fact.memory_id).select_related("message"))
    for row in cited:
        words = {"start": row.start, "end": row.end}
        _exclude([row.message], author, reason, memory_id=fact.memory_id, **words)
    sources = {fact.fact_id, *(row.message_id for row in cited)}
    users = {row.message.user_id for row in cited} | {*filter(None, [fact.user_id])}
    stems = wrong_stems(fact, new_content) or set(lexemes(fact.content))
    _exclude(echoes(sources, users, stems), author, reason, memory_id=fact.memory_id)


def include_corrected(facts: Sequence[UUID] | MemoryEntryQuerySet) -> int:
    """Undo the exclusions of corrected facts, or of versions of them; return their number."""
    ids: Any = facts.values("memory_id") if isinstance(facts, MemoryEntryQuerySet) else facts
    return _remove(RecallExclusion.objects.filter(memory_id__in=ids))


def _exclude(messages: Iterable[Message], author: Author, reason: str, **fields: Any) -> None:
    """Exclude messages that are not excluded in this way already."""
    RecallExclusion.objects.bulk_create(
        (
            RecallExclusion(message=message, **_columns(message, author, reason), **fields)
            for message in messages
        ),
        ignore_conflicts=True,
    )


def _columns(message: Message, author: Author, reason: str) -> dict[str, Any]:
    return {
        "agent_id": message.agent_id,
        "user_id": message.user_id,
        "reason": reason,
        "author_kind": author.kind,
        "author_id": author.id,
        "author_name": author.name,
    }


def _remove(exclusions: "QuerySet[RecallExclusion]") -> int:
    """Delete exclusions. Windows lack their messages, and are written again after the commit."""
    columns = ("message__agent_id", "message__user_id", "message__thread_id")
    whole = exclusions.filter(start=None).order_by().distinct()
    threads, tenant_id = list(whole.values_list(*columns)), required_tenant_id()

    def delete_windows() -> None:
        for agent_id, user_id, thread_id in threads:
            short_term.delete_window(tenant_id, agent_id, user_id)
            window_store.delete_threads(tenant_id, [thread_id])

    count, _ = exclusions.delete()
    if threads:
        transaction.on_commit(delete_windows)
    return count


def wrong_stems(fact: MemoryEntry, new_content: str) -> set[str]:
    """Return the stems of the words of the wrong value that the corrected fact does not have."""
    content, value = set(lexemes(fact.content)), set(lexemes(fact.value))
    # An update of the content has an older value.
    stems = value if value and value <= content else content
    return stems - set(lexemes(new_content))


def _record(
    action: Action, message: Message, author: Author, request_id: str, **detail: Any
) -> None:
    kind = author.kind if author.kind in ActorKind.values else ActorKind.UNKNOWN
    record_access(
        action,
        SUBJECT,
        by=Actor(ActorKind(kind), author.id, author.name),
        subject_id=message.pk,
        agent_id=message.agent_id,
        user_id=message.user_id,
        request_id=request_id,
        **detail,
    )
