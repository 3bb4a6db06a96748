"""The statements of a recall.

All have one generic plan for all scopes (PLAN_SETTINGS), which must not depend on the planner's
estimate of a scope's size. Only indexes are enabled, and each of these fences prevents a plan that
was observed (docs/decisions/0017 has them):
- MATERIALIZED: a one-row CTE in a cross join was inlined and computed for every row; a condition on
  agent and user was pushed down, and read the whole scope instead of the named messages.
- CASE around the scope's columns: only the HNSW index remains.
- BETWEEN a value and itself, in its order: only the index of quantized vectors has that order.
- LATERAL, OFFSET 0: each word and each message is looked up separately, for any number of them.
"""

from enum import IntEnum
from functools import cache

from memory.text.lexical import CONTEXT_WEIGHTS


class Strategy(IntEnum):
    """How a scope is read, by its size."""

    WHOLE = 0
    """All of it."""
    QUANTIZED = 1
    """Candidates: by words, and the nearest pieces, by a scan of the scope's quantized vectors."""
    HNSW = 2
    """Candidates: by words, and the nearest pieces, by a walk through all scopes' HNSW index."""


# The nearest pieces that a walk looks at.
HNSW_EF_SEARCH = 32
# Parameters of the statements.
LIMITS = {
    # Up to this number, all messages of a scope are weighed. At the limit candidates would take
    # half the time or less, but all messages give better results, and the gate was fitted to them.
    "whole_scope": 2_000,
    # A scan takes .4 µs for each piece of the scope; a walk takes 1.2 ms divided by the scope's
    # share of all pieces. They take equal time at this number of messages times the root of all
    # messages. Up to another size, at which the difference is small, a scan is used in any case:
    # the number of all messages may be unknown.
    "scanned_to_root": 35,
    "scanned_at_least": 5_000,
    # Of the scanned pieces, those whose vectors are compared: signs alone are not precise enough.
    "rescored_pieces": 200,
    # Metadata of a message up to this size are read with its text; larger ones separately.
    "metadata_along": 256,
    # In a larger scope, candidates by words, and pieces by vector, of which a message has two or
    # three.
    "candidates": 25,
    "candidate_pieces": 16,
    # Candidates come from the rarest words, up to this many messages with any of them.
    "candidate_postings": 1_500,
    # The best of these messages, which are checked for the question's other words.
    "compared": 150,
    # The newest facts of an agent and user that are compared, the number whose texts are read with
    # the evidence, and in a large scope the number of nearest facts whose messages become
    # candidates.
    "most_facts": 5_000,
    "facts_along": 40,
    "candidate_facts": 16,
    # A word is counted up to this limit: more common words have little weight, and further counting
    # would take longer than the rest. The same holds for counting the messages of a scope that is
    # walked.
    "most_counted": 600,
    "large_scope": 10_000,
    "context": len(CONTEXT_WEIGHTS),
}

# The facts with evidence in messages of the scope, and their evidence.
_FACTS = """
fact AS MATERIALIZED (
    SELECT coalesce(version_of, memory_id) AS memory_id, memory_id AS version_id, content,
           1 - (embedding <=> %(vector)s::vector) AS cosine, {is_valid} AS is_valid
    FROM memory_memoryentry
    WHERE {own} AND embedding_model = %(model)s AND ({is_valid} OR {has_ended})
    ORDER BY created_at DESC LIMIT %(most_facts)s
), cited AS MATERIALIZED (
    SELECT fact.memory_id, fact.version_id, content, cosine, is_valid, message_id, start, "end",
           quote
    FROM fact, LATERAL (
        SELECT message_id, start, "end", quote FROM memory_factevidence AS evidence
        WHERE {is_evidence} {evidence_until}
        OFFSET 0
    ) AS evidence
)"""
_IS_VALID = """version_of IS NULL AND state = 'active'
      AND valid_from <= now() AND (valid_to IS NULL OR valid_to > now())
      AND (expires_at IS NULL OR expires_at > now())"""
# As `MemoryEntryQuerySet.as_of`.
_WAS_VALID = """(state IN ('active', 'superseded') OR state = 'retracted' AND retracted_at > %(at)s)
      AND valid_from <= %(at)s AND (valid_to IS NULL OR valid_to > %(at)s)
      AND (expires_at IS NULL OR expires_at > %(at)s)"""
