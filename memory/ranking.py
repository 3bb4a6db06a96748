"""The statements of a recall: every sign of a scope's messages, and the best with their text.

A scope of up to WHOLE_SCOPE messages is weighed as a whole, by one statement that first counts, no
further than it must, and does nothing else where there are more. A larger one is known to be large
from then on and has a statement of its own: candidates come first, the best by the rarest of the
question's words, the nearest by HNSW, and the turns around both; then those are weighed in the same
way. Either is one round trip. A message that asks the same as the question is an `echo`: near to
it, and no answer; the words that a turn has from the echo before it do not count.

Fences, each against a plan that was seen (docs/decisions has them):
- MATERIALIZED: a one-row CTE in a cross join was inlined and computed for every row.
- OFFSET 0 around FULL JOIN: without statistics the planner took nested loops over hundreds of rows;
  a full join can only be hashed or merged, unless a condition above makes it another.
- CASE around the scope's columns: HNSW is the only index that knows the order, and an opaque
  condition passes for half of the rows, so that neither statistics nor their lack lead elsewhere.
- `= ANY (ARRAY(SELECT …))`: a join with the terms became a merge join over the whole scope.
- One statement for both sizes was planned for 3.5 ms, longer than it took to run.

Values are bound on the client's side (Django's default), so that the planner sees them.
"""

from functools import cache
from typing import Final

# Messages that are all weighed: 20 ms at the limit, where candidates would take 13.
WHOLE_SCOPE: Final = 5_000
# In a larger scope, candidates by words, and pieces by HNSW, of which a message has two or three.
CANDIDATES: Final = 40
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
    "candidates": CANDIDATES,
    "candidate_pieces": CANDIDATE_PIECES,
    "candidate_postings": CANDIDATE_POSTINGS,
    "most_counted": MOST_COUNTED,
    "large_scope": LARGE_SCOPE,
    "ef_search": str(HNSW_EF_SEARCH),
}

_ENTRY_COLUMNS = """message_number, message_id, session, created_at, words, has_time, asks,
           subject = ANY (%(names)s::bigint[]) AS by_name,
           CASE WHEN by_user THEN %(names_user)s ELSE %(names_agent)s END AS addressed"""

_WHOLE = """
entry AS MATERIALIZED (
    SELECT {entry_columns}, false AS near
    FROM memory_indexedmessage
    WHERE scope_id = %(scope)s {until}
    LIMIT %(whole_scope)s + 1
), bounded AS MATERIALIZED (
    SELECT count(*)::float8 AS messages, count(*) <= %(whole_scope)s AS whole FROM entry
), posting AS MATERIALIZED (
    SELECT h, message_number, w, own FROM memory_posting
    WHERE scope_id = %(scope)s AND h = ANY (%(terms)s::bigint[]) AND (SELECT whole FROM bounded)
      {posting_until}
), counted AS (
    SELECT h, count(*) FILTER (WHERE own)::float8 AS df FROM posting GROUP BY h
), piece AS (
    SELECT message_id, 1 - (embedding <=> %(vector)s::vector) AS cosine
    FROM memory_conversationembedding
    WHERE tenant_id = %(tenant)s::uuid AND agent_id = %(agent)s::uuid AND user_id = %(user)s
      AND embedding_model = %(model)s AND message_id IS NOT NULL AND (SELECT whole FROM bounded)
    OFFSET 0
)"""

