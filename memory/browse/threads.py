"""Lists of the admin: the threads of a tenant by their latest turn, and the turns of a thread.

Both read indexes and have limits: a tenant may have a million messages, and a thread all of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Left, Length

from memory.browse.index_order import rows_in_order
from memory.browse.people import displayed_names
from memory.conf import HANDOVER_CHANNEL, HISTORY_CHANNELS
from memory.models import Message, PendingEmbedding, RecallEvent, RecallExclusion, Scope
from memory.text import lexical
from tenants.context import fetch_all, fetch_column, fetch_value
from tenants.models import jobs_of

# Maximum number of messages without an index entry that are searched, newest first.
MAX_UNINDEXED_SEARCHED = 500
# Lexemes of the searched text; further ones are ignored.
MAX_TERMS = 32
# In each scope, this many of the newest messages with the rarest word are checked for the others.
MAX_POSTINGS_CHECKED = 5_000
# Limit for counting how rare a word is.
MAX_COUNTED = 1_000
_RAREST_SQL = """
    SELECT word FROM unnest(%(terms)s::bigint[], %(words)s::bigint[]) AS term (lexeme_hash, word),
    LATERAL (
        SELECT count(*) AS messages FROM (
            SELECT FROM memory_posting
            WHERE scope_id = ANY (ARRAY(SELECT id FROM memory_scope))
              AND memory_posting.lexeme_hash = term.lexeme_hash
            LIMIT %(counted)s
        ) AS posting
    ) AS counted
    GROUP BY word ORDER BY sum(messages), word LIMIT 1
"""
# From each scope at most the number that the whole search may return.
_WITH_ALL_WORDS_SQL = """
    SELECT message_number FROM memory_scope CROSS JOIN LATERAL (
        SELECT message_number FROM (
            SELECT DISTINCT message_number
            FROM unnest(%(rarest)s::bigint[]) AS rare (lexeme_hash), LATERAL (
                SELECT message_number FROM memory_posting
                WHERE scope_id = memory_scope.id AND memory_posting.lexeme_hash = rare.lexeme_hash
                ORDER BY message_number DESC LIMIT %(looked_at)s
            ) AS posting
            ORDER BY message_number DESC
        ) AS candidate
        WHERE NOT EXISTS (
            SELECT FROM unnest(%(words)s::bigint[]) AS asked (word) WHERE NOT EXISTS (
                SELECT FROM unnest(%(terms)s::bigint[], %(words)s::bigint[])
                    AS term (lexeme_hash, word), LATERAL (
                    SELECT FROM memory_posting AS other
                    WHERE other.scope_id = memory_scope.id
                      AND other.lexeme_hash = term.lexeme_hash
                      AND other.message_number = candidate.message_number OFFSET 0
                ) AS other
                WHERE term.word = asked.word
            )
        )
        ORDER BY message_number DESC LIMIT %(limit)s
    ) AS found
    ORDER BY message_number DESC LIMIT %(limit)s