# A fact that was true and has ended still describes its messages. It raises their score, and is not
# returned itself. Without this, R@5 was .764 instead of .773 and R@10 .828 instead of .837, for 27
# of 690 facts (benchmarks/facts/recorded.py on LoCoMo 0-3). OFFSET 0: the exclusions of a fact are
# looked up, otherwise the planner may read those of all scopes.
_HAS_ENDED = """version_of IS NULL AND state IN ('active', 'superseded')
      AND (expires_at IS NULL OR expires_at > now())
      AND NOT EXISTS (SELECT FROM memory_recallexclusion AS corrected
                      WHERE corrected.memory_id = memory_memoryentry.memory_id OFFSET 0)"""
# A version with the fact's content has the fact's evidence too.
_IS_EVIDENCE_OF_VERSION = """(evidence.memory_id = fact.version_id OR evidence.memory_id = (
            SELECT standing.memory_id FROM memory_memoryentry AS standing
            WHERE standing.memory_id = fact.memory_id AND standing.content = fact.content
        ))"""
# Facts with evidence in the messages, and the exclusions from recall. The remaining pieces of an
# excluded message come with their cosines.
_FACTS_AND_EXCLUSIONS = """
WITH {facts}, nearest AS MATERIALIZED (
    SELECT memory_id, version_id, content, cosine FROM cited
    WHERE is_valid
    GROUP BY memory_id, version_id, content, cosine
    ORDER BY cosine DESC, version_id LIMIT %(facts_along)s
), quoted AS MATERIALIZED (
    SELECT version_id, json_agg(json_build_array(message_id, start, "end", quote, said.created_at)
                                ORDER BY message_id, start) AS quotes
    FROM cited, LATERAL (
        SELECT created_at FROM memory_message WHERE id = message_id OFFSET 0
    ) AS said
    WHERE version_id IN (SELECT version_id FROM nearest) GROUP BY version_id
)
SELECT (SELECT {pieces} FROM cited),
       (SELECT json_agg(json_build_array(memory_id, content, cosine, quotes)
                        ORDER BY cosine DESC, version_id)
        FROM nearest JOIN quoted USING (version_id)),
       (SELECT json_agg(json_build_array(message_id, start, "end", memory_id, reason,
            CASE WHEN start IS NOT NULL THEN
                (SELECT content FROM memory_message WHERE id = message_id) END,
            CASE WHEN start IS NOT NULL THEN (
                SELECT json_agg(json_build_array(
                    content, 1 - (embedding <=> %(vector)s::vector)) ORDER BY piece)
                FROM memory_conversationembedding AS piece
                WHERE piece.message_id = excluded.message_id AND embedding_model = %(model)s
            ) END) ORDER BY created_at, id)
        FROM memory_recallexclusion AS excluded WHERE {own} {excluded_until})
"""

# A whole scope. If it has too many messages, each statement stops after counting them.
_TURNS = """
WITH entries AS MATERIALIZED (
    SELECT count(*) AS messages, count(*) <= %(whole_scope)s AS fits, {packed_rows} AS packed_rows
    FROM (
        SELECT card, words, lexemes FROM memory_indexedmessage
        WHERE scope_id = %(scope)s {until}
        ORDER BY session, created_at, message_number
        LIMIT %(whole_scope)s + 1
    ) AS entry
), posting AS (
    SELECT lexeme_hash, message_number, weight FROM memory_posting
    WHERE scope_id = %(scope)s AND lexeme_hash = ANY (%(terms)s::bigint[])
      AND (SELECT fits FROM entries)
      {posting_until}
)
SELECT messages, fits, packed_rows, (SELECT {postings} FROM posting), NULL::bytea, NULL::uuid[]
FROM entries
"""
_PIECE_COSINES = """
SELECT {pieces} FROM (
    SELECT message_id, 1 - (embedding <=> %(vector)s::vector) AS cosine
    FROM memory_conversationembedding
    WHERE {own} AND embedding_model = %(model)s AND message_id IS NOT NULL
      AND NOT EXISTS (SELECT FROM memory_indexedmessage WHERE scope_id = %(scope)s {until}
                      OFFSET %(whole_scope)s)
    OFFSET 0
) AS piece
"""
# For an earlier time, or with filters: any scope may be small, so each piece is compared.
_PIECE_COSINES_AS_OF = """
SELECT {pieces} FROM (
    SELECT message_id, 1 - (embedding <=> %(vector)s::vector) AS cosine
    FROM (
        SELECT message_id AS id FROM memory_indexedmessage
        WHERE scope_id = %(scope)s {until}
          AND NOT EXISTS (SELECT FROM memory_indexedmessage WHERE scope_id = %(scope)s {until}
                          OFFSET %(whole_scope)s)
    ) AS turn, {embedded}
) AS piece
"""

