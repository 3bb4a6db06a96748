"""The end users of a tenant, with their names and the numbers of their messages and facts."""

from collections.abc import Iterable, Sequence
from typing import Any, Final
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery, TextField, Value
from django.db.models.functions import Coalesce, JSONObject, NullIf

from memory.models import MemoryEntry, Message, PersonName, Role
from memory.text.folding import fold
from tenants.audit.people import Person
from tenants.context import fetch_column

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
    messages = Message.objects.filter(**of_person)
    facts = MemoryEntry.objects.entries().filter(**of_person)
    by_time = ("-created_at", "-number")
    questions = messages.filter(role=Role.USER).order_by(*by_time)
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


def _names(agent_id: UUID | None) -> QuerySet[PersonName]:
    """Return the names of people; with an agent, those in messages to it."""
    names = PersonName.objects.all()
    if agent_id is None:
        return names
    same = {name: OuterRef(name) for name in ("user_id", "name")}
    return names.filter(Exists(Message.objects.filter(agent_id=agent_id, role=Role.USER, **same)))


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
    names = PersonName.objects.filter(user_id__in=user_ids).order_by("-first_seen", "name")
    return list(dict.fromkeys(names.values_list("name", flat=True)[:MAX_NAMES]))


def displayed_names(user_ids: Iterable[str]) -> dict[str, str]:
    """Return the newest name of each user that has one, by its id."""
    names = PersonName.objects.filter(user_id__in={*user_ids}).distinct("user_id")
    ordered = names.order_by("user_id", "-first_seen", "name")
    return dict(ordered.values_list("user_id", "name"))


def similar_user_ids(user_id: str, limit: int = 5) -> list[str]:
    """Return other users whose ids differ only in case, white space, invisible characters or
    composition.

    All users are compared: for a page on which a person decides about one user. Similar letters of
    different scripts are not found.
    """
    return fetch_column(_SIMILAR_IDS, {"user": user_id, "limit": limit})
