"""What speaks for each message of a scope: one statement, whose answer numpy reads as it stands.

A scope of up to WHOLE_SCOPE messages is read as a whole, by one statement that first counts, no
further than it must, and does nothing else where there are more. A larger one is known to be large
from then on and has a statement of its own: candidates come first, the best by the rarest of the
question's words, the nearest by HNSW, and the turns around both; then those are read in the same
way. Either is one round trip, and is weighed in ranking.py.

The first row is the evidence, columns as arrays in Postgres' binary format; handing hundreds of
rows from step to step, and each to Python, took longer than all else. The texts follow, a row each,
and only those of what is found are read. Where there are too many, or the turns around are asked
for, they are fetched when it is known which.

Both are sent prepared, planned once for whatever scope is asked for (TenantPreparedCursor), since
to plan them for their values took a fifth of a recall. So nothing may depend on what the planner
takes a scope's size to be. It is left indexes alone, in their order, and there are fences, each
against a plan that was seen (docs/decisions/0017 has them):
- MATERIALIZED: a one-row CTE in a cross join was inlined and computed for every row; a condition on
  agent and user was pushed in, and read the whole scope instead of the messages that are named.
- CASE around the scope's columns: HNSW is the only index that is left.
- LATERAL, OFFSET 0: each word and each message is looked up by itself, however many there may be.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from struct import pack, unpack_from
from typing import Any, Final, NamedTuple
from uuid import UUID

import numpy as np
from django.db.backends.utils import CursorWrapper
from numpy.typing import NDArray

# Messages that are all weighed: at the limit both ways take about the same time.
WHOLE_SCOPE: Final = 2_000
# Texts come with the evidence while they hold no more words than this: some 600 kB.
WORDS_ALONG: Final = 100_000
# In a larger scope, candidates by words, and pieces by HNSW, of which a message has two or three.
CANDIDATES: Final = 30
CANDIDATE_PIECES: Final = 40
HNSW_EF_SEARCH: Final = 40
# The words that lead to candidates: the rarest, up to this many messages that hold them together.
CANDIDATE_POSTINGS: Final = 1_500
# A word is counted up to here, against a large scope taken to be of this size: what is more common
# than that tells little, and counting on would take longer than the rest.
MOST_COUNTED: Final = 1_500
LARGE_SCOPE: Final = 10_000

LIMITS: Final = {
    "whole_scope": WHOLE_SCOPE,
    "words_along": WORDS_ALONG,
    "candidates": CANDIDATES,
    "candidate_pieces": CANDIDATE_PIECES,
    "candidate_postings": CANDIDATE_POSTINGS,
    "most_counted": MOST_COUNTED,
    "large_scope": LARGE_SCOPE,
    "ef_search": str(HNSW_EF_SEARCH),
}

_ENTRY_COLUMNS = """message_number, message_id, session, created_at, words,
           has_time::int + 2 * asks::int + 4 * by_user::int
           + 8 * (subject = ANY (%(names)s::bigint[]))::int"""

_WHOLE = """
entries AS MATERIALIZED (
    SELECT count(*) AS messages, count(*) <= %(whole_scope)s AS whole, sum(words) AS words,
           {entries} AS arrays
    FROM (
        SELECT {entry_columns} AS flags
        FROM memory_indexedmessage
        WHERE scope_id = %(scope)s {until}
        ORDER BY session, created_at, message_number
        LIMIT %(whole_scope)s + 1
    ) AS entry
), counted AS (
    SELECT 0::bigint AS h, 0::float8 AS df WHERE false
), posting AS (
    SELECT h, message_number, w, own FROM memory_posting
    WHERE scope_id = %(scope)s AND h = ANY (%(terms)s::bigint[]) AND (SELECT whole FROM entries)
      {posting_until}
), piece AS (
    SELECT message_id, 1 - (embedding <=> %(vector)s::vector) AS cosine
    FROM memory_conversationembedding
    WHERE tenant_id = %(tenant)s::uuid AND agent_id = %(agent)s::uuid AND user_id = %(user)s
      AND embedding_model = %(model)s AND message_id IS NOT NULL AND (SELECT whole FROM entries)
    OFFSET 0
), spoken AS (
    SELECT * FROM memory_message WHERE (SELECT whole AND words <= %(words_along)s FROM entries)
)"""

_LARGE = """
counted AS MATERIALIZED (
    SELECT h, df, sum(df) OVER (ORDER BY df, h) <= %(candidate_postings)s AS rare
    FROM unnest(%(terms)s::bigint[]) AS asked (h), LATERAL (
        SELECT count(*)::float8 AS df FROM (
            SELECT FROM memory_posting AS posting
            WHERE scope_id = %(scope)s AND posting.h = asked.h AND own
            LIMIT %(most_counted)s
        ) AS few
    ) AS bounded
    WHERE df > 0
), by_words AS MATERIALIZED (
    SELECT message_number
    FROM (
        SELECT h, ln(1 + (%(large_scope)s + %(prior)s - df + .5::float8) / (df + .5::float8)) AS idf
        FROM counted WHERE rare
    ) AS term, LATERAL (
        SELECT message_number, w FROM memory_posting
        WHERE scope_id = %(scope)s AND memory_posting.h = term.h AND own {posting_until}
        OFFSET 0
    ) AS held
    GROUP BY message_number ORDER BY sum(w * idf) DESC LIMIT %(candidates)s
), walk AS MATERIALIZED (
    SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true) IS NOT NULL
           AND set_config('hnsw.ef_search', %(ef_search)s, true) IS NOT NULL AS ready
), by_vector AS MATERIALIZED (
    SELECT message_id FROM memory_conversationembedding AS piece
    WHERE (SELECT ready FROM walk)
      AND CASE WHEN tenant_id = %(tenant)s::uuid AND agent_id = %(agent)s::uuid
                    AND user_id = %(user)s AND embedding_model = %(model)s
                    AND message_id IS NOT NULL {piece_until}
               THEN true ELSE false END
    ORDER BY embedding <=> %(vector)s::vector
    LIMIT %(candidate_pieces)s
), candidate AS MATERIALIZED (
    SELECT * FROM memory_indexedmessage
    WHERE message_number = ANY (ARRAY(SELECT message_number FROM by_words))
    UNION
    SELECT * FROM memory_indexedmessage
    WHERE message_id = ANY (ARRAY(SELECT message_id FROM by_vector))
), turn AS (
    SELECT DISTINCT ON (message_number) {entry_columns} + 16 * near::int AS flags
    FROM (
        SELECT *, true AS near FROM candidate
        UNION ALL
        SELECT turn.*, false FROM candidate, LATERAL (
            (SELECT * FROM memory_indexedmessage AS before
             WHERE scope_id = %(scope)s AND before.session = candidate.session
               AND (before.created_at, before.message_number)
                   < (candidate.created_at, candidate.message_number)
             ORDER BY before.created_at DESC, before.message_number DESC LIMIT 1)
            UNION ALL
            (SELECT * FROM memory_indexedmessage AS after
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
    SELECT %(large_scope)s::bigint AS messages, true AS whole, sum(words) AS words,
           {entries} AS arrays
    FROM entry
), posting AS (
    SELECT h, message_number, w, own FROM memory_posting
    WHERE scope_id = %(scope)s AND h = ANY (ARRAY(SELECT h FROM counted))
      AND message_number = ANY (ARRAY(SELECT message_number FROM entry))
), piece AS (
    SELECT message_id, 1 - (embedding <=> %(vector)s::vector) AS cosine
    FROM entry, LATERAL (
        SELECT embedding FROM memory_conversationembedding
        WHERE message_id = entry.message_id AND embedding_model = %(model)s
        OFFSET 0
    ) AS embedded
), spoken AS MATERIALIZED (
    SELECT * FROM memory_message
    WHERE id = ANY (ARRAY(
        SELECT message_id FROM entry WHERE (SELECT words <= %(words_along)s FROM entries)
    ))
)"""


def _sent(*columns: str) -> str:
    """The columns as arrays in Postgres' binary format, one after the other."""
    return " || ".join(f"array_send(coalesce(array_agg({column}), '{{}}'))" for column in columns)


_ENTRIES = _sent("message_number", "message_id", "session", "created_at", "words", "flags")
_COUNTED = _sent("h", "df")
_POSTINGS = _sent("h", "message_number", "w", "own")
_PIECES = _sent("message_id", "cosine")
_ANSWER = f"""
SELECT messages, whole, coalesce(words, 0) <= %(words_along)s,
       arrays || (SELECT {_COUNTED} FROM counted) || (SELECT {_POSTINGS} FROM posting)
       || (SELECT {_PIECES} FROM piece),
       NULL::bigint, NULL::text, NULL::text, NULL::text, NULL::text, NULL::text
FROM entries
"""  # noqa: S608  (constants)
_TEXT_COLUMNS = "number, external_id, thread_id, role, name, content"
_EVIDENCE_COLUMNS = 4
_OWN = "tenant_id = %(tenant)s::uuid AND agent_id = %(agent)s::uuid AND user_id = %(user)s"
_TEXTS_ALONG = """
UNION ALL
SELECT NULL, NULL, NULL, NULL, {columns} FROM spoken WHERE {own}
"""

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
def evidence_sql(*, large: bool, until: bool, texts: bool) -> str:
    """The statement that reads what speaks for a scope's messages.

    Its first row is the evidence. Where a scope that is not `large` has more than WHOLE_SCOPE
    messages, `whole` is false there, and nothing else was read.

    Args:
        large: by candidates.
        until: as of a moment, %(at)s: nothing that was said later is seen or counted. (Of a
            large scope's words the later ones are counted, which moves all scores alike.)
        texts: the texts come along.
    """
    moments = {
        "until": "AND created_at <= %(at)s",
        "posting_until": "AND (SELECT created_at FROM memory_indexedmessage AS said"
        " WHERE said.message_number = memory_posting.message_number) <= %(at)s",
        "piece_until": "AND (SELECT created_at FROM memory_message AS said"
        " WHERE said.id = piece.message_id) <= %(at)s",
    }
    moments = moments if until else dict.fromkeys(moments, "")
    parts = (_LARGE if large else _WHOLE).format(
        **moments, entry_columns=_ENTRY_COLUMNS, entries=_ENTRIES
    )
    along = _TEXTS_ALONG.format(columns=_TEXT_COLUMNS, own=_OWN) if texts else ""
    return f"WITH {parts} {_ANSWER} {along}"


@cache
def texts_sql(*, until: bool, neighbours: bool) -> str:
    """The statement that reads the texts of messages, with the turns around each if asked for."""
    turns = "NULL"
    if neighbours:
        turns = _NEIGHBOURS.format(
            same_thread=_SAME_THREAD, until="AND turn.created_at <= %(at)s" if until else ""
        )
    return _TEXTS.format(columns=_TEXT_COLUMNS, neighbours=turns, own=_OWN)


HAS_TIME, ASKS, BY_USER, BY_NAME, NEAR = 1, 2, 4, 8, 16


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for the messages of a scope. Arrays of one group are of one length."""

    large: bool
    """Candidates alone, and the turns around them."""
    messages: int
    """Of the scope; of a large one, what it is taken to be."""
    along: bool
    """The texts came along."""

    number: NDArray[np.int64]
    """Of each message, those of a session together, turn after turn: Message.number."""
    ids: NDArray[np.uint64]
    """Both halves of each."""
    session: NDArray[np.int64]
    created_at: NDArray[np.int64]
    """Microseconds since 2000."""
    words: NDArray[np.int32]
    flags: NDArray[np.int32]
    """HAS_TIME and its like, added up."""

    counted_term: NDArray[np.int64]
    """Of each word of a large scope. Of a whole one the postings tell."""
    counted: NDArray[np.float64]
    """How many messages hold it."""

    posting_term: NDArray[np.int64]
    """Of each posting."""
    posting_number: NDArray[np.int64]
    posting_weight: NDArray[np.float32]
    posting_own: NDArray[np.bool_]

    piece_ids: NDArray[np.uint64]
    """Of each piece: its message's."""
    piece_cosine: NDArray[np.float64]


_KINDS = (
    *(">i8", "2>u8", ">i8", ">i8", ">i4", ">i4"),
    *(">i8", ">f8"),
    *(">i8", ">i8", ">f4", "?"),
    *("2>u8", ">f8"),
)
_ITEMS = tuple(np.dtype([("length", ">i4"), ("value", kind)]) for kind in _KINDS)


class Text(NamedTuple):
    """A message as it was said, with the turns around it as JSON if they were asked for."""

    number: int
    external_id: str | None
    thread_id: str
    role: str
    name: str
    content: str
    neighbours: list[list[Any]] | None = None


def gather_whole(cursor: CursorWrapper, values: Mapping[str, Any]) -> Evidence | None:
    """Read the evidence of all messages; None where there are more than WHOLE_SCOPE."""
    messages, whole, along, arrays = _first_row(cursor, values, large=False)
    return Evidence(False, messages, along, *_unpacked(arrays)) if whole else None


def gather_candidates(cursor: CursorWrapper, values: Mapping[str, Any]) -> Evidence:
    """Read the evidence of the messages that may be the best, and of the turns around them."""
    messages, _, along, arrays = _first_row(cursor, values, large=True)
    return Evidence(True, messages, along, *_unpacked(arrays))


def _first_row(
    cursor: CursorWrapper, values: Mapping[str, Any], *, large: bool
) -> tuple[int, bool, bool, bytes]:
    texts = not values["neighbours"]
    cursor.execute(evidence_sql(large=large, until=values["at"] is not None, texts=texts), values)
    messages, whole, along, arrays = cursor.fetchone()[:_EVIDENCE_COLUMNS]
    return messages, whole, along and texts, arrays


def read_texts(
    cursor: CursorWrapper, values: Mapping[str, Any], evidence: Evidence, found: Mapping[int, UUID]
) -> dict[int, Text]:
    """The texts of messages: those that came along, or else by a statement of their own.

    Args:
        cursor: the one that the evidence was read by.
        found: numbers and ids of the messages.
    """
    if not found:
        return {}
    if evidence.along:
        rows = _rows_along(cursor, found)
    else:
        until, neighbours = values["at"] is not None, values["neighbours"] > 0
        cursor.execute(
            texts_sql(until=until, neighbours=neighbours),
            {**values, "ids": list(found.values())},
        )
        rows = cursor.fetchall()
    return {row[0]: Text(*row) for row in rows}


def _rows_along(cursor: CursorWrapper, numbers: Collection[int]) -> Iterator[tuple[Any, ...]]:
    """The rows of these messages, found by their numbers as sent: no other row is converted."""
    wanted = {pack(">q", number) for number in numbers}
    answer = cursor.pgresult
    for row in range(answer.ntuples):
        if answer.get_value(row, _EVIDENCE_COLUMNS) in wanted:
            cursor.scroll(row, mode="absolute")
            yield cursor.fetchone()[_EVIDENCE_COLUMNS:]


def _unpacked(sent: bytes) -> Iterator[NDArray[Any]]:
    """Arrays in Postgres' binary format: each a header, then every value after its length."""
    start = 0
    for item in _ITEMS:
        dimensions, _, _, *sizes = unpack_from(">iIIii" if sent[start + 3] else ">iII", sent, start)
        count, start = (sizes[0], start + 20) if dimensions else (0, start + 12)
        values = np.frombuffer(sent, item, count, start)["value"]
        yield values.astype(values.dtype.newbyteorder("="))
        start += count * item.itemsize