# The nearest pieces of a large scope. A scan reads the signs of all vectors from an index, then the
# vectors of those with the most similar signs. If the scope is too large, nothing is scanned.
_QUANTIZED = """
), alike AS MATERIALIZED (
    SELECT id FROM (
        SELECT id, quantized FROM memory_conversationembedding AS piece
        WHERE (SELECT fits FROM size)
          AND {own} AND embedding_model BETWEEN %(model)s AND %(model)s
          AND message_id IS NOT NULL {piece_until}
        ORDER BY embedding_model OFFSET 0
    ) AS scanned
    ORDER BY quantized <~> (SELECT binary_quantize(%(vector)s::vector))
    LIMIT %(rescored_pieces)s
), by_vector AS MATERIALIZED (
    SELECT message_id FROM (
        SELECT message_id, embedding <=> %(vector)s::vector AS distance
        FROM memory_conversationembedding WHERE id = ANY (ARRAY(SELECT id FROM alike))
        OFFSET 0
    ) AS rescored
    ORDER BY distance LIMIT %(candidate_pieces)s"""
_SIZE_OF_QUANTIZED = """
    SELECT count(*) AS messages, coalesce(count(*) <= min(most), true) AS fits
    FROM (
        SELECT greatest(%(scanned_at_least)s, %(scanned_to_root)s * sqrt(greatest(0, (
            SELECT reltuples FROM pg_class WHERE oid = 'memory_indexedmessage'::regclass
        ))))::bigint AS most
    ) AS scanned, LATERAL (
        SELECT FROM memory_indexedmessage WHERE scope_id = %(scope)s {until} LIMIT most + 1
    ) AS entry"""
# A walk from the nearest pieces of all scopes, skipping those of other scopes.
_HNSW = """
), by_vector AS MATERIALIZED (
    SELECT message_id FROM memory_conversationembedding AS piece
    WHERE CASE WHEN tenant_id = %(tenant)s::uuid AND agent_id = %(agent)s::uuid
                    AND user_id = %(user)s AND embedding_model = %(model)s
                    AND message_id IS NOT NULL {piece_until}
               THEN true ELSE false END
    ORDER BY embedding <=> %(vector)s::vector
    LIMIT %(candidate_pieces)s"""
# Settings for the statements: indexes in the order of the statement, since no statistics describe
# the rows that it will read.
PLAN_SETTINGS = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_sort": "off",
    "hnsw.iterative_scan": "relaxed_order",
    "hnsw.ef_search": str(HNSW_EF_SEARCH),
}
_SIZE_OF_HNSW = """
    SELECT %(large_scope)s::bigint AS messages, true AS fits"""

