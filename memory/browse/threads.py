"""Conversations as people read them: the threads of a tenant by their latest turn, and one's turns.

Both go along indexes and stop: a tenant may have a million messages, and one thread all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Left, Length

from memory.models import Message, PendingEmbedding, RecallEvent
from tenants.context import connection

# Of the newest messages, so many are looked through for threads at once, and so often.
SCANNED = 2_000
MOST_SCANS = 10
# A text that nobody reads to its end in a conversation is shown up to here.
SHOWN_CHARACTERS = 4_000


@dataclass(frozen=True, slots=True)
class ThreadSummary:
    """A conversation, by its latest turn."""

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


@dataclass(frozen=True, slots=True)
class ThreadPage:
    """Some threads, the latest first, and where the next page begins (None: there is none)."""

    threads: list[ThreadSummary]
    before: int | None


_NEWEST = """
WITH scanned AS MATERIALIZED (
    SELECT number, agent_id, user_id, thread_id FROM memory_message
    WHERE number < %(before)s {narrowed}
    ORDER BY number DESC LIMIT %(scanned)s
), newest AS (
    SELECT agent_id, user_id, thread_id, max(number) AS number
    FROM scanned GROUP BY agent_id, user_id, thread_id
), thread AS (
    SELECT * FROM newest
    WHERE NOT EXISTS (
        SELECT FROM memory_message AS later
        WHERE later.agent_id = newest.agent_id AND later.user_id = newest.user_id
          AND later.thread_id = newest.thread_id AND later.number >= %(before)s
    )
    ORDER BY number DESC LIMIT %(limit)s
)
SELECT thread.agent_id, thread.user_id, thread.thread_id, thread.number, message.id,
       message.channel, message.role, message.name, left(message.content, 200), message.created_at,
       (SELECT min(number) FROM scanned), (SELECT count(*) FROM scanned)
FROM (SELECT) AS always LEFT JOIN thread ON true LEFT JOIN memory_message AS message USING (number)
ORDER BY thread.number DESC
"""


def latest_threads(
    *,
    before: int | None = None,
    agent_ids: Sequence[UUID] | None = None,
    user_id: str | None = None,
    limit: int = 25,
) -> ThreadPage:
    """Threads of the current tenant by their latest turn.

    Args:
        before: where the page before this one ended.
        agent_ids: only these agents'.
        user_id: only this user's; name the agents too, for indexes begin with them.
    """
    position = before if before is not None else 2**63 - 1
    found: list[ThreadSummary] = []
    for _ in range(MOST_SCANS):
        threads, scanned_to, at_end = _scan(position, agent_ids, user_id, limit - len(found))
        found += threads
        if len(found) == limit:
            return ThreadPage(found, found[-1].number)
        if at_end:
            return ThreadPage(found, None)
        position = scanned_to
    return ThreadPage(found, position)


def _scan(
    before: int, agent_ids: Sequence[UUID] | None, user_id: str | None, limit: int
) -> tuple[list[ThreadSummary], int, bool]:
    """Threads among the newest messages before a number; how far that went, and if to the end."""
    narrowed = " AND agent_id = ANY (%(agents)s)" if agent_ids is not None else ""
    narrowed += " AND user_id = %(user)s" if user_id is not None else ""
    with connection.cursor() as cursor:
        cursor.execute(
            _NEWEST.format(narrowed=narrowed),
            {
                "before": before,
                "agents": None if agent_ids is None else list(agent_ids),
                "user": user_id,
                "scanned": SCANNED,
                "limit": limit,
            },
        )
        rows = cursor.fetchall()
    *_, scanned_to, scanned = rows[0]
    threads = [ThreadSummary(*row[:-2]) for row in rows if row[3] is not None]
    return threads, scanned_to or 0, scanned < SCANNED


def turns_around(anchor: Message, *, earlier: int = 30, later: int = 20) -> list[Message]:
    """Turns of the anchor's thread around it, oldest first, with what a reader needs of each.

    Each has `shown` (its text, or the beginning of a long one), `length`, `reply_pk`, `is_embedded`
    (None while it waits), `embedding_error` and `has_trace`.
    """
    position = (anchor.created_at, anchor.number)
    before = _turns(anchor, Q(created_at__lt=position[0]) | _same_time(position, "lte"))
    after = _turns(anchor, Q(created_at__gt=position[0]) | _same_time(position, "gt"))
    found = [*before.order_by("-created_at", "-number")[:earlier]]
    return [*reversed(found), *after.order_by("created_at", "number")[:later]]


def turns_beside(first: Message, last: Message) -> tuple[Message | None, Message | None]:
    """The turns just before the first and just after the last of a page."""
    start, end = (first.created_at, first.number), (last.created_at, last.number)
    before = _thread_of(first).filter(Q(created_at__lt=start[0]) | _same_time(start, "lt"))
    after = _thread_of(last).filter(Q(created_at__gt=end[0]) | _same_time(end, "gt"))
    return (
        before.only("id").order_by("-created_at", "-number").first(),
        after.only("id").order_by("created_at", "number").first(),
    )


def _same_time(position: tuple[datetime, int], lookup: str) -> Q:
    return Q(created_at=position[0], **{f"number__{lookup}": position[1]})


def _thread_of(turn: Message) -> QuerySet[Message]:
    return Message.objects.filter(
        agent_id=turn.agent_id, user_id=turn.user_id, thread_id=turn.thread_id
    )


def _turns(anchor: Message, where: Q) -> QuerySet[Message]:
    reply = Message.objects.filter(in_reply_to=OuterRef("pk")).values("pk")[:1]
    trace = PendingEmbedding.objects.filter(message=OuterRef("pk"), recall_trace__isnull=False)
    return (
        _thread_of(anchor)
        .filter(where)
        .defer("content")
        .annotate(
            shown=Left("content", SHOWN_CHARACTERS),
            length=Length("content"),
            reply_pk=Subquery(reply),
            waits_for_embedding=Exists(PendingEmbedding.objects.filter(message=OuterRef("pk"))),
            embedding_error=F("pending_embedding__last_error"),
            has_trace=Exists(RecallEvent.objects.filter(reply=OuterRef("pk"))) | Exists(trace),
        )
    )
