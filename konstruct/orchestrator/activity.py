"""A tenant's activity by day: messages, sources and times of replies, tokens, escalations.

Messages and replies of ended days are counted once and stored in `DailyActivity`, so that the time
of a chart does not depend on the number of messages. Today is counted for each request. Days are in
UTC.
"""

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from datetime import UTC, date, datetime, time as clock, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Extract, Left, TruncDate
from django.utils import timezone

from konstruct.orchestrator.extraction.fact_requests import PURPOSE as EXTRACTION
from konstruct.orchestrator.models import DailyActivity, Escalation, ModelCall
from memory.models import Message, Role
from memory.recall.service import known_languages
from memory.text.lexical import main_language

MAX_DAYS: Final = 366
# The newest messages of users, of which the languages are counted.
NEWEST: Final = 300
# A language of a smaller share is not counted: a few words may look like those of another language.
MIN_LANGUAGE_SHARE: Final = 0.05
# A day is counted this long after its end. Recall events are stored some time after replies.
SETTLE_TIME: Final = timedelta(hours=1)
# A request counts missing days for at most this time. The next request continues.
MAX_COUNTING_SECONDS = 3.0
DAYS_AT_ONCE: Final = 7
# Upper limits, in seconds, of the buckets of reply times. Each is the one before times sqrt(2).
BUCKET_LIMITS: Final = tuple(round(0.25 * 2 ** (step / 2), 3) for step in range(25))

_TOKENS: Final = ("prompt_tokens", "completion_tokens")


def source_of_reply() -> models.Expression:
    """Return an expression over messages for the source of a reply; NULL without a recall event.

    "facts": the prompt has facts. "memories": it has recalled messages and no facts. "turns": it
    has recent turns only. "nothing": none of them.
    """
    return models.Case(
        models.When(recall_event__isnull=True, then=None),
        models.When(recall_event__fact_count__gt=0, then=models.Value("facts")),
        models.When(recall_event__hit_count__gt=0, then=models.Value("memories")),
        models.When(recall_event__turn_count__gt=0, then=models.Value("turns")),
        default=models.Value("nothing"),
    )


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
    reply_times: list[int] = field(default_factory=lambda: [0] * (len(BUCKET_LIMITS) + 1))

    def percentile(self, share: float) -> float | None:
        """Return a percentile of the reply times in seconds; None without replies.

        It is interpolated within a bucket, and at most a fifth off.

        Args:
            share: the percentile, 0 to 1.
        """
        rank, passed = share * sum(self.reply_times), 0
        if not rank:
            return None
        for number, count in enumerate(self.reply_times):
            if count and passed + count >= rank:
                low = BUCKET_LIMITS[number - 1] if number else 0.0
                high = BUCKET_LIMITS[number] if number < len(BUCKET_LIMITS) else low * 2**0.5
                return low + (high - low) * (rank - passed) / count
            passed += count
        return None

    def add(self, other: "Day") -> None:
        """Add the counts of another day."""
        for column in fields(self):
            mine, others = getattr(self, column.name), getattr(other, column.name)
            if isinstance(mine, list):
                setattr(self, column.name, [a + b for a, b in zip(mine, others, strict=True)])
            else:
                setattr(self, column.name, mine + others)


@dataclass(frozen=True, slots=True)
class Activity:
    """The activity of the days of a range."""

    days: dict[date, Day]
    is_complete: bool
    """False: some days are not counted yet. The next call continues."""

    @property
    def total(self) -> Day:
        """The sum of the range."""
        total = Day()
        for day in self.days.values():
            total.add(day)
        return total


def activity(
    *, first: date, last: date, agent_id: UUID | None = None, channel: str = ""
) -> Activity:
    """Return the current tenant's activity in a range.

    Ended days that are not counted yet are counted, for at most `MAX_COUNTING_SECONDS`.

    Args:
        first: first day of the range, in UTC.
        last: last day of the range; at most `MAX_DAYS` later.
        agent_id: only this agent.
        channel: only this channel. Extraction has no channel, and neither have calls for erased
            messages: both are left out.
    """
    length = min((last - first).days + 1, MAX_DAYS)
    every = {first + timedelta(days=number): Day() for number in range(length)}
    settled = (timezone.now() - SETTLE_TIME).astimezone(UTC).date() - timedelta(days=1)
    is_complete = count_days(day for day in every if day <= settled)
    of: dict[str, Any] = {"agent_id": agent_id} if agent_id else {}
    in_channel: dict[str, Any] = {"channel": channel} if channel else {}
    counted = DailyActivity.objects.filter(day__in=every, **of, **in_channel)
    _add_counts(every, _sum_by_day(counted))
    open_days = [day for day in every if day > settled]
    if open_days:
        _add_counts(every, _count_messages(open_days[0], open_days[-1], **of, **in_channel))
    _add_escalations(every, {**of, **in_channel})
    _add_calls(every, of | ({"message__channel": channel} if channel else {}))
    return Activity(every, is_complete)


