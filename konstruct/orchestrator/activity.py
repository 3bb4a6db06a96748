"""A tenant's activity by day: messages, sources and times of replies, tokens, escalations, marks.

Messages and replies of days that have ended are counted once, into `DailyActivity`: a chart then
takes the same time however many messages there are. Today is counted when it is asked for. Days are
those of UTC.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db.models import (
    BigIntegerField,
    BooleanField,
    Case,
    Count,
    Expression,
    F,
    FloatField,
    Func,
    IntegerField,
    JSONField,
    Q,
    QuerySet,
    Sum,
    Value,
    When,
)
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Extract, TruncDate
from django.utils import timezone

from konstruct.orchestrator import metering
from konstruct.orchestrator.models import DailyActivity, Escalation, ReplyMark, ReplyReview
from memory.models import Message, Role
from tenants.context import reading_replica

MAX_DAYS: Final = 366
# A day is counted after this time, so that embeddings have added the recall events of its replies.
SETTLE_TIME: Final = timedelta(hours=1)
# A request counts missing days for at most this long; the next one continues.
COUNTING_SECONDS = 3.0
DAYS_AT_ONCE: Final = 7
# Upper limits of the classes of reply times in seconds: factors of the square root of two.
LIMITS: Final = tuple(round(0.25 * 2 ** (step / 2), 3) for step in range(25))

_TOKENS: Final = ("prompt_tokens", "completion_tokens")


class _JsonPathExists(Func):
    function = "jsonb_path_exists"
    output_field = BooleanField()


def source_of_reply() -> Expression:
    """Return an expression over messages for the source of a reply; None without a recall event.

    facts: its prompt has facts. memories: it has recalled messages. turns: recent turns only.
    """
    has_turns = _JsonPathExists(
        F("recall_event__prompt"),
        Cast(Value('$.sections[*] ? (@.name == "session" && @.tokens > 0)'), _JsonPath()),
    )
    return Case(
        When(recall_event__isnull=True, then=None),
        When(recall_event__facts__contains=[{"reason": ""}], then=Value("facts")),
        When(~Q(recall_event__hits=[]), then=Value("memories")),
        When(has_turns, then=Value("turns")),
        default=Value("nothing"),
    )


class _JsonPath(JSONField):
    """The type jsonpath, for a cast."""

    def db_type(self, connection: Any) -> str:
        return "jsonpath"


@dataclass(slots=True)
class Day:
    """The activity of one day, or of several together."""

    messages: int = 0
    replies: int = 0
    from_facts: int = 0
    from_memories: int = 0
    from_turns: int = 0
    from_nothing: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    extraction_tokens: int = 0
    cost: Decimal = Decimal(0)
    escalations: int = 0
    right: int = 0
    wrong: int = 0
    unsure: int = 0
    reply_times: list[int] = field(default_factory=lambda: [0] * (len(LIMITS) + 1))

    @property
    def tokens(self) -> int:
        """Tokens of replies and of extraction."""
        return self.prompt_tokens + self.completion_tokens + self.extraction_tokens

    def percentile(self, share: float) -> float | None:
        """Return the reply time in seconds that this share of the replies does not exceed; None
        without any.

        Interpolated within its class: at most a fifth off.
        """
        return percentile(self.reply_times, share)

    def add(self, other: "Day") -> None:
        """Add the counts of another day."""
        for each in fields(self):
            mine, others = getattr(self, each.name), getattr(other, each.name)
            if isinstance(mine, list):
                setattr(self, each.name, [a + b for a, b in zip(mine, others, strict=True)])
            else:
                setattr(self, each.name, mine + others)


def percentile(times: Sequence[int], share: float) -> float | None:
    """Return a percentile of counted times in seconds; None if there are none."""
    rank, passed = share * sum(times), 0
    if not rank:
        return None
    for number, count in enumerate(times):
        if count and passed + count >= rank:
            low = LIMITS[number - 1] if number else 0.0
            high = LIMITS[number] if number < len(LIMITS) else low * 2**0.5
            return low + (high - low) * (rank - passed) / count
        passed += count
    return None


@dataclass(frozen=True, slots=True)
class Activity:
    """The days of a range, each with its activity, and the days before it for comparison."""

    days: dict[date, Day]
    before: dict[date, Day]
    is_complete: bool
    """False: some days are not counted yet; the next call continues."""

    @property
    def total(self) -> Day:
        """The range together."""
        return _sum(self.days.values())

    @property
    def total_before(self) -> Day:
        """The days before it together."""
        return _sum(self.before.values())


def activity(
    *, first: date, last: date, agent_id: UUID | None = None, channel: str = ""
) -> Activity:
    """Return the current tenant's activity, and that of as many days before.

    Ended days without counts are counted, for at most `COUNTING_SECONDS`.

    Args:
        first: first day of the range, in UTC.
        last: last day of the range; at most `MAX_DAYS` later.
        agent_id: only this agent.
        channel: only this channel. Tokens of extraction have no channel and are left out.
    """
    length = min((last - first).days + 1, MAX_DAYS)
    earliest = first - timedelta(days=length)
    every = {earliest + timedelta(days=number): Day() for number in range(2 * length)}
    settled = (timezone.now() - SETTLE_TIME).astimezone(UTC).date() - timedelta(days=1)
    is_complete = count_days(day for day in every if day <= settled)
    of: dict[str, Any] = {"agent_id": agent_id} if agent_id else {}
    in_channel: dict[str, Any] = {"channel": channel} if channel else {}
    with reading_replica():
        counted = DailyActivity.objects.filter(day__in=every, **of, **in_channel)
        _add_counts(every, _summed(counted))
        open_days = [day for day in every if day > settled]
        if open_days:
            _add_counts(every, _counted(open_days[0], open_days[-1], **of, **in_channel))
        _add_rows(every, {**of, **in_channel}, of)
        if not channel:
            _add_extraction(every, agent_id)
    for day in every.values():
        day.cost += metering.cost(day.prompt_tokens, day.completion_tokens)
    listed = list(every.items())
    return Activity(dict(listed[length:]), dict(listed[:length]), is_complete)


def count_days(days: Iterable[date]) -> bool:
    """Count days without counts, newest first; return whether all are counted."""
    days = list(days)
    known = DailyActivity.objects.filter(day__in=days, agent_id=None).values_list("day", flat=True)
    missing = sorted({*days} - {*known}, reverse=True)
    until = time.monotonic() + COUNTING_SECONDS
    for number in range(0, len(missing), DAYS_AT_ONCE):
        if time.monotonic() > until:
            return False
        some = missing[number : number + DAYS_AT_ONCE]
        rows = [
            DailyActivity(**row)
            for row in _counted(some[-1], some[0], by_group=True)
            if row["day"] in some
        ]
        rows += [DailyActivity(day=day) for day in some]
        DailyActivity.objects.bulk_create(rows, ignore_conflicts=True)
    return True


def recount(*, first: date, last: date) -> None:
    """Remove the counts of the days, such as after an import, so that they are counted again."""
    DailyActivity.objects.filter(day__range=(first, last)).delete()


_COUNTS: Final = (
    *("messages", "replies", "from_facts", "from_memories", "from_turns", "from_nothing"),
    *("prompt_tokens", "completion_tokens"),
)
_NO_TIMES: Final = (0,) * (len(LIMITS) + 1)


def _counted(first: date, last: date, *, by_group: bool = False, **of: Any) -> list[dict[str, Any]]:
    """Return the counts of the messages of some days; `by_group` also by agent and channel."""
    group = ("day", "agent_id", "channel") if by_group else ("day",)
    seconds = Cast(Extract(F("created_at") - F("in_reply_to__created_at"), "epoch"), FloatField())
    limits = Value(list(LIMITS), ArrayField(FloatField()))
    # Grouped by what is computed of a row, which is therefore computed once.
    rows: QuerySet[Any] = (
        Message.objects.filter(**_in_days("created_at", first, last), **of)
        .annotate(
            day=TruncDate("created_at", tzinfo=UTC),
            source=source_of_reply(),
            time_class=Func(seconds, limits, function="width_bucket", output_field=IntegerField()),
        )
        .order_by()
        .values(*group, "role", "source", "time_class")
        .annotate(number=Count("id"), **{name: _tokens(name) for name in _TOKENS})
    )
    found: dict[Any, dict[str, Any]] = {}
    for row in rows:
        key = {name: row[name] for name in group}
        new = {**key, **dict.fromkeys(_COUNTS, 0), "reply_times": [*_NO_TIMES]}
        counts = found.setdefault(tuple(key.values()), new)
        counts["messages"] += row["number"] * (row["role"] == Role.USER)
        for name in _TOKENS:
            counts[name] += row[name] or 0
        if row["source"] is not None:
            counts["replies"] += row["number"]
            counts[f"from_{row['source']}"] += row["number"]
            if row["time_class"] is not None:
                counts["reply_times"][row["time_class"]] += row["number"]
    return list(found.values())


def _tokens(name: str) -> Sum:
    return Sum(Cast(KT(f"usage__{name}"), BigIntegerField()))


def _summed(rows: QuerySet[Any]) -> list[dict[str, Any]]:
    times = {f"class_{n}": Sum(f"reply_times__{n}") for n in range(len(LIMITS) + 1)}
    sums: QuerySet[Any] = rows.values("day").annotate(
        **{name: Sum(name) for name in _COUNTS}, **times
    )
    return [
        {
            "day": row["day"],
            **{name: row[name] for name in _COUNTS},
            "reply_times": [row[name] or 0 for name in times],
        }
        for row in sums.order_by()
    ]


def _add_counts(days: dict[date, Day], rows: Iterable[dict[str, Any]]) -> None:
    for row in rows:
        days[row.pop("day")].add(Day(**row))


def _add_rows(days: dict[date, Day], of: dict[str, Any], of_agent: dict[str, Any]) -> None:
    """Add escalations by the day on which they were opened, and marks by theirs."""
    ends = (min(days), max(days))
    opened = Escalation.objects.to_people().filter(**_in_days("opened_at", *ends), **of)
    day = TruncDate("opened_at", tzinfo=UTC)
    for found, number in _per_day(opened, day, Count("id")):
        days[found].escalations = number
    channel = {"reply__channel": of["channel"]} if "channel" in of else {}
    marks = ReplyReview.objects.filter(**_in_days("created_at", *ends), **of_agent, **channel)
    day = TruncDate("created_at", tzinfo=UTC)
    numbers = [Count("id", filter=Q(mark=mark)) for mark in ReplyMark.values]
    for found, *counts in _per_day(marks, day, *numbers):
        for mark, number in zip(ReplyMark.values, counts, strict=True):
            setattr(days[found], mark, number)


def _per_day(rows: QuerySet[Any], day: Expression, *numbers: Expression) -> Iterable[Any]:
    named = {f"number_{place}": number for place, number in enumerate(numbers)}
    found = rows.annotate(day=day).order_by().values("day").annotate(**named)
    return found.values_list("day", *named)


def _add_extraction(days: dict[date, Day], agent_id: UUID | None) -> None:
    ends = _in_days("at", min(days), max(days))
    for each in metering.usage(since=ends["at__gte"], until=ends["at__lt"], agent_id=agent_id):
        if each.purpose == metering.REPLY:  # counted by the replies, which have channels
            continue
        days[each.day].extraction_tokens += each.prompt_tokens + each.completion_tokens
        days[each.day].cost += each.cost


def _in_days(column: str, first: date, last: date) -> dict[str, datetime]:
    until = last + timedelta(days=1)
    return {
        f"{column}__gte": datetime.combine(first, clock.min, UTC),
        f"{column}__lt": datetime.combine(until, clock.min, UTC),
    }


def _sum(days: Iterable[Day]) -> Day:
    total = Day()
    for each in days:
        total.add(each)
    return total
