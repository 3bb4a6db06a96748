"""A tenant's memory in numbers, for people: each takes the same time however much there is."""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

from django.db import connection, models
from django.db.models import Count, Min, Q
from django.db.models.functions import TruncDate

from memory.models import (
    ConversationEmbedding,
    MemoryEntry,
    Message,
    PendingEmbedding,
    RecallEvent,
    Scope,
)

# Up to here rows are counted; of larger tables Postgres' estimate is good enough.
COUNTED_EXACTLY = 20_000
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
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT reltuples::bigint FROM pg_class WHERE oid = %s::regclass",
            [model._meta.db_table],
        )
        (estimate,) = cursor.fetchone()
    if estimate > COUNTED_EXACTLY:
        return Amount(estimate, is_estimate=True)
    counted = model._default_manager.order_by().values("pk")[: COUNTED_EXACTLY + 1].count()
    return Amount(counted, is_estimate=counted > COUNTED_EXACTLY)


def size_in_bytes() -> int:
    """What the tenant's schema takes on disk, indexes included."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
            " WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
        )
        size: int = cursor.fetchone()[0]
    return size


def messages_per_day(days: int) -> list[Day]:
    """Messages of each of the last days, today last."""
    since = _first_of(days)
    rows = (
        Message.objects.filter(created_at__gte=since)
        .annotate(day=TruncDate("created_at", tzinfo=UTC))
        .values_list("day")
        .annotate(count=Count("*"))
        .order_by()
    )
    counts = dict(rows)
    return [Day(day, counts.get(day, 0)) for day in _each(since, days)]


def recalls_per_day(days: int) -> list[Day]:
    """Recalls of each of the last days, today last, and how many found something."""
    since = _first_of(days)
    rows = (
        RecallEvent.objects.filter(created_at__gte=since)
        .annotate(day=TruncDate("created_at", tzinfo=UTC))
        .values_list("day")
        .annotate(count=Count("*"), found=Count("pk", filter=Q(abstained=False)))
        .order_by()
    )
    counts = {day: (count, found) for day, count, found in rows}
    return [Day(day, *counts.get(day, (0, 0))) for day in _each(since, days)]


def outbox() -> Outbox:
    """What waits to be embedded."""
    found = PendingEmbedding.objects.aggregate(
        waiting=Count("*"), failed=Count("pk", filter=~Q(last_error="")), oldest=Min("created_at")
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
