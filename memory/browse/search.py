"""Search in the messages of all people of a tenant, by words and by meaning.

Recall reads one agent's memory of one user. This search reads a whole tenant: candidates are the
messages with the rarest words, by the index of words, and the messages with the nearest pieces, by
the HNSW index; all candidates get a score of the same kind. Each statement has an index and ends
after LIMIT_SECONDS: docs/decisions/0017.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import OperationalError

from memory import conf, models
from memory.embedding.embedder import embed, model_version
from memory.fields import vector_literal
from memory.text import lexical
from tenants import transaction
from tenants.context import fetch_all, tenant_connection

MAX_HITS: Final = 100
MAX_TERMS: Final = 16
CANDIDATE_PIECES: Final = 100
# Parameters of the statements.
LIMITS: Final = {
    # A word is counted up to this many messages; filters that leave few messages read at most
    # most_read.
    "most_counted": 1_000,
    "most_read": 5_000,
    # Candidates come from the rarest words, up to this many messages with any of them.
    "candidate_postings": 2_000,
    # Candidates by words; candidates by meaning are pieces, of which a message has two or three.
    "candidates": 100,
    "candidate_pieces": CANDIDATE_PIECES,
    # If the filters leave at most this many messages, all of their pieces are compared.
    "compared_whole": 3_000,
}
# Added to the cosine if a message contains all words of the query.
WORDS_WEIGHT: Final = 0.5
# Messages without an index entry that are searched, the newest.
MAX_UNINDEXED: Final = 500
LIMIT_SECONDS: Final = 2
QUERY_CANCELED: Final = "57014"

_NARROWING: Final = {
    "agent_id": "agent_id = %(agent_id)s",
    "user_id": "user_id = %(user_id)s",
    "channel": "channel = %(channel)s",
    "since": "created_at >= %(since)s",
    "until": "created_at < %(until)s",
}
# A person has few scopes, so each is probed; otherwise the index of words is read.
_WORD_OF_PERSON: Final = """
    SELECT message_number, weight FROM memory_scope AS scope, LATERAL (
        SELECT message_number, weight FROM memory_posting
        WHERE scope_id = scope.id AND memory_posting.lexeme_hash = term.lexeme_hash OFFSET 0
    ) AS word
    WHERE {of_scope} LIMIT %(most_read)s
"""
_WORD: Final = """
    SELECT message_number, weight FROM (
        SELECT scope_id, message_number, weight FROM memory_posting
        WHERE memory_posting.lexeme_hash = term.lexeme_hash LIMIT %(most_read)s
    ) AS word {of_agent}
"""
_OF_AGENT: Final = """, LATERAL (
        SELECT FROM memory_scope AS scope WHERE scope.id = word.scope_id AND {of_scope} OFFSET 0
    ) AS scope"""
_BY_WORDS: Final = """
WITH held AS MATERIALIZED (
    SELECT term.word, posting.message_number, posting.weight
    FROM unnest(%(terms)s::bigint[], %(words)s::bigint[]) AS term (lexeme_hash, word), LATERAL (
        SELECT message_number, weight FROM ({word}) AS word
        {of_message}
        LIMIT %(most_counted)s
    ) AS posting
), counted AS MATERIALIZED (
    SELECT word, count(*)::float8 AS df,
           sum(count(*)) OVER rarest_first <= %(candidate_postings)s
           OR row_number() OVER rarest_first = 1 AS rare
    FROM held GROUP BY word WINDOW rarest_first AS (ORDER BY count(*), word)
), ranked AS (
    SELECT message_number FROM held JOIN counted USING (word) WHERE rare
    GROUP BY message_number
    ORDER BY sum(weight / ln(2 + df)) DESC, message_number DESC LIMIT %(candidates)s
)
SELECT (SELECT array_agg(message_number) FROM ranked),
       (SELECT array_agg(word) FROM counted), (SELECT array_agg(df) FROM counted),
       (SELECT reltuples FROM pg_class WHERE oid = 'memory_message'::regclass)
