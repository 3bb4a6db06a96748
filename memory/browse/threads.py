"""The threads of a tenant, and the turns of a thread.

Both read indexes and have limits: a tenant may have a million messages, and a thread all of them.
"""

from collections.abc import Collection, Iterable
from typing import Any
from uuid import UUID

from django.db.models import Case, Exists, Expression, OuterRef, Q, QuerySet, Subquery, When
from django.db.models.functions import Coalesce, Left, Length

from memory.browse.people import displayed_names
from memory.conf import HANDOVER_CHANNEL, HISTORY_CHANNELS
from memory.models import Conversation, Message, PendingEmbedding, RecallEvent, RecallExclusion
from memory.models.querysets import MessageQuerySet
from tenants.context import fetch_column
from tenants.models import jobs_of

# If there are fewer threads than this, all of them are read, each by its last message.
MAX_WALKED_THREADS = 1_000
# A longer text is cut here in the view of a conversation.
SHOWN_CHARACTERS = 4_000
# The last message of each thread, by probes of the index of threads. For `agent_id = … AND
# user_id = …` Postgres would choose an index without one of the two, and read all messages of a
# user to find that an agent has none. Comparisons of rows, and the order, leave one index.
_LAST_NUMBERS_SQL = """
WITH RECURSIVE step AS (
    SELECT first.* FROM (SELECT) AS always {scopes} CROSS JOIN LATERAL (
        SELECT agent_id, user_id, thread_id FROM memory_message WHERE true {of_scope}
        ORDER BY agent_id, user_id, thread_id LIMIT 1
    ) AS first
    UNION ALL
    SELECT following.* FROM step CROSS JOIN LATERAL (
        SELECT agent_id, user_id, thread_id FROM memory_message
        WHERE (agent_id, user_id, thread_id) > (step.agent_id, step.user_id, step.thread_id) {same}
        ORDER BY agent_id, user_id, thread_id LIMIT 1
    ) AS following
)
SELECT last.number FROM (SELECT * FROM step LIMIT %(most)s) AS step CROSS JOIN LATERAL (
    SELECT number FROM memory_message
    WHERE (agent_id, user_id, thread_id) >= (step.agent_id, step.user_id, step.thread_id)
      AND (agent_id, user_id, thread_id) <= (step.agent_id, step.user_id, step.thread_id)
    ORDER BY agent_id DESC, user_id DESC, thread_id DESC, created_at DESC, number DESC LIMIT 1
) AS last
"""
_OF_USERS = {
    "scopes": """CROSS JOIN unnest(%(agents)s::uuid[]) AS agent (id)
        CROSS JOIN unnest(%(users)s::text[]) AS person (id)""",
    "of_scope": """AND (agent_id, user_id) >= (agent.id, person.id)
          AND (agent_id, user_id) <= (agent.id, person.id)""",
    "same": "AND (agent_id, user_id) <= (step.agent_id, step.user_id)",
}


def last_of_threads(
    rows: MessageQuerySet[Any],
    *,
    agent_ids: Collection[UUID] = (),
    user_ids: Collection[str] | None = None,
) -> MessageQuerySet[Any]:
    """Return the last message of each thread.

    A few threads can have so many messages that a comparison of each one takes seconds: up to
    MAX_WALKED_THREADS threads are found by their numbers.

    Args:
        rows: messages.
        agent_ids: with `user_ids`: all agents whose threads with the users are wanted.
        user_ids: only threads of these users.
    """
    narrowing = dict.fromkeys(_OF_USERS, "") if user_ids is None else _OF_USERS
    most = MAX_WALKED_THREADS + 1
    numbers = fetch_column(
        _LAST_NUMBERS_SQL.format(**narrowing),
        {"agents": [*agent_ids], "users": [*(user_ids or ())], "most": most},
    )
    if len(numbers) < most:
        return rows.filter(number__in=numbers)
    if user_ids is not None:
        rows = rows.filter(agent_id__in=agent_ids, user_id__in=user_ids)
    return rows.last_of_threads()


def of_conversation(column: str) -> "Subquery[Any]":
    """Return a column of the row that programs have written of a message's thread."""
    names = ("agent_id", "user_id", "thread_id")
    rows = Conversation.objects.filter(**{name: OuterRef(name) for name in names})
    return Subquery(rows.values(column))


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


def channel_of_thread() -> Expression:
    """Return the expression of a message's channel; of a copy for another agent, the thread's."""
    others = Message.objects.filter(
        thread_id=OuterRef("thread_id"), user_id=OuterRef("user_id")
    ).exclude(channel__in=HISTORY_CHANNELS)
    original = Subquery(others.order_by("-created_at").values("channel")[:1])
    return Case(
        When(channel=HANDOVER_CHANNEL, then=Coalesce(original, "channel")), default="channel"
    )


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