"""
# Threads are searched in this many of the newest messages at once, at most this many times.
MAX_SCANNED_MESSAGES = 2_000
MAX_SCANS = 10
# A tenant, an agent or a person with fewer threads than this has all of them read, each by its
# latest message, if the newest messages are of few threads.
MAX_WALKED_THREADS = 1_000
# A longer text is cut here in the view of a conversation.
SHOWN_CHARACTERS = 4_000
_SCAN_SQL = """
WITH looked_at AS MATERIALIZED (
    SELECT turn.* FROM (SELECT) AS always {scopes} CROSS JOIN LATERAL (
        SELECT created_at, number, agent_id, user_id, thread_id {latest} LIMIT %(most)s
    ) AS turn ORDER BY created_at DESC, number DESC LIMIT %(most)s
), latest AS (
    SELECT DISTINCT ON (agent_id, user_id, thread_id) * FROM looked_at
    ORDER BY agent_id, user_id, thread_id, created_at DESC, number DESC
), thread AS (
    SELECT number FROM latest
    WHERE NOT EXISTS (
        SELECT FROM memory_message AS later
        WHERE later.agent_id = latest.agent_id AND later.user_id = latest.user_id
          AND later.thread_id = latest.thread_id {in_time} AND {listed}
    )
    ORDER BY created_at DESC, number DESC LIMIT %(limit)s
)
"""
# Every thread of a scope, by probes of the index of threads.
_STEPS_SQL = """
WITH RECURSIVE step AS (
    SELECT first.* FROM (SELECT) AS always {scopes} CROSS JOIN LATERAL (
        SELECT agent_id, user_id, thread_id {first} LIMIT 1
    ) AS first
    UNION ALL
    SELECT following.* FROM step CROSS JOIN LATERAL (
        SELECT agent_id, user_id, thread_id FROM memory_message
        WHERE (agent_id, user_id, thread_id) > (step.agent_id, step.user_id, step.thread_id) {same}
        ORDER BY agent_id, user_id, thread_id LIMIT 1
    ) AS following
)"""
_WALK_SQL = """, looked_at AS MATERIALIZED (
    SELECT latest.created_at, latest.number
    FROM (SELECT * FROM step LIMIT %(most)s) AS step LEFT JOIN LATERAL (
        SELECT created_at, number {latest_of_thread} LIMIT 1
    ) AS latest ON true
), thread AS (
    SELECT number FROM looked_at WHERE number IS NOT NULL {before}
    ORDER BY created_at DESC, number DESC LIMIT %(limit)s
)
"""
_LAST_NUMBERS_SQL = """
SELECT last.number FROM (SELECT * FROM step LIMIT %(most)s) AS step
CROSS JOIN LATERAL (SELECT number {latest_of_thread} LIMIT 1) AS last
"""
_THREAD = ("agent_id", "user_id", "thread_id")
# A copy for another agent of the thread has the channel of the thread.
_SUMMARIES_SQL = f"""
SELECT message.agent_id, message.user_id, message.thread_id, message.number, message.id,
       coalesce((
           SELECT channel FROM memory_message
           WHERE thread_id = message.thread_id AND user_id = message.user_id
             AND message.channel = '{HANDOVER_CHANNEL}' AND channel NOT IN {HISTORY_CHANNELS}
           ORDER BY created_at DESC LIMIT 1
       ), message.channel),
       message.role, message.name, left(message.content, 200), message.created_at,
       (SELECT count(*) FROM looked_at), last.created_at, last.number
