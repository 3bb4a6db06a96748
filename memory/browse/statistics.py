"""A tenant's memory in numbers, for people: each takes the same time however much there is."""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

from django.db import models
from django.db.models import Count, Min, Q

from memory.conversations.embedding_queue import EMBEDDINGS
from memory.models import ConversationEmbedding, MemoryEntry, Message, RecallEvent, Scope
from tenants.context import fetch_all, fetch_value

# Up to here rows are counted; of larger tables Postgres' estimate is good enough.
COUNTED_EXACTLY = 20_000
# Up to so many rows days are counted exactly, in 50 ms; more are estimated from about as many.
COUNTED_PER_DAY = 200_000
# The busiest are those of the latest so many messages: a week of one tenant may be all of another.
LATEST = 5_000


@dataclass(frozen=True, slots=True)
class Amount:
    """How many rows there are; an estimate where there are very many."""

    rows: int
    is_estimate: bool = False


@dataclass(frozen=True, slots=True)
class Day:
    """One day's messages, or recalls and how many of them found something."""

    day: date
    count: int
    found: int = 0


@dataclass(frozen=True, slots=True)
class Outbox:
    """Messages that are not embedded yet."""

    waiting: int
    failed: int
    oldest: datetime | None


def amounts() -> dict[str, Amount]:
    """How much there is of everything."""
    return {
        "messages": amount_of(Message),
        "pieces": amount_of(ConversationEmbedding),
        "recalls": amount_of(RecallEvent),
        "facts": Amount(MemoryEntry.objects.as_of()[: COUNTED_EXACTLY + 1].count()),
        "people": Amount(Scope.objects.aggregate(users=Count("user_id", distinct=True))["users"]),
    }


def amount_of(model: type[models.Model]) -> Amount:
    """How many rows a table of the current tenant's has, without reading a large one."""
    estimate = fetch_value(
        "SELECT reltuples::bigint FROM pg_class WHERE oid = %s::regclass", [model._meta.db_table]
    )
    if estimate > COUNTED_EXACTLY:
        return Amount(estimate, is_estimate=True)
    counted = model._default_manager.order_by().values("pk")[: COUNTED_EXACTLY + 1].count()
    return Amount(counted, is_estimate=counted > COUNTED_EXACTLY)


def size_in_bytes() -> int:
    """What the tenant's schema takes on disk, indexes included."""
    size: int = fetch_value(
        "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
        " WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
    )
    return size


def messages_per_day(days: int, *, rows: int | None = None) -> list[Day]:
    """Messages of each of the last days, today last.

    Args:
        rows: how many there are in all, if the caller knows it already.
    """
    return _per_day(Message, days, rows, found="false")


def recalls_per_day(days: int, *, rows: int | None = None) -> list[Day]:
    """Recalls of each of the last days, today last, and how many found something."""
    return _per_day(RecallEvent, days, rows, found="NOT abstained")


def is_sampled(rows: int) -> bool:
    """Whether the days of so many rows are estimated, for there is too much of it to count."""
    return rows > COUNTED_PER_DAY


def _per_day(model: type[models.Model], days: int, rows: int | None, *, found: str) -> list[Day]:
    """Rows of each of the last days; of a very large table, estimated from some of its blocks.

    Blocks are filled one after the other, so that those of a day are drawn as often as it has rows.
    """
    since = _first_of(days)
    rows = amount_of(model).rows if rows is None else rows
    share = COUNTED_PER_DAY / rows if is_sampled(rows) else 1.0
    # The same blocks each time: numbers do not dance when a page is loaded again.
    sample = "TABLESAMPLE SYSTEM (%(percent)s) REPEATABLE (1)" if is_sampled(rows) else ""
    statement = f"""
        SELECT (created_at AT TIME ZONE 'UTC')::date, count(*), count(*) FILTER (WHERE {found})
        FROM {model._meta.db_table} {sample} WHERE created_at >= %(since)s GROUP BY 1
    """  # noqa: S608  (all of it is ours)
    counts = {
        day: (count, good)
        for day, count, good in fetch_all(statement, {"percent": 100 * share, "since": since})
    }
    return [
        Day(day, *(round(number / share) for number in counts.get(day, (0, 0))))
        for day in _each(since, days)
    ]


def outbox() -> Outbox:
    """Messages that wait for their embeddings."""
    found = EMBEDDINGS.jobs().aggregate(
        waiting=Count("*"), failed=Count("key", filter=~Q(last_error="")), oldest=Min("created_at")
    )
    return Outbox(found["waiting"], found["failed"], found["oldest"])


def busiest(limit: int) -> tuple[list[tuple[UUID, int]], list[tuple[tuple[UUID, str], int]]]:
    """Agents, and users of agents, with the most of the latest messages; each with how many."""
    latest = Message.objects.order_by("-number").values_list("agent_id", "user_id")[:LATEST]
    users: Counter[tuple[UUID, str]] = Counter(latest)
    agents: Counter[UUID] = Counter()
    for (agent_id, _), count in users.items():
        agents[agent_id] += count
    return agents.most_common(limit), users.most_common(limit)


def _first_of(days: int) -> datetime:
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return today - timedelta(days=days - 1)


def _each(since: datetime, days: int) -> list[date]:
    return [(since + timedelta(days=number)).date() for number in range(days)]