# A large scope. The first statement finds the candidates. Each turn is a candidate (2), beside one
# (1), or read only for its words (0), which count for the turns after it.
_TURNS_OF_CANDIDATES = """
WITH {facts}, size AS MATERIALIZED (
{size}
), counted AS MATERIALIZED (
    SELECT lexeme_hash, df, ln(
               1 + ((SELECT messages FROM size) + %(prior)s - df + .5::float8) / (df + .5::float8)
           ) AS idf,
           (df < %(most_counted)s AND sum(df) OVER rarest_first <= %(candidate_postings)s)
           OR row_number() OVER rarest_first = 1 AS rare
    FROM unnest(%(terms)s::bigint[]) AS asked (lexeme_hash), LATERAL (
        SELECT count(*)::float8 AS df FROM (
            SELECT FROM memory_posting AS posting
            WHERE scope_id = %(scope)s AND posting.lexeme_hash = asked.lexeme_hash
            LIMIT %(most_counted)s
        ) AS few
    ) AS bounded
    WHERE df > 0
    WINDOW rarest_first AS (ORDER BY df, lexeme_hash)
), by_rare_words AS MATERIALIZED (
    SELECT message_number, sum(weight * idf) AS weight
    FROM counted, LATERAL (
        SELECT message_number, weight FROM memory_posting
        WHERE scope_id = %(scope)s AND memory_posting.lexeme_hash = counted.lexeme_hash
          {posting_until}
        LIMIT %(candidate_postings)s
    ) AS held
    WHERE rare
    GROUP BY message_number ORDER BY weight DESC LIMIT %(compared)s
), by_words AS MATERIALIZED (
    SELECT message_number
    FROM (
        SELECT message_number, weight FROM by_rare_words
        UNION ALL
        SELECT message_number, weight * idf FROM counted, LATERAL (
            SELECT message_number, weight FROM memory_posting
            WHERE scope_id = %(scope)s AND memory_posting.lexeme_hash = counted.lexeme_hash
              AND message_number = ANY (ARRAY(SELECT message_number FROM by_rare_words))
            OFFSET 0
        ) AS held
        WHERE NOT rare
    ) AS word
    GROUP BY message_number ORDER BY sum(weight) DESC LIMIT %(candidates)s
{nearest}
), candidate AS MATERIALIZED (
    SELECT {turn} FROM memory_indexedmessage
    WHERE message_number = ANY (ARRAY(SELECT message_number FROM by_words))
    UNION
    SELECT {turn} FROM memory_indexedmessage
    WHERE message_id = ANY (ARRAY(SELECT message_id FROM by_vector))
    UNION
    SELECT {turn} FROM memory_indexedmessage
    WHERE message_id = ANY (ARRAY(
        SELECT message_id FROM cited ORDER BY cosine DESC LIMIT %(candidate_facts)s
    ))
), turn AS (
    SELECT DISTINCT ON (message_number) * FROM (
        SELECT *, 2::smallint AS near FROM candidate
        UNION ALL
        SELECT turn.* FROM candidate, LATERAL (
            (SELECT {turn}, (row_number() OVER last_first = 1)::int::smallint
             FROM memory_indexedmessage AS before
             WHERE scope_id = %(scope)s AND before.session = candidate.session
               AND (before.created_at, before.message_number)
                   < (candidate.created_at, candidate.message_number)
             WINDOW last_first AS (ORDER BY before.created_at DESC, before.message_number DESC)
             ORDER BY before.created_at DESC, before.message_number DESC
             LIMIT %(context)s)
            UNION ALL
            (SELECT {turn}, 1::smallint FROM memory_indexedmessage AS after
             WHERE scope_id = %(scope)s AND after.session = candidate.session
               AND (after.created_at, after.message_number)
                   > (candidate.created_at, candidate.message_number)
             ORDER BY after.created_at, after.message_number LIMIT 1)
        ) AS turn
    ) AS around
    WHERE true {until}
    ORDER BY message_number, near DESC
), entry AS MATERIALIZED (
    SELECT * FROM turn ORDER BY session, created_at, message_number
), entries AS MATERIALIZED (
    SELECT (SELECT messages FROM size) AS messages, (SELECT fits FROM size) AS fits,
           {packed_rows} AS packed_rows, {near} AS near,
           array_agg(message_id) FILTER (WHERE near > 0) AS ids
    FROM entry
), posting AS (
    SELECT lexeme_hash, message_number, weight FROM memory_posting
    WHERE scope_id = %(scope)s AND lexeme_hash = ANY (ARRAY(SELECT lexeme_hash FROM counted))
      AND message_number = ANY (ARRAY(SELECT message_number FROM entry))
)
SELECT messages, fits, packed_rows, (SELECT {postings} FROM posting),
       near || (SELECT {counted} FROM counted), ids
FROM entries
"""
_PIECE_COSINES_OF_CANDIDATES = """
SELECT {pieces} FROM (
    SELECT message_id, 1 - (embedding <=> %(vector)s::vector) AS cosine
    FROM unnest(%(turns)s::uuid[]) AS turn (id),
         {embedded}
) AS piece
"""


def _array_send(*columns: str) -> str:
    """Return the columns as arrays in Postgres' binary format."""
    return " || ".join(f"array_send(coalesce(array_agg({column}), '{{}}'))" for column in columns)


_COLUMNS = {
    "turn": "message_number, message_id, session, created_at, words, lexemes, card",
    "packed_rows": "coalesce(string_agg(card || int4send(lexemes), ''), '')",
    "near": _array_send("near"),
    "counted": _array_send("lexeme_hash", "df"),
    "postings": _array_send("lexeme_hash", "message_number", "weight"),
    "pieces": _array_send("message_id", "cosine"),
    "columns": """number, external_id, thread_id, role, name, content, CASE
        WHEN metadata IS NULL THEN '{}'
        WHEN pg_column_size(metadata) <= %(metadata_along)s THEN metadata::json END AS metadata""",
    "embedded": """LATERAL (
        SELECT message_id, embedding FROM memory_conversationembedding
        WHERE message_id = turn.id AND embedding_model = %(model)s
        OFFSET 0
    ) AS embedded""",
    "own": "tenant_id = %(tenant)s::uuid AND agent_id = %(agent)s::uuid AND user_id = %(user)s",
}

