"""The end users and the threads of a tenant, as lists, and the turns of a thread.

Threads and turns are read from indexes, with limits: a tenant may have a million messages, and a
thread all of them.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Case, Count, Exists, F, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.fields import TextField
from django.db.models.functions import Coalesce, JSONObject, Left, Length, NullIf

from memory import conf, models
from memory.models.conversations import MessageQuerySet
from memory.text.lexical import fold
from tenants.audit.people import Person
from tenants.context import fetch_column
from tenants.models import jobs_of

# The names of a user in a list.
MAX_NAMES: Final = 20
_INVISIBLE = r"[\s\u00a0\u00ad\u200b-\u200f\u2060-\u2064\ufeff]"
_NORMALIZED = f"lower(regexp_replace(normalize({{}}, NFKC), '{_INVISIBLE}', '', 'g'))"
_SIMILAR_IDS = f"""
SELECT DISTINCT user_id FROM memory_scope
WHERE user_id <> %(user)s AND {_NORMALIZED.format("user_id")} =
{_NORMALIZED.format("%(user)s::text")} ORDER BY user_id LIMIT %(limit)s
"""  # noqa: S608  (our constants)


def people(*, agent_id: UUID | None = None) -> QuerySet[Any]:
    """Return the people with messages or facts, in the order of their ids.

    Each has `name` (set by a program, or of the last message that has one), `names` (of messages,
    the newest first), `channel` (of the last message), `first_at`, `last_at`, the numbers of
    `messages` and of valid `facts`, and `agents` (for each its `id` and its number of `messages`).
    Postgres computes them for the rows of a page alone.

    Args:
        agent_id: only people of this agent, with its messages and facts only.
    """
    of_person: dict[str, Any] = {"user_id": OuterRef("user_id")}
    if agent_id is not None:
        of_person["agent_id"] = agent_id
    messages = models.Message.objects.filter(**of_person)
    facts = models.MemoryEntry.objects.entries().filter(**of_person)
    by_time = ("-created_at", "-number")
    questions = messages.filter(role=models.Role.USER).order_by(*by_time)
    names = _names(agent_id).filter(user_id=OuterRef("user_id")).order_by("-first_seen", "name")
    by_agent = messages.order_by().values("agent_id").annotate(count=Count("pk"))
    of_all, valid_facts = (
        rows.order_by().values("user_id").annotate(count=Count("pk")).values("count")
        for rows in (messages, facts.as_of())
    )
    # Not EXISTS, which Postgres would turn into a hash of a whole table.
    row = Coalesce(Subquery(messages.values("user_id")[:1]), Subquery(facts.values("user_id")[:1]))
    return (
        Person.objects.alias(row=row)
        .filter(row__isnull=False)
        .annotate(
            name=Coalesce(
                NullIf(F("chosen_name"), Value("", TextField())),
                NullIf(Subquery(questions.values("name")[:1]), Value("", TextField())),
                Subquery(names.values("name")[:1]),
                Value("", TextField()),
            ),
            names=ArraySubquery(names.values("name")[:MAX_NAMES]),
            channel=Subquery(questions.values("channel")[:1]),
            first_at=Subquery(messages.order_by("created_at").values("created_at")[:1]),
            last_at=Subquery(messages.order_by(*by_time).values("created_at")[:1]),
            agents=ArraySubquery(
                by_agent.order_by("agent_id").values_list(
                    JSONObject(id="agent_id", messages="count"), flat=True
                )
            ),
            messages=Coalesce(Subquery(of_all), 0),
            facts=Coalesce(Subquery(valid_facts), 0),
        )
        .order_by("user_id")
    )


def _names(agent_id: UUID | None) -> QuerySet[models.PersonName]:
    """Return the names of people; with an agent, those in messages to it."""
    names = models.PersonName.objects.all()
    if agent_id is None:
        return names
    same = {name: OuterRef(name) for name in ("user_id", "name")}
    return names.filter(
        Exists(models.Message.objects.filter(agent_id=agent_id, role=models.Role.USER, **same))
    )


def with_text(text: str, *, also_ids: Sequence[str] = (), agent_id: UUID | None = None) -> Q:
    """Return the condition for people with a text in the id or chosen name, or its words in a name.

    Args:
        text: in any case; a name has all of its words, regardless of case and accents.
        also_ids: these people too.
        agent_id: only names in messages to this agent.
    """
    found = Q(user_id__icontains=text) | Q(user_id__in=also_ids) | Q(chosen_name__icontains=text)
    if words := fold(text).split():
        named = _names(agent_id).filter(*(Q(folded__contains=word) for word in words))
        found |= Q(user_id__in=named.values("user_id"))
    return found


def names_of(user_ids: Sequence[str]) -> list[str]:
    """Return the names of a person with these ids, the newest first."""
    names = models.PersonName.objects.filter(user_id__in=user_ids).order_by("-first_seen", "name")
    return list(dict.fromkeys(names.values_list("name", flat=True)[:MAX_NAMES]))


def displayed_names(user_ids: Iterable[str]) -> dict[str, str]:
    """Return the newest name of each user that has one, by its id."""
    names = models.PersonName.objects.filter(user_id__in={*user_ids}).distinct("user_id")
    ordered = names.order_by("user_id", "-first_seen", "name")
    return dict(ordered.values_list("user_id", "name"))


def similar_user_ids(user_id: str, limit: int = 5) -> list[str]:
    """Return other users whose ids differ only in case, white space, invisible characters or
    composition.

    All users are compared: for a page on which a person decides about one user. Similar letters of
    different scripts are not found.
    """
    return fetch_column(_SIMILAR_IDS, {"user": user_id, "limit": limit})


# --- Threads -------------------------------------------------------------------------------------

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
    rows = models.Conversation.objects.filter(**{name: OuterRef(name) for name in names})
    return Subquery(rows.values(column))


def turns_around(
    anchor: models.Message, *, earlier: int = 30, later: int = 20, of_all: bool = False
) -> list[models.Message]:
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
    first: models.Message, last: models.Message, *, of_all: bool = False
) -> tuple[models.Message | None, models.Message | None]:
    """Return the turns just before the first and just after the last of a page."""
    before, after = _beside(first, last, of_all)
    return (
        before.only("id").order_by("-created_at", "-number").first(),
        after.only("id").order_by("created_at", "number").first(),
    )


def channel_of_thread() -> Case:
    """Return the expression of a message's channel; of a copy for another agent, the thread's."""
    others = models.Message.objects.filter(
        thread_id=OuterRef("thread_id"), user_id=OuterRef("user_id")
    ).exclude(channel__in=conf.HISTORY_CHANNELS)
    original = Subquery(others.order_by("-created_at").values("channel")[:1])
    return Case(
        When(channel=conf.HANDOVER_CHANNEL, then=Coalesce(original, "channel")), default="channel"
    )


def conversations_beside(turn: models.Message, agent_ids: Iterable[UUID]) -> list[models.Message]:
    """Return the last turn of each conversation of the same user and thread with other agents."""
    rows = models.Message.objects.filter(
        agent_id__in={*agent_ids} - {turn.agent_id}, user_id=turn.user_id, thread_id=turn.thread_id
    )
    return list(rows.last_of_threads().only("id", "agent_id"))


def has_other_people(turn: models.Message) -> bool:
    """Return whether the thread has turns of another user."""
    turns = models.Message.objects.filter(thread_id=turn.thread_id)
    return turns.exclude(user_id=turn.user_id).exists()


def _beside(
    first: models.Message, last: models.Message, of_all: bool, *, at: str = "lt"
) -> tuple[QuerySet[models.Message], QuerySet[models.Message]]:
    """Return the turns of a thread before the first (and it, with "lte"), and after the last."""
    rows = models.Message.objects.filter(thread_id=first.thread_id)
    if of_all:
        rows = rows.exclude(channel=conf.HANDOVER_CHANNEL)
    else:
        rows = rows.filter(agent_id=first.agent_id, user_id=first.user_id)
    start = Q(created_at=first.created_at, **{f"number__{at}": first.number})
    end = Q(created_at=last.created_at, number__gt=last.number)
    return (
        rows.filter(Q(created_at__lt=first.created_at) | start),
        rows.filter(Q(created_at__gt=last.created_at) | end),
    )


def _turns(rows: QuerySet[models.Message]) -> QuerySet[models.Message]:
    reply = models.Message.objects.filter(in_reply_to=OuterRef("pk")).values("pk")[:1]
    exclusions = models.RecallExclusion.objects.filter(message=OuterRef("pk"))
    return rows.defer("content").annotate(
        shown=Left("content", SHOWN_CHARACTERS),
        length=Length("content"),
        reply_pk=Subquery(reply),
        waits_for_embedding=Exists(models.PendingEmbedding.objects.filter(message=OuterRef("pk"))),
        embedding_error=Subquery(jobs_of("embedding", OuterRef("pk")).values("last_error")),
        is_excluded=Exists(exclusions.filter(start__isnull=True)),
        has_excluded_words=Exists(exclusions),
        has_trace=Exists(models.RecallEvent.objects.filter(reply=OuterRef("pk"))),
    )