_LARGE = """
bounded AS MATERIALIZED (
    SELECT %(large_scope)s::float8 AS messages, true AS whole
), counted AS MATERIALIZED (
    SELECT h, df, sum(df) OVER (ORDER BY df, h) <= %(candidate_postings)s AS rare
    FROM unnest(%(terms)s::bigint[]) AS asked (h), LATERAL (
        SELECT count(*)::float8 AS df FROM (
            SELECT FROM memory_posting AS posting
            WHERE scope_id = %(scope)s AND posting.h = asked.h AND own
            LIMIT %(most_counted)s
        ) AS few
    ) AS bounded
    WHERE df > 0
), rare_posting AS MATERIALIZED (
    SELECT h, message_number, w, own FROM memory_posting
    WHERE scope_id = %(scope)s AND h = ANY (ARRAY(SELECT h FROM counted WHERE rare))
      {posting_until}
), by_words AS MATERIALIZED (
    SELECT message_number FROM rare_posting JOIN term USING (h)
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
      AND scope_id = %(scope)s
    UNION
    SELECT * FROM memory_indexedmessage
    WHERE message_id = ANY (ARRAY(SELECT message_id FROM by_vector)) AND scope_id = %(scope)s
), entry AS MATERIALIZED (
    SELECT DISTINCT ON (message_number) {entry_columns}, near
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
), posting AS (
    SELECT h, message_number, w, own FROM rare_posting
    UNION ALL
    SELECT h, message_number, w, own FROM memory_posting
    WHERE scope_id = %(scope)s AND h = ANY (ARRAY(SELECT h FROM counted WHERE NOT rare))
      AND message_number = ANY (ARRAY(SELECT message_number FROM entry))
), piece AS (
    SELECT message_id, 1 - (embedding <=> %(vector)s::vector) AS cosine
    FROM memory_conversationembedding
    WHERE message_id = ANY (ARRAY(SELECT message_id FROM entry)) AND embedding_model = %(model)s
    OFFSET 0
)"""

_QUESTION = """
term AS MATERIALIZED (
    SELECT h, ln(1 + (messages + %(prior)s - df + .5::float8) / (df + .5::float8)) AS idf
    FROM counted, bounded
), question AS MATERIALIZED (
    SELECT messages, ln(1 + messages + %(prior)s) AS norm,
           unknown / greatest(known + unknown, 1e-9::float8) AS unknown,
           greatest(known + unknown, 1e-9::float8) AS idf,
           EXISTS (
               SELECT FROM unnest(%(proper_names)s::bigint[]) AS name
               WHERE name <> ALL (ARRAY(SELECT h FROM term))
           ) AS unknown_name
    FROM bounded,
         (SELECT coalesce(sum(idf), 0) AS known, count(*) AS found FROM term) AS found,
         LATERAL (
             SELECT (cardinality(%(terms)s::bigint[]) - found)
                    * ln(1 + (messages + %(prior)s + .5::float8) / .5::float8) AS unknown
         ) AS rest
), echo AS MATERIALIZED (
    SELECT message_number FROM posting
    WHERE %(is_question)s AND own AND h = ANY (%(said_terms)s::bigint[])
      AND message_number = ANY (ARRAY(
          SELECT message_number FROM entry WHERE asks AND words <= %(longest_echo)s
      ))
    GROUP BY message_number HAVING count(*) = cardinality(%(said_terms)s::bigint[])
), reply AS MATERIALIZED (
    SELECT message_number FROM (
        SELECT message_number, lag(message_number) OVER (
            PARTITION BY session ORDER BY created_at, message_number
        ) AS before
        FROM entry WHERE EXISTS (SELECT FROM echo)
    ) AS turn
    WHERE before = ANY (ARRAY(SELECT message_number FROM echo))
), lexical AS (
    SELECT message_number, sum(w * idf) AS lexical, sum(idf) AS covered
    FROM (SELECT * FROM posting FULL JOIN term USING (h) OFFSET 0) AS weighed
    WHERE own OR message_number <> ALL (ARRAY(SELECT message_number FROM reply))
    GROUP BY message_number
), dense AS (
    SELECT DISTINCT ON (message_id) message_id, cosine FROM piece
    ORDER BY message_id, cosine DESC
)"""