_TEXTS = """
WITH message AS MATERIALIZED (SELECT * FROM memory_message WHERE id = ANY (%(ids)s::uuid[]))
SELECT {columns}, {neighbours} AS neighbours FROM message WHERE {own}
"""
# The turns around a hit, oldest first, as JSON.
_NEIGHBOURS = """
(
    SELECT json_agg(json_build_array(turn.id, turn.role, turn.name, turn.content, turn.created_at)
                    ORDER BY turn.created_at, turn.number)
    FROM (
        (SELECT id, role, name, content, created_at, number FROM memory_message AS turn
         WHERE {same_thread}
           AND (turn.created_at, turn.number) < (message.created_at, message.number)
         ORDER BY turn.created_at DESC, turn.number DESC LIMIT %(neighbours)s)
        UNION ALL
        (SELECT id, role, name, content, created_at, number FROM memory_message AS turn
         WHERE {same_thread}
           AND (turn.created_at, turn.number) > (message.created_at, message.number)
           {until}
         ORDER BY turn.created_at, turn.number LIMIT %(neighbours)s)
    ) AS turn
)"""
_SAME_THREAD = """turn.agent_id = message.agent_id AND turn.user_id = message.user_id
         AND turn.thread_id = message.thread_id"""


@cache
def evidence_sql(strategy: Strategy, *, as_of: bool, filtered: bool) -> tuple[str, str, str]:
    """Return the statements that read the evidence for a scope's messages.

    They read the turns with their stored features, the facts and exclusions, and the distances of
    the pieces. If the scope is too large for the strategy, `fits` is false in the first, and little
    else is read.

    Args:
        strategy: how the scope is read.
        as_of: read the state at the time %(at)s: no later message is read or counted. (Later words
            of a large scope are counted, which shifts all scores equally.)
        filtered: read only some messages: %(among)s by id, %(numbers)s by number.
    """
    conditions = {
        "until": "AND created_at <= %(at)s",
        "posting_until": "AND (SELECT created_at FROM memory_indexedmessage AS said"
        " WHERE said.message_number = memory_posting.message_number) <= %(at)s",
        "piece_until": "AND (SELECT created_at FROM memory_message AS said"
        " WHERE said.id = piece.message_id) <= %(at)s",
        "evidence_until": "AND (SELECT created_at FROM memory_message AS said"
        " WHERE said.id = evidence.message_id) <= %(at)s",
    }
    conditions["excluded_until"] = conditions["until"]
    conditions = conditions if as_of else dict.fromkeys(conditions, "")
    if filtered:
        by_id = "AND {} = ANY (%(among)s::uuid[])"
        conditions["until"] += f" {by_id.format('message_id')}"
        conditions["piece_until"] += f" {by_id.format('piece.message_id')}"
        conditions["evidence_until"] += f" {by_id.format('evidence.message_id')}"
        conditions["posting_until"] += " AND message_number = ANY (%(numbers)s::bigint[])"
    if strategy is Strategy.WHOLE:
        cosines = _PIECE_COSINES_AS_OF if as_of or filtered else _PIECE_COSINES
        turns = _TURNS
    else:
        turns, cosines = _TURNS_OF_CANDIDATES, _PIECE_COSINES_OF_CANDIDATES
    parts = {**conditions, **_COLUMNS}
    size, nearest = _SIZE_OF_HNSW, _HNSW
    if strategy is Strategy.QUANTIZED:
        size, nearest = _SIZE_OF_QUANTIZED, _QUANTIZED
    parts |= {
        "size": size.format(**parts),
        "nearest": nearest.format(**parts),
        "facts": _FACTS.format(
            is_valid=f"({_WAS_VALID if as_of else _IS_VALID})",
            has_ended=_HAS_ENDED,
            is_evidence=_IS_EVIDENCE_OF_VERSION if as_of else "evidence.memory_id = fact.memory_id",
            **parts,
        ),
    }
    return (turns.format(**parts), _FACTS_AND_EXCLUSIONS.format(**parts), cosines.format(**parts))


@cache
def texts_sql(*, as_of: bool, neighbours: bool) -> str:
    """Return the statement that reads the texts of messages, optionally with the turns around
    each.
    """
    turns = "NULL"
    if neighbours:
        turns = _NEIGHBOURS.format(
            same_thread=_SAME_THREAD, until="AND turn.created_at <= %(at)s" if as_of else ""
        )
    return _TEXTS.format(**_COLUMNS, neighbours=turns)
