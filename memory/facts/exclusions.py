"""Excludes statements of a corrected fact from recall, and includes them again.

The evidence of the old value is excluded, and the replies that used the fact and repeat the value.
The functions work in the current tenant, in the transaction of the correction.
"""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from memory.exceptions import InvalidArgument
from memory.models import AuthorKind, MemoryEntry, Message, RecallExclusion
from memory.models.fact_querysets import MemoryEntryQuerySet
from memory.models.facts import Author
from memory.text.lexical import lexemes
from tenants import transaction
from tenants.audit.access_log import Actor, record_access
from tenants.audit.models import Action, ActorKind
from tenants.context import connection

# Number of the newest recall events of the fact's user that are searched for uses of the fact.
MAX_EVENTS: Final = 10_000
SUBJECT: Final = "recall exclusions"

_ACTORS: Final = {
    AuthorKind.PERSON: ActorKind.PERSON,
    AuthorKind.PROGRAM: ActorKind.PROGRAM,
    AuthorKind.OPERATOR: ActorKind.OPERATOR,
}
# Excludes the evidence, and returns the replies with the fact or its evidence in their prompt.
_EXCLUDE_EVIDENCE: Final = """
WITH cited AS MATERIALIZED (
    SELECT message.id, message.agent_id, message.user_id, evidence.start, evidence."end"
    FROM memory_factevidence AS evidence
    JOIN memory_message AS message ON message.id = evidence.message_id
    WHERE evidence.memory_id = %(evidence_of)s
), excluded AS (
    INSERT INTO memory_recallexclusion (message_id, agent_id, user_id, start, "end", memory_id,
                                        reason, author_kind, author_id, author_name)
    SELECT id, agent_id, user_id, start, "end", %(evidence_of)s, %(reason)s, %(author_kind)s,
           %(author_id)s, %(author_name)s
    FROM cited ON CONFLICT DO NOTHING
), prompt AS (
    (SELECT reply_id, sources FROM memory_recallevent
     WHERE user_id = ANY(ARRAY(SELECT user_id FROM cited) || %(user)s::text)
     ORDER BY created_at DESC LIMIT %(most)s)
    UNION ALL
    SELECT event.reply_id, event.sources FROM memory_promptsource AS source
    JOIN memory_recallevent AS event ON event.id = source.event_id
    WHERE source.source_id = %(fact)s OR source.source_id IN (SELECT id FROM cited)
)
SELECT reply.id, reply.content FROM memory_message AS reply
WHERE reply.role = 'assistant' AND (
    reply.in_reply_to_id IN (SELECT id FROM cited)
    OR reply.id IN (
        SELECT reply_id FROM prompt
        WHERE sources && (ARRAY(SELECT id FROM cited) || %(fact)s::uuid)
    )
)
"""
_EXCLUDE_REPLIES: Final = """
INSERT INTO memory_recallexclusion (message_id, agent_id, user_id, memory_id, reason, author_kind,
                                    author_id, author_name)
SELECT id, agent_id, user_id, %(evidence_of)s, %(reason)s, %(author_kind)s, %(author_id)s,
       %(author_name)s
FROM memory_message WHERE id = ANY(%(replies)s) ON CONFLICT DO NOTHING
"""


def exclude_from_recall(
    message: Message,
    *,
    author: Author,
    start: int | None = None,
    end: int | None = None,
    reason: str = "",
    request_id: str = "",
) -> RecallExclusion:
    """Leave a message, or some of its words, out of recall. It is recorded in the access log.

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
    with transaction.atomic():
        exclusion, is_new = RecallExclusion.objects.get_or_create(
            message=message,
            memory_id=None,
            start=start,
            end=end,
            defaults={
                "agent_id": message.agent_id,
                "user_id": message.user_id,
                "reason": reason,
                "author_kind": author.kind,
                "author_id": author.id,
                "author_name": author.name,
            },
        )
        if is_new:
            detail = {"reason": reason, "start": start, "end": end}
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

    It is recorded in the access log.

    Args:
        message: a message of the current tenant.
        author: a person, a program or an operator.
        exclusion_id: the one exclusion to remove; None: all of them.
        reason: kept in the access log.
        request_id: of the request, for the access log.

    Returns:
        The number of removed exclusions.
    """
    rows = RecallExclusion.objects.filter(message=message)
    if exclusion_id is not None:
        rows = rows.filter(pk=exclusion_id)
    with transaction.atomic():
        removed = [
            {"start": row.start, "end": row.end, "memory_id": str(row.memory_id or "")}
            for row in rows
        ]
        rows.delete()
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
    """Exclude statements of a fact that was wrong from recall.

    These are its evidence, and the replies that repeat its value and used it: their prompt had the
    fact or a message of its evidence, or they answer such a message.

    Args:
        fact: the fact with the wrong value, or its version that has the evidence.
        author: of the correction.
        reason: stored with the exclusions.
        new_content: the corrected fact. Its words do not count as the wrong value.
    """
    values = {
        "evidence_of": fact.memory_id,
        "fact": fact.fact_id,
        "user": fact.user_id,
        "most": MAX_EVENTS,
        "reason": reason,
        "author_kind": str(author.kind),
        "author_id": author.id,
        "author_name": author.name,
    }
    with connection.cursor() as cursor:
        cursor.execute(_EXCLUDE_EVIDENCE, values)
        stems = wrong_stems(fact, new_content) or set(lexemes(fact.content))
        replies = [pk for pk, content in cursor.fetchall() if _has_half_of(content, stems)]
        if replies:
            cursor.execute(_EXCLUDE_REPLIES, {**values, "replies": replies})


def include_corrected(facts: Sequence[UUID] | MemoryEntryQuerySet) -> int:
    """Undo the exclusions of corrected facts, or of versions of them; return their number."""
    ids: Any = facts.values("memory_id") if isinstance(facts, MemoryEntryQuerySet) else facts
    return RecallExclusion.objects.filter(memory_id__in=ids).delete()[0]


def wrong_stems(fact: MemoryEntry, new_content: str) -> set[str]:
    """Return the stems of the words of the wrong value that the corrected fact does not have."""
    content, value = set(lexemes(fact.content)), set(lexemes(fact.value))
    # An update of the content has an older value.
    stems = value if value and value <= content else content
    return stems - set(lexemes(new_content))


def _has_half_of(reply: str, stems: set[str]) -> bool:
    """Return whether a reply has at least half of the words."""
    return bool(stems) and 2 * len(stems.intersection(lexemes(reply))) >= len(stems)


def _record(
    action: Action, message: Message, author: Author, request_id: str, **detail: Any
) -> None:
    record_access(
        action,
        SUBJECT,
        by=Actor(_ACTORS.get(author.kind, ActorKind.UNKNOWN), author.id, author.name),
        subject_id=message.pk,
        agent_id=message.agent_id,
        user_id=message.user_id,
        request_id=request_id,
        **detail,
    )
