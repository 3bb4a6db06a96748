"""Checks that all messages are embedded or queued, and that the index of words is correct."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import reduce
from operator import xor
from typing import NamedTuple
from uuid import UUID

from konstruct.consistency.records import Finding
from memory.conversations import embedding_queue
from memory.indexing.service import lexemes_of
from memory.models import ConversationEmbedding, Message
from memory.scopes import scope_number
from memory.text import lexical
from tenants import transaction
from tenants.context import connection, execute, fetch_all
from tenants.personal_data import personal_tables

NOT_INDEXED = "message that is neither embedded nor queued for it"
NO_VECTOR = "embedded message without a vector"
WORDS_DIFFER = "words of a message in the index differ from its text"
NO_MESSAGE = "index of words of a message that does not exist"
WRONG_SCOPE = "message in the index of another conversation"
ROW_ELSEWHERE = "row in another conversation than its message"

# One row for each message, with its words in the index as a number and a fingerprint.
_MESSAGES_AND_INDEX = """
SELECT message.id, message.number, message.agent_id, message.user_id, message.role, message.name,
       message.content, message.created_at,
       pending.message_id IS NOT NULL AS pending,
       indexed.scope_id AS scope,
       EXISTS (
           SELECT FROM memory_conversationembedding AS piece WHERE piece.message_id = message.id
       ) AS embedded,
       posted.scope_id AS posted_scope, coalesce(posted.words, 0), coalesce(posted.print, 0),
       coalesce(posted.message_number, indexed.message_number)
FROM memory_message AS message
LEFT JOIN memory_pendingembedding AS pending ON pending.message_id = message.id
FULL JOIN memory_indexedmessage AS indexed ON indexed.message_number = message.number
FULL JOIN (
    SELECT message_number, scope_id, count(*) AS words, bit_xor(lexeme_hash) AS print
    FROM memory_posting GROUP BY message_number, scope_id
) AS posted ON posted.message_number = coalesce(message.number, indexed.message_number)
"""


class _Row(NamedTuple):
    id: UUID | None
    number: int
    agent_id: UUID
    user_id: str
    role: str
    name: str
    content: str
    created_at: datetime
    pending: bool
    scope: int | None
    embedded: bool
    posted_scope: int | None
    words: int
    fingerprint: int
    posted_number: int


def count() -> dict[str, int]:
    """Count messages, and those that are embedded or queued."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), count(indexed.message_number)"
            " FILTER (WHERE pending.message_id IS NULL), count(pending.message_id)"
            " FROM memory_message AS message"
            " LEFT JOIN memory_indexedmessage AS indexed"
            " ON indexed.message_number = message.number"
            " LEFT JOIN memory_pendingembedding AS pending ON pending.message_id = message.id"
        )
        names = ("to be embedded", "embedded", "pending")
        return dict(zip(names, cursor.fetchone(), strict=True))


def check() -> Iterator[Finding]:
    """Read the whole transcript, and compare it with the index."""
    with connection.chunked_cursor() as cursor:
        cursor.execute(_MESSAGES_AND_INDEX)
        for row in cursor:
            yield from _compare(_Row(*row))
    for table, data in personal_tables().items():
        if data.message and data.subject and data.key and data.message != data.key:
            # A recall belongs to the agent that answered, a vector to the agent of the message.
            is_vector = table == ConversationEmbedding._meta.db_table
            for (pk,) in fetch_all(
                f"SELECT belongs.{data.key} FROM {table} AS belongs"
                f" JOIN memory_message AS message ON message.id = belongs.{data.message}"
                f" WHERE belongs.{data.subject} <> message.user_id"
                f" OR %s AND belongs.{data.agent} <> message.agent_id",
                [is_vector],
            ):
                yield Finding(ROW_ELSEWHERE, str(pk), table)


def _compare(row: _Row) -> Iterator[Finding]:
    if row.id is None:
        yield Finding(NO_MESSAGE, str(row.posted_number))
        return
    if row.pending:
        return
    if row.scope is None:
        yield Finding(NOT_INDEXED, str(row.id))
        return
    scope = scope_number(row.agent_id, row.user_id)
    if row.scope != scope or row.posted_scope not in (None, scope):
        yield Finding(WRONG_SCOPE, str(row.id))
        return
    if row.content.strip() and not row.embedded:
        yield Finding(NO_VECTOR, str(row.id))
    lexemes = lexemes_of(row.name, row.role, row.content, row.created_at)
    hashes = {lexical.lexeme_hash(lexeme) for lexeme in lexemes}
    if (row.words, row.fingerprint) != (len(hashes), reduce(xor, hashes, 0)):
        yield Finding(WORDS_DIFFER, str(row.id), f"{row.words} instead of {len(hashes)}")


def enqueue_embeddings(message_ids: Sequence[str]) -> None:
    """Enqueue their embeddings; existing rows stay."""
    embedding_queue.enqueue([UUID(message_id) for message_id in message_ids])


def reindex(message_ids: Sequence[str]) -> None:
    """Remove the index rows of messages, and enqueue their embeddings. Needs the owner's role."""
    numbers = list(Message.objects.filter(pk__in=message_ids).values_list("number", flat=True))
    with transaction.atomic():
        remove_from_word_index(numbers)
        enqueue_embeddings(message_ids)


def remove_from_word_index(numbers: Sequence[int], *, scopes: Sequence[int] = ()) -> list[int]:
    """Remove messages from the index of words. Needs the owner's role.

    Args:
        numbers: the numbers of the messages.
        scopes: their scopes. Without scopes, all postings of the tenant are read.

    Returns:
        The numbers of removed postings and messages.
    """
    removed = []
    values = {"numbers": list(numbers), "scopes": list(scopes)}
    with transaction.atomic():
        for table in ("memory_posting", "memory_indexedmessage"):
            of_scopes = "scope_id = ANY(%(scopes)s) AND " if scopes else ""
            where = f"{of_scopes}message_number = ANY(%(numbers)s)"
            removed.append(execute(f"DELETE FROM {table} WHERE {where}", values))
    return removed


REPAIRS: dict[str, Callable[[Sequence[Finding]], object]] = {
    NOT_INDEXED: lambda findings: enqueue_embeddings([finding.subject for finding in findings]),
    NO_VECTOR: lambda findings: enqueue_embeddings([finding.subject for finding in findings]),
    WORDS_DIFFER: lambda findings: reindex([finding.subject for finding in findings]),
    WRONG_SCOPE: lambda findings: reindex([finding.subject for finding in findings]),
    NO_MESSAGE: lambda findings: remove_from_word_index(
        [int(finding.subject) for finding in findings]
    ),
}