"""
_OF_MESSAGE: Final = """, LATERAL (
            SELECT FROM memory_message WHERE number = message_number AND {narrowing} OFFSET 0
        ) AS narrowed"""
_FEW: Final = """
SELECT count(*) <= %(compared_whole)s FROM (
    SELECT FROM memory_message WHERE {narrowing} LIMIT %(compared_whole)s + 1
) AS counted
"""
_BY_MEANING_OF_FEW: Final = """
SELECT message_id FROM (SELECT id FROM memory_message WHERE {narrowing}) AS message, LATERAL (
    SELECT message_id, embedding <=> %(vector)s::vector AS distance
    FROM memory_conversationembedding
    WHERE message_id = message.id AND embedding_model = %(model)s OFFSET 0
) AS piece
ORDER BY distance LIMIT %(candidate_pieces)s
"""
# CASE: leaves only the HNSW index.
_BY_MEANING: Final = """
SELECT message_id FROM memory_conversationembedding AS piece
WHERE CASE WHEN embedding_model = %(model)s AND message_id IS NOT NULL {and_narrowing}
           THEN true ELSE false END
ORDER BY embedding <=> %(vector)s::vector LIMIT %(candidate_pieces)s
"""
_AND_NARROWING: Final = """AND EXISTS (
    SELECT FROM memory_message AS message WHERE message.id = piece.message_id AND {narrowing}
)"""
_INDEX_SETTINGS: Final = {"enable_seqscan": "off"}
_HNSW_SETTINGS: Final = {
    "hnsw.iterative_scan": "relaxed_order",
    "hnsw.ef_search": str(CANDIDATE_PIECES),
    # For a filter that few rows match.
    "hnsw.max_scan_tuples": "20000",
    "enable_sort": "off",
}
_SCORED: Final = """
SELECT message.id, near.cosine, said.terms
FROM memory_message AS message
LEFT JOIN LATERAL (
    SELECT max(1 - (embedding <=> %(vector)s::vector)) AS cosine FROM (
        SELECT embedding FROM memory_conversationembedding
        WHERE message_id = message.id AND embedding_model = %(model)s OFFSET 0
    ) AS piece
) AS near ON true
LEFT JOIN LATERAL (
    SELECT array_agg(lexeme_hash) AS terms FROM memory_indexedmessage AS indexed, LATERAL (
        SELECT lexeme_hash FROM memory_posting
        WHERE scope_id = indexed.scope_id AND lexeme_hash = ANY (%(terms)s::bigint[])
          AND memory_posting.message_number = indexed.message_number OFFSET 0
    ) AS word
    WHERE indexed.message_id = message.id
) AS said ON true
WHERE message.number = ANY (%(numbers)s::bigint[]) OR message.id = ANY (%(ids)s::uuid[])
"""


@dataclass(frozen=True, slots=True)
class MessageHit:
    """A message that matches a search."""

    message: models.Message
    score: float
    """The cosine plus WORDS_WEIGHT times `words`."""
    cosine: float | None
    """Similarity in meaning of its nearest piece; None before it is embedded."""
    words: float
    """Share of the query's words in the message, by their rarity, from 0 to 1."""

    @property
    def words_percent(self) -> int:
        """The share of the query's words in the message, in percent."""
        return round(100 * self.words)