FROM (SELECT) AS always
LEFT JOIN (
    SELECT created_at, number FROM looked_at ORDER BY created_at, number LIMIT 1
) AS last ON true
LEFT JOIN (thread JOIN memory_message AS message USING (number)) ON true
ORDER BY message.created_at DESC, message.number DESC
"""  # noqa: S608  (our constants)


def numbers_of_messages_with(text: str, *, limit: int = 1000) -> list[int]:
    """Return the numbers of the newest messages of the current tenant with every word of the text.

    Words are compared by their stems; stop words are ignored. Messages that are not indexed yet are
    searched directly.
    """
    lexemes = lexical.alternatives(lexical.analyse(text), limit=MAX_TERMS)
    if not lexemes:
        return []
    terms = lexical.hashes(lexemes)
    words = {"terms": list(terms), "words": list(terms.values())}
    rarest = fetch_value(_RAREST_SQL, {**words, "counted": MAX_COUNTED})
    indexed = fetch_column(
        _WITH_ALL_WORDS_SQL,
        {
            **words,
            "rarest": [term for term, word in terms.items() if word == rarest],
            "looked_at": MAX_POSTINGS_CHECKED,
            "limit": limit,
        },
    )
    unindexed = [
        number
        for number, content in messages_not_indexed().values_list(
            "message__number", "message__content"
        )
        if has_all_words(content, lexemes)
    ]
    return [*unindexed, *indexed][:limit]


def has_all_words(content: str, lexemes: Mapping[str, str]) -> bool:
    """Return whether a text has each word of a query, with these `lexical.alternatives`."""
    found = {lexemes.get(lexeme) for lexeme in lexical.lexemes(content)}
    return found.issuperset(lexemes.values())


def numbers_of_messages_of(user_id: str, *, limit: int = 1000) -> list[int]:
    """Return the numbers of the newest messages between one user and any agent."""
    agents = list(Scope.objects.filter(user_id=user_id).values_list("agent_id", flat=True))
    indexed = (
        Message.objects.filter(agent_id__in=agents, user_id=user_id)
        .order_by("-number")
        .values_list("number", flat=True)[:limit]
    )
    # An agent without indexed messages of the user has no scope.
    unindexed = messages_not_indexed().filter(message__user_id=user_id)
    return [*indexed, *unindexed.values_list("message__number", flat=True)]


def messages_not_indexed() -> QuerySet[PendingEmbedding]:
    """Return the newest MAX_UNINDEXED_SEARCHED messages that are not indexed yet."""
    newest = PendingEmbedding.objects.order_by("-message__number").values("pk")[
        :MAX_UNINDEXED_SEARCHED
    ]
    return PendingEmbedding.objects.filter(pk__in=newest)


@dataclass(frozen=True, slots=True)
class ThreadSummary:
    """A conversation with its latest turn."""

    agent_id: UUID
    user_id: str
    thread_id: str
    number: int
    message_id: UUID
    channel: str
    role: str
    name: str
    beginning: str
    created_at: datetime


class ThreadPosition(NamedTuple):
    """A place in the list of threads: that of a message."""

    created_at: datetime
    number: int


@dataclass(frozen=True, slots=True)
class ThreadPage:
    """A page of threads, latest first; `before` is the start of the next page, None for the last
    one.
    """

    threads: list[ThreadSummary]
    before: ThreadPosition | None


def latest_threads(
    *,
    before: ThreadPosition | None = None,
    agent_ids: Sequence[UUID] | None = None,
    user_ids: Sequence[str] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 25,
) -> ThreadPage:
    """Return threads of the current tenant, the one with the latest message first.

    A page can have fewer threads than `limit`, or none, and still have a next page: a call reads a
    bounded number of messages.

    Args:
        before: position at which the previous page ended.
        agent_ids: only threads of these agents. Required with `user_ids`: indexes begin with it.
        user_ids: only threads of these users.
        since: only messages from this moment on. A thread is listed by the latest of these.
        until: only messages before this moment.
        limit: maximum number of threads.
    """
    query = _ThreadQuery(agent_ids, user_ids, since, until)
    threads: list[ThreadSummary] = []
    position = before
    if until is not None:
        position = min(filter(None, (before, ThreadPosition(until, 0))))
    for scan in range(MAX_SCANS):
        scanned, end = query.read(
            _SCAN_SQL, position, max_rows=MAX_SCANNED_MESSAGES, limit=limit - len(threads)
        )
        threads += scanned
        if len(threads) == limit:
            return ThreadPage(threads, _position_of(threads[-1]))
        if end is None:
            return ThreadPage(threads, None)
        if scan == 0:
            walked, rest = query.read(
                _STEPS_SQL + _WALK_SQL, position, max_rows=MAX_WALKED_THREADS, limit=limit
            )
            if rest is None:
                is_last = len(walked) < limit
                return ThreadPage(walked, None if is_last else _position_of(walked[-1]))
        position = end
    return ThreadPage(threads, position)


@dataclass(frozen=True, slots=True)
class _ThreadQuery:
    """The filters of `latest_threads`, in SQL."""

    agent_ids: Sequence[UUID] | None
    user_ids: Sequence[str] | None
    since: datetime | None
    until: datetime | None

    def read(
        self, statement: str, position: ThreadPosition | None, *, max_rows: int, limit: int
    ) -> tuple[list[ThreadSummary], ThreadPosition | None]:
        """Return threads before a position, and where reading stopped; None at the end.

        Args:
            statement: _SCAN_SQL, or _STEPS_SQL + _WALK_SQL.
            position: where the last page ended; None: at the latest thread.
            max_rows: number of messages or threads to read.
            limit: maximum number of threads.
        """
        rows = fetch_all(
            self._sql(statement, position),
            {
                "agents": list(self.agent_ids or ()),
                "users": list(self.user_ids or ()),
                "since": self.since,
                "until": self.until,
                "at": position and position.created_at,
                "number": position and position.number,
                "most": max_rows,
                "limit": limit,
            },
        )
        *_, number_read, created_at, number = rows[0]
        threads = [ThreadSummary(*row[:-3]) for row in rows if row[0] is not None]
        return threads, ThreadPosition(created_at, number) if number_read >= max_rows else None

    def _sql(self, statement: str, position: ThreadPosition | None) -> str:
        tables, scope = "", {}
        if self.agent_ids is not None:
            tables += " CROSS JOIN unnest(%(agents)s::uuid[]) AS agent (id)"
            scope["agent_id"] = "agent.id"
        if self.user_ids is not None:
            tables += " CROSS JOIN unnest(%(users)s::text[]) AS person (id)"
            scope["user_id"] = "person.id"
        in_time = "AND created_at >= %(since)s " if self.since is not None else ""
        in_time += "AND created_at < %(until)s" if self.until is not None else ""
        columns, values = ", ".join(scope), ", ".join(f"step.{column}" for column in scope)
        return (statement + _SUMMARIES_SQL).format(
            scopes=tables,
            in_time=in_time,
            first=rows_in_order("memory_message", scope, *_THREAD[len(scope) :]),
            same=f"AND ({columns}) <= ({values})" if scope else "",
            # With a lower bound of the time, Postgres expects more than a few messages of an
            # agent, and stops early instead of sorting all of them.
            latest=_by_time(
                scope,
                since="%(since)s" if self.since is not None else "'-infinity'",
                before="%(at)s, %(number)s" if position else "",
            ),
            latest_of_thread=_by_time(
                {column: f"step.{column}" for column in _THREAD}, conditions=in_time
            ),
            before="AND (created_at, number) < (%(at)s, %(number)s)" if position else "",
            listed="(created_at, number) >= (%(at)s, %(number)s)" if position else "false",
        )


def last_numbers(user_id: str, *, agent_ids: Sequence[UUID]) -> list[int] | None:
    """Return the number of the last message of each thread of a user.

    It reads a few rows of each thread, however many messages the thread has.

    Args:
        user_id: the user.
        agent_ids: all agents whose threads with the user are wanted.

    Returns:
        The numbers in any order; None if there are more than MAX_WALKED_THREADS.
    """
    scope = {"agent_id": "agent.id", "user_id": "%(user)s::text"}
    statement = (_STEPS_SQL + _LAST_NUMBERS_SQL).format(
        scopes="CROSS JOIN unnest(%(agents)s::uuid[]) AS agent (id)",
        first=rows_in_order("memory_message", scope, "thread_id"),
        same="AND (agent_id, user_id) <= (step.agent_id, step.user_id)",
        latest_of_thread=_by_time({column: f"step.{column}" for column in _THREAD}),
    )
    most = MAX_WALKED_THREADS + 1
    numbers = fetch_column(statement, {"agents": [*agent_ids], "user": user_id, "most": most})
    return None if len(numbers) == most else numbers


def _by_time(scope: Mapping[str, str], **conditions: str) -> str:
    return rows_in_order(
        "memory_message", scope, "created_at", "number", latest_first=True, **conditions
    )


def _position_of(thread: ThreadSummary) -> ThreadPosition:
    return ThreadPosition(thread.created_at, thread.number)


def turns_around(
    anchor: Message, *, earlier: int = 30, later: int = 20, of_all: bool = False
) -> list[Message]:
    """Return turns of the anchor's thread around it, oldest first, with annotations.

    Each has `shown` (its text, or the beginning of a long one), `length`, `reply_pk`,
    `waits_for_embedding`, `embedding_error`, `has_trace`, and `person_name` (the displayed name of
    its user, also if the turn itself has none).

    Args:
        anchor: a turn of the thread.
        earlier: the maximum number of turns up to the anchor.
        later: the maximum number of turns after it.
        of_all: whether the turns of all people and agents in the thread are included.
    """
    before, after = (_turns(beside) for beside in _beside(anchor, anchor, of_all, at="lte"))
    newest_first = [*before.order_by("-created_at", "-number")[:earlier]]
    turns = [*reversed(newest_first), *after.order_by("created_at", "number")[:later]]
    names = displayed_names(turn.user_id for turn in turns)
    for turn in turns:
        turn.person_name = names.get(turn.user_id, "")  # type: ignore[attr-defined]
    return turns


def turns_beside(
    first: Message, last: Message, *, of_all: bool = False
) -> tuple[Message | None, Message | None]:
    """Return the turns just before the first and just after the last of a page."""
    before, after = _beside(first, last, of_all)
    return (
        before.only("id").order_by("-created_at", "-number").first(),
        after.only("id").order_by("created_at", "number").first(),
    )


def channel_of(turn: Message) -> str:
    """Return the channel of a turn; that of the thread for a copy for another agent."""
    if turn.channel != HANDOVER_CHANNEL:
        return turn.channel
    others = Message.objects.filter(thread_id=turn.thread_id, user_id=turn.user_id)
    channels = others.exclude(channel__in=HISTORY_CHANNELS).order_by("-created_at")
    return channels.values_list("channel", flat=True).first() or turn.channel


def conversations_beside(turn: Message, agent_ids: Iterable[UUID]) -> list[Message]:
    """Return the last turn of each conversation of the same user and thread with other agents."""
    rows = Message.objects.filter(
        agent_id__in={*agent_ids} - {turn.agent_id}, user_id=turn.user_id, thread_id=turn.thread_id
    )
    return list(rows.last_of_threads().only("id", "agent_id"))


def has_other_people(turn: Message) -> bool:
    """Return whether the thread has turns of another user."""
    return Message.objects.filter(thread_id=turn.thread_id).exclude(user_id=turn.user_id).exists()


def _beside(
    first: Message, last: Message, of_all: bool, *, at: str = "lt"
) -> tuple[QuerySet[Message], QuerySet[Message]]:
    """Return the turns of a thread before the first (and it, with "lte"), and after the last."""
    rows = Message.objects.filter(thread_id=first.thread_id)
    if of_all:
        rows = rows.exclude(channel=HANDOVER_CHANNEL)
    else:
        rows = rows.filter(agent_id=first.agent_id, user_id=first.user_id)
    start = Q(created_at=first.created_at, **{f"number__{at}": first.number})
    end = Q(created_at=last.created_at, number__gt=last.number)
    return (
        rows.filter(Q(created_at__lt=first.created_at) | start),
        rows.filter(Q(created_at__gt=last.created_at) | end),
    )


def _turns(rows: QuerySet[Message]) -> QuerySet[Message]:
    reply = Message.objects.filter(in_reply_to=OuterRef("pk")).values("pk")[:1]
    exclusions = RecallExclusion.objects.filter(message=OuterRef("pk"))
    return rows.defer("content").annotate(
        shown=Left("content", SHOWN_CHARACTERS),
        length=Length("content"),
        reply_pk=Subquery(reply),
        waits_for_embedding=Exists(PendingEmbedding.objects.filter(message=OuterRef("pk"))),
        embedding_error=Subquery(jobs_of("embedding", OuterRef("pk")).values("last_error")),
        is_excluded=Exists(exclusions.filter(start__isnull=True)),
        has_excluded_words=Exists(exclusions),
        has_trace=Exists(RecallEvent.objects.filter(reply=OuterRef("pk"))),
    )