def count_days(days: Iterable[date]) -> bool:
    """Count days without counts, newest first; return whether all are counted."""
    days = list(days)
    counted = DailyActivity.objects.filter(day__in=days, agent_id=None).values_list(
        "day", flat=True
    )
    missing = sorted({*days} - {*counted}, reverse=True)
    deadline = time.monotonic() + MAX_COUNTING_SECONDS
    for number in range(0, len(missing), DAYS_AT_ONCE):
        if time.monotonic() > deadline:
            return False
        chunk = missing[number : number + DAYS_AT_ONCE]
        rows = [
            DailyActivity(**row)
            for row in _count_messages(chunk[-1], chunk[0], by_group=True)
            if row["day"] in chunk
        ]
        rows += [DailyActivity(day=day) for day in chunk]
        DailyActivity.objects.bulk_create(rows, ignore_conflicts=True)
    return True


def recount(*, first: date, last: date) -> None:
    """Delete the counts of some days, such as after an import. They are counted again."""
    DailyActivity.objects.filter(day__range=(first, last)).delete()


_COUNTS: Final = (
    *("messages", "replies", "from_facts", "from_memories", "from_turns", "from_nothing"),
    *("prompt_tokens", "completion_tokens"),
)
_NO_TIMES: Final = (0,) * (len(BUCKET_LIMITS) + 1)


def _count_messages(
    first: date, last: date, *, by_group: bool = False, **of: Any
) -> list[dict[str, Any]]:
    """Return the counts of the messages of some days; `by_group` also by agent and channel."""
    group = ("day", "agent_id", "channel") if by_group else ("day",)
    seconds = Cast(
        Extract(models.F("created_at") - models.F("in_reply_to__created_at"), "epoch"),
        models.FloatField(),
    )
    limits = models.Value(list(BUCKET_LIMITS), ArrayField(models.FloatField()))
    # Postgres groups by the computed values, so that it computes them once for each row.
    rows: models.QuerySet[Any] = (
        Message.objects.filter(**_in_days("created_at", first, last), **of)
        .annotate(
            day=TruncDate("created_at", tzinfo=UTC),
            source=source_of_reply(),
            time_bucket=models.Func(
                seconds, limits, function="width_bucket", output_field=models.IntegerField()
            ),
        )
        .order_by()
        .values(*group, "role", "source", "time_bucket")
        .annotate(
            number=models.Count("id"),
            **{
                name: models.Sum(Cast(KT(f"usage__{name}"), models.BigIntegerField()))
                for name in _TOKENS
            },
        )
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
            if row["time_bucket"] is not None:
                counts["reply_times"][row["time_bucket"]] += row["number"]
    return list(found.values())


def _sum_by_day(rows: models.QuerySet[Any]) -> list[dict[str, Any]]:
    times = {f"bucket_{n}": models.Sum(f"reply_times__{n}") for n in range(len(BUCKET_LIMITS) + 1)}
    sums: models.QuerySet[Any] = rows.values("day").annotate(
        **{name: models.Sum(name) for name in _COUNTS}, **times
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


def _add_escalations(days: dict[date, Day], of: dict[str, Any]) -> None:
    """Add escalations by the day on which they were opened."""
    opened = Escalation.objects.to_people().filter(
        **_in_days("opened_at", min(days), max(days)), **of
    )
    groups = opened.annotate(day=TruncDate("opened_at", tzinfo=UTC)).order_by().values("day")
    for day, number in groups.annotate(number=models.Count("id")).values_list("day", "number"):
        days[day].escalations = number


def _add_calls(days: dict[date, Day], of: dict[str, Any]) -> None:
    """Add the stored costs of calls, and the tokens of extraction, which has no channel."""
    calls = ModelCall.objects.filter(**_in_days("created_at", min(days), max(days)), **of)
    groups = calls.annotate(day=TruncDate("created_at", tzinfo=UTC)).order_by().values("day")
    used = models.F("prompt_tokens") + models.F("completion_tokens")
    of_extraction = models.Q(purpose=EXTRACTION)
    sums = groups.annotate(
        spent=models.Sum("cost"), tokens=models.Sum(used, filter=of_extraction, default=0)
    )
    for day, spent, extraction_tokens in sums.values_list("day", "spent", "tokens"):
        days[day].add(Day(cost=spent, extraction_tokens=extraction_tokens))


def _in_days(column: str, first: date, last: date) -> dict[str, datetime]:
    until = last + timedelta(days=1)
    return {
        f"{column}__gte": datetime.combine(first, clock.min, UTC),
        f"{column}__lt": datetime.combine(until, clock.min, UTC),
    }


def share_of_unknown_languages() -> tuple[float, set[str]]:
    """Return the share of the newest messages in a language that the embedding model does not know.

    Returns:
        The share of the NEWEST messages of users, from 0 to 1, and the codes of these languages,
        each with at least MIN_LANGUAGE_SHARE.
    """
    newest = Message.objects.filter(role=Role.USER).order_by("-created_at")
    texts = newest.values_list(Left("content", 300), flat=True)[:NEWEST]
    languages = Counter(map(main_language, texts))
    total = languages.total()
    unknown = {
        code
        for code in languages.keys() - known_languages() - {""}
        if languages[code] >= MIN_LANGUAGE_SHARE * total
    }
    return sum(languages[code] for code in unknown) / max(1, total), unknown