@dataclass(frozen=True, slots=True)
class MessageSearchResult:
    """The result of a search, best first."""

    hits: list[MessageHit]
    is_partial: bool
    """Whether a part of the search took longer than LIMIT_SECONDS, and was left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFilter:
    """Filters of the search; None does not filter."""

    agent_id: UUID | None = None
    user_id: str | None = None
    channel: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def condition(self, *names: str) -> str:
        """Return the filters, or those with these names, as an SQL condition."""
        conditions = (
            _NARROWING[name] for name in names or _NARROWING if getattr(self, name) is not None
        )
        return " AND ".join(conditions)


NO_FILTER: Final = MessageFilter()


def search_messages(
    query: str,
    *,
    message_filter: MessageFilter = NO_FILTER,
    limit: int = 25,
    query_embedding: list[float] | None = None,
) -> MessageSearchResult:
    """Find messages of all people of the current tenant.

    Args:
        query: words, of which the first MAX_TERMS lexemes are used, or a description.
        message_filter: the filters.
        limit: maximum number of results, up to MAX_FOUND.
        query_embedding: the vector of the query, if the caller has it.

    Returns:
        Messages with a word of the query, or nearer to it than SEARCH_FLOOR; best first.
    """
    lexemes = lexical.alternatives(lexical.analyse(query), limit=MAX_TERMS)
    hash_of = lexical.lexeme_hash
    word_of = {hash_of(lexeme): hash_of(word) for lexeme, word in lexemes.items()}
    vector = embed([query], is_query=True)[0] if query_embedding is None else query_embedding
    values = {
        **asdict(message_filter),
        **LIMITS,
        "terms": list(word_of),
        "words": list(word_of.values()),
        "model": model_version(),
        "vector": vector_literal(vector),
    }
    by_words: list[Any] | None = [(None,) * 4]
    if lexemes:
        by_words = _fetch_within_limit(_words_sql(message_filter), values, _INDEX_SETTINGS)
    by_meaning = _nearest_pieces(message_filter, values)
    numbers, words, counts, messages = by_words[0] if by_words else (None,) * 4
    values["numbers"] = [*(numbers or ()), *_unindexed_numbers(lexemes, message_filter)]
    values["ids"] = list({message_id for (message_id,) in by_meaning or ()})
    scored = _fetch_within_limit(_SCORED, values)
    # The rarity of each word; the sum is 1.
    count_of = dict(zip(words or (), counts or (), strict=True))
    total = max([messages or 0, *count_of.values(), 1])
    idf = {
        word: math.log1p((total - count_of.get(word, 0) + 0.5) / (count_of.get(word, 0) + 0.5))
        for word in word_of.values()
    }
    found = []
    for message_id, cosine, terms in scored or ():
        # Without vector and words, the message was found among those that are not indexed yet.
        in_message = {word_of[term] for term in terms or ()}
        share = sum(idf[word] for word in in_message) / (sum(idf.values()) or 1)
        share = 1.0 if cosine is None and not in_message else share
        if share or (cosine or 0) >= conf.SEARCH_FLOOR:
            found.append(((cosine or 0) + WORDS_WEIGHT * share, message_id, cosine, share))
    found.sort(key=lambda item: (-item[0], item[1]))
    best = found[: min(limit, MAX_HITS)]
    rows = models.Message.objects.in_bulk([message_id for _, message_id, *_ in best])
    hits = [
        MessageHit(rows[message_id], score, cosine, share)
        for score, message_id, cosine, share in best
        if message_id in rows
    ]
    return MessageSearchResult(hits, is_partial=None in (by_words, by_meaning, scored))


def _words_sql(message_filter: MessageFilter) -> str:
    of_scope = message_filter.condition("agent_id", "user_id")
    if message_filter.user_id is not None:
        word = _WORD_OF_PERSON.format(of_scope=of_scope)
    else:
        word = _WORD.format(of_agent=_OF_AGENT.format(of_scope=of_scope) if of_scope else "")
    of_message = message_filter.condition("channel", "since", "until")
    return _BY_WORDS.format(
        word=word, of_message=_OF_MESSAGE.format(narrowing=of_message) if of_message else ""
    )


def _nearest_pieces(message_filter: MessageFilter, values: dict[str, Any]) -> list[Any] | None:
    condition = message_filter.condition()
    if condition:
        few = _fetch_within_limit(_FEW.format(narrowing=condition), values)
        if few is not None and few[0][0]:
            return _fetch_within_limit(_BY_MEANING_OF_FEW.format(narrowing=condition), values)
    and_narrowing = _AND_NARROWING.format(narrowing=condition) if condition else ""
    return _fetch_within_limit(
        _BY_MEANING.format(and_narrowing=and_narrowing), values, _HNSW_SETTINGS
    )


def _fetch_within_limit(
    statement: str, values: dict[str, Any], settings: dict[str, str] | None = None
) -> list[Any] | None:
    """Return the rows of a read, or None if it takes longer than LIMIT_SECONDS."""
    milliseconds = str(1000 * LIMIT_SECONDS)
    try:
        # Rolled back, so that the settings are reset.
        with transaction.atomic():
            tenant_connection().set_local({**(settings or {}), "statement_timeout": milliseconds})
            rows = fetch_all(statement, values)
            transaction.set_rollback(True)
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", "") != QUERY_CANCELED:
            raise
        return None
    return rows


def _unindexed_numbers(lexemes: Mapping[str, str], message_filter: MessageFilter) -> list[int]:
    """Return the numbers of messages with all words that are not indexed yet."""
    conditions: dict[str, Any] = {
        "message__agent_id": message_filter.agent_id,
        "message__user_id": message_filter.user_id,
        "message__channel": message_filter.channel,
        "message__created_at__gte": message_filter.since,
        "message__created_at__lt": message_filter.until,
    }
    newest = models.PendingEmbedding.objects.order_by("-message__number").values("pk")
    rows = models.PendingEmbedding.objects.filter(
        pk__in=newest[:MAX_UNINDEXED],
        **{name: value for name, value in conditions.items() if value is not None},
    )
    return [
        number
        for number, text in rows.values_list("message__number", "message__content")
        if lexemes
        and {lexemes.get(lexeme) for lexeme in lexical.lexemes(text)}.issuperset(lexemes.values())
    ]