# Most of the time goes into handing the scope's rows from step to step: the steps are few, only
# what is read twice is kept (MATERIALIZED), and what the best alone need is worked out for them.
_RANKING = """
base AS MATERIALIZED (
    SELECT message_number, message_id, session, created_at, words, has_time, by_name,
           addressed, near, message_number = ANY (ARRAY(SELECT message_number FROM echo)) AS echo,
           coalesce(cosine, 0) AS cosine, coalesce(lexical, 0) AS lexical,
           coalesce(covered, 0) AS covered,
           coalesce(cosine, 0)
           + %(lexical)s::float8 * coalesce(lexical, 0) / (SELECT norm FROM question) AS base
    FROM (
        SELECT * FROM entry
        FULL JOIN dense USING (message_id) FULL JOIN lexical USING (message_number)
        OFFSET 0
    ) AS evidence
    WHERE (SELECT whole FROM bounded) AND session IS NOT NULL
      AND (cosine IS NOT NULL OR words > 0)
), mean AS MATERIALIZED (
    SELECT avg(cosine) AS cosine, avg(base) AS base,
           coalesce(avg(cosine) FILTER (WHERE NOT near), avg(cosine)) AS far
    FROM base
), session_best AS (
    SELECT session, (bases[1] + coalesce(bases[2], 0) + coalesce(bases[3], 0))
                    / least(cardinality(bases), 3) AS session_base
    FROM (
        SELECT session, array_agg(base ORDER BY base DESC) FILTER (WHERE NOT echo) AS bases
        FROM base GROUP BY session
    ) AS sessions
), placed AS (
    SELECT *, lag(CASE WHEN NOT echo THEN cosine END) OVER turns AS previous,
           lead(CASE WHEN NOT echo THEN base END) OVER turns AS following
    FROM base
    WINDOW turns AS (PARTITION BY session ORDER BY created_at, message_number)
), best AS MATERIALIZED (
    SELECT *, base
           + %(length)s::float8 * ln(1 + words)
           + CASE WHEN by_name OR addressed THEN 2 * %(subject)s::float8 ELSE 0 END
           + CASE WHEN has_time THEN %(time)s::float8 ELSE 0 END
           + %(session)s::float8 * coalesce(session_base, base)
           + %(previous)s::float8 * coalesce(previous, (SELECT cosine FROM mean))
           + %(following)s::float8 * coalesce(following, (SELECT base FROM mean)) AS score
    FROM placed FULL JOIN session_best USING (session)
    ORDER BY echo AND %(gate)s, score DESC, message_number DESC
    LIMIT %(limit)s
)
SELECT (SELECT whole FROM bounded) AS whole, messages, unknown, unknown_name,
       message.id, message.external_id, message.thread_id, message.role, message.name,
       message.content, message.created_at, score, cosine, lexical / norm AS lexical,
       covered / idf AS coverage, coalesce(session_base, base) AS session_base,
       coalesce(previous, 0) AS previous, coalesce(following, 0) AS following,
       by_name, addressed, words, has_time, echo,
       (SELECT far FROM mean) AS mean_cosine, {neighbours} AS neighbours
FROM question LEFT JOIN (
    best AS found JOIN LATERAL (
        SELECT * FROM memory_message WHERE id = found.message_id OFFSET 0
    ) AS message
    ON message.tenant_id = %(tenant)s::uuid AND message.agent_id = %(agent)s::uuid
       AND message.user_id = %(user)s
) ON score IS NOT NULL
ORDER BY echo AND %(gate)s, score DESC, message.number DESC
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
def ranking_sql(*, large: bool, until: bool, neighbours: bool) -> str:
    """The statement that ranks a scope's messages.

    It always gives a row: where there is nothing, or a scope that is not `large` has more than
    WHOLE_SCOPE messages (`whole` is false then), one without a message.

    Args:
        large: by candidates.
        until: as of a moment, %(at)s: nothing that was said later is seen or counted. (Of a
            large scope's words the later ones are counted, which moves all scores alike.)
        neighbours: with so many turns, %(neighbours)s, before and after each.
    """
    moments = {
        "until": "AND created_at <= %(at)s",
        "posting_until": "AND (SELECT created_at FROM memory_indexedmessage AS said"
        " WHERE said.message_number = memory_posting.message_number) <= %(at)s",
        "piece_until": "AND (SELECT created_at FROM memory_message AS said"
        " WHERE said.id = piece.message_id) <= %(at)s",
    }
    moments = moments if until else dict.fromkeys(moments, "")
    turns = "NULL"
    if neighbours:
        turns = _NEIGHBOURS.format(
            same_thread=_SAME_THREAD, until="AND turn.created_at <= %(at)s" if until else ""
        )
    evidence = (_LARGE if large else _WHOLE).format(**moments, entry_columns=_ENTRY_COLUMNS)
    ranking = _RANKING.format(neighbours=turns)
    # RECURSIVE only lets the parts stand in the order in which they are read.
    return f"WITH RECURSIVE {evidence}, {_QUESTION}, {ranking}"
