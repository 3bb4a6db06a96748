"""The one statement of a recall: every sign of every message of a scope, the best with their text.

Each CTE that is fenced (MATERIALIZED, OFFSET 0, FULL JOIN) is fenced against a plan that was seen: a
one-row CTE inlined and computed per row, nested loops over hundreds of rows where the planner knew no
statistics yet, the HNSW index chosen for a scope that is scanned faster. docs/decisions has them.

Values are bound on the client's side (Django's default), so that the planner sees them: a generic
plan takes 150 ms instead of 6 in a big scope.
"""

_POSTING = """
posting AS MATERIALIZED (
    SELECT h, message_number, w, own FROM memory_posting
    WHERE scope_id = %(scope)s AND h = ANY (%(terms)s::bigint[])
)"""

# As of a moment: words that were said later are not counted either.
_POSTING_AT = """
posting AS MATERIALIZED (
    SELECT h, message_number, w, own FROM memory_posting
    WHERE scope_id = %(scope)s AND h = ANY (%(terms)s::bigint[])
      AND message_number IN (SELECT message_number FROM entry)
)"""

_ENTRY = """
entry AS MATERIALIZED (
    SELECT message_number, message_id, session, created_at, words, has_time,
           subject = ANY (%(names)s::bigint[])
           OR CASE WHEN by_user THEN %(names_user)s ELSE %(names_agent)s END AS named
    FROM memory_indexedmessage
    WHERE scope_id = %(scope)s {until}
)"""

_WHOLE_SCOPE = """
scope AS MATERIALIZED (
    SELECT count(*)::float8 AS messages, ln(1 + count(*)::float8) AS norm,
           bool_or(named) AS names_anybody
    FROM entry
), term AS MATERIALIZED (
    SELECT h, ln(1 + (messages - df + .5::float8) / (df + .5::float8)) AS idf
    FROM (SELECT h, count(*) FILTER (WHERE own)::float8 AS df FROM posting GROUP BY h) AS counted,
         scope
), question AS MATERIALIZED (
    SELECT messages, norm, names_anybody,
           unknown / greatest(known + unknown, 1e-9::float8) AS unknown,
           greatest(known + unknown, 1e-9::float8) AS idf
    FROM scope,
         (SELECT coalesce(sum(idf), 0) AS known, count(*) AS found FROM term) AS found,
         LATERAL (SELECT (cardinality(%(terms)s::bigint[]) - found)
                         * ln(1 + (messages + .5::float8) / .5::float8) AS unknown) AS rest
), lexical AS MATERIALIZED (
    SELECT message_number, sum(w * idf) AS lexical, sum(idf) AS covered
    FROM posting JOIN term USING (h)
    GROUP BY message_number
), dense AS MATERIALIZED (
    SELECT message_id, max(cosine) AS cosine
    FROM (
        SELECT message_id, 1 - (embedding <=> %(vector)s::vector) AS cosine
        FROM memory_conversationembedding
        WHERE tenant_id = %(tenant)s::uuid AND agent_id = %(agent)s::uuid AND user_id = %(user)s
          AND embedding_model = %(model)s AND message_id IS NOT NULL
        OFFSET 0
    ) AS piece
    GROUP BY message_id
)"""

_RANKING = """
base AS MATERIALIZED (
    SELECT message_number, message_id, session, created_at, words, has_time, cosine,
           coalesce(lexical, 0) / norm AS lexical, coalesce(covered, 0) / idf AS coverage,
           CASE WHEN NOT names_anybody THEN 0 WHEN named THEN 1 ELSE -1 END AS subject,
           cosine + %(lexical)s::float8 * coalesce(lexical, 0) / norm AS base
    FROM (
        SELECT * FROM entry
        FULL JOIN dense USING (message_id) FULL JOIN lexical USING (message_number)
        OFFSET 0
    ) AS evidence, question
    WHERE session IS NOT NULL AND cosine IS NOT NULL
), placed AS (
    SELECT *, row_number() OVER (PARTITION BY session ORDER BY base DESC) AS place,
           lag(cosine) OVER turns AS previous, lead(base) OVER turns AS following
    FROM base
    WINDOW turns AS (PARTITION BY session ORDER BY created_at, message_number)
), session_best AS MATERIALIZED (
    SELECT session, avg(base) AS session_base FROM placed WHERE place <= 3 GROUP BY session
), scope_wide AS MATERIALIZED (
    SELECT avg(cosine) AS mean_cosine, avg(base) AS mean_base,
           coalesce(
               max(cosine) FILTER (WHERE message_id <> ALL (%(exclude)s::uuid[])), max(cosine)
           ) AS best_cosine
    FROM base
), best AS MATERIALIZED (
    SELECT message_id, cosine, lexical, coverage, session_base, subject, words, has_time,
           coalesce(previous, mean_cosine) AS previous, coalesce(following, mean_base) AS following,
           best_cosine,
           base + %(session)s::float8 * session_base
           + %(previous)s::float8 * coalesce(previous, mean_cosine)
           + %(following)s::float8 * coalesce(following, mean_base)
           + %(length)s::float8 * ln(1 + words) + %(subject)s::float8 * subject
           + CASE WHEN has_time THEN %(time)s::float8 ELSE 0 END AS score
    FROM placed FULL JOIN session_best USING (session), scope_wide
    ORDER BY score DESC, message_number DESC
    LIMIT %(limit)s
)
SELECT message.id, message.external_id, message.thread_id, message.role, message.name,
       message.content, message.created_at, score, cosine, best.lexical, coverage, session_base, previous, following,
       subject, words, has_time, best_cosine, unknown,
       {neighbours} AS neighbours
FROM best, question, LATERAL (
    SELECT * FROM memory_message WHERE id = best.message_id OFFSET 0
) AS message
WHERE message.tenant_id = %(tenant)s::uuid AND message.agent_id = %(agent)s::uuid
  AND message.user_id = %(user)s
ORDER BY score DESC, message.number DESC
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


def ranking_sql(*, until: bool, neighbours: bool) -> str:
    """The statement that ranks a scope's messages.

    Args:
        until: as of a moment, %(at)s.
        neighbours: with so many turns, %(neighbours)s, before and after each.
    """
    entry = _ENTRY.format(until="AND created_at <= %(at)s" if until else "")
    postings = (entry, _POSTING_AT) if until else (_POSTING, entry)
    turns = _NEIGHBOURS.format(
        same_thread=_SAME_THREAD, until="AND turn.created_at <= %(at)s" if until else ""
    )
    ranking = _RANKING.format(neighbours=turns if neighbours else "NULL")
    return "WITH " + ", ".join((*postings, _WHOLE_SCOPE, ranking))
