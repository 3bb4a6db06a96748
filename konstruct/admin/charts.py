"""Charts of a tenant's activity: the chosen range, data for Chart.js, and links to rows."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from operator import attrgetter
from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest
from django.urls import reverse
from django.utils.dateparse import parse_date
from django.utils.formats import date_format
from django.utils.http import urlencode
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from konstruct.admin.query_parameters import as_uuid
from konstruct.orchestrator.activity import MAX_DAYS, Activity, Day, activity
from konstruct.orchestrator.models import DailyActivity
from tenants.admin.badges import format_number

RANGES: Final = (7, 30, 90)
DEFAULT_DAYS: Final = 30
MAX_CHANNEL_CHARACTERS: Final = 100


@dataclass(frozen=True, slots=True)
class ChartFilters:
    """The range, agent and channel that a page shows."""

    first: date
    last: date
    days: int | None
    """Of a range that ends today; None: from one date to another."""
    agent_id: UUID | None
    channel: str

    @classmethod
    def from_request(cls, request: HttpRequest) -> "ChartFilters":
        """Return the parameters of the address; invalid ones are ignored."""
        today = datetime.now(UTC).date()
        agent_id = as_uuid(request.GET.get("agent"))
        channel = request.GET.get("channel", "").replace("\0", "")[:MAX_CHANNEL_CHARACTERS]
        first, last = (_date(request.GET.get(name)) for name in ("from", "to"))
        if request.GET.get("days", "custom") == "custom" and first and last and first <= last:
            # Two ranges of this length, before today, are dates that Postgres has.
            last = min(last, today)
            first = max(min(first, last), last - timedelta(days=MAX_DAYS - 1))
            return cls(first, last, None, agent_id, channel)
        days_parameter = request.GET.get("days", "")
        days = int(days_parameter) if days_parameter in {*map(str, RANGES)} else DEFAULT_DAYS
        return cls(today - timedelta(days=days - 1), today, days, agent_id, channel)

    def activity(self) -> Activity:
        """Read the activity of the range."""
        return activity(
            first=self.first, last=self.last, agent_id=self.agent_id, channel=self.channel
        )

    @property
    def parameters(self) -> dict[str, str]:
        """The choice as parameters of an address."""
        fields = {"agent": str(self.agent_id or ""), "channel": self.channel}
        range_parameters = (
            {"days": str(self.days)}
            if self.days
            else {"days": "custom", "from": str(self.first), "to": str(self.last)}
        )
        return {**range_parameters, **{name: value for name, value in fields.items() if value}}


def _date(text: str | None) -> date | None:
    try:
        day = parse_date(text or "")
    except ValueError:
        return None
    return day if day and day.year >= 2000 else None


ReadValue = Callable[[Day], Any]


@dataclass(frozen=True, slots=True)
class Series:
    """One line, or the bars of one colour, of a chart, and the list of its rows."""

    name: Any
    value: ReadValue
    colour: str
    model: str
    """Model of the list; empty: there is no list."""
    time: str
    """Column of the rows' time."""
    filters: dict[str, str]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart: its series are stacked bars, or lines."""

    title: Any
    headline: ReadValue
    series: tuple[Series, ...]
    kind: str = "bar"
    unit: str = ""


MESSAGES: Final = "memory_message"
ESCALATIONS: Final = "orchestrator_escalation"
REPLIES: Final = {"role__exact": "assistant"}


def _series(
    name: Any,
    value: ReadValue,
    colour: str,
    model: str = MESSAGES,
    time: str = "created_at",
    **of: str,
) -> Series:
    return Series(name, value, colour, model, time, of)


def _percentile_seconds(fraction: float) -> ReadValue:
    def read(day: Day) -> float | None:
        seconds = day.percentile(fraction)
        return None if seconds is None else round(seconds, 2)

    return read


MESSAGES_CHART: Final = Chart(
    _("Messages"),
    attrgetter("messages"),
    (_series(_("Messages"), attrgetter("messages"), "primary-600", role__exact="user"),),
)
SOURCES_CHART: Final = Chart(
    _("Replies by source"),
    attrgetter("replies"),
    (
        _series(_("From facts"), attrgetter("from_facts"), "green-600", source="facts"),
        _series(
            _("From recalled messages"),
            attrgetter("from_memories"),
            "primary-600",
            source="memories",
        ),
        _series(_("From recent turns alone"), attrgetter("from_turns"), "blue-400", source="turns"),
        _series(_("From nothing"), attrgetter("from_nothing"), "orange-400", source="nothing"),
    ),
)
ESCALATIONS_CHART: Final = Chart(
    _("Escalations"),
    attrgetter("escalations"),
    (
        _series(
            *(_("Escalations"), attrgetter("escalations"), "orange-600", ESCALATIONS, "opened_at"),
            to="person",
        ),
    ),
)
TIMES_CHART: Final = Chart(
    _("Reply time"),
    _percentile_seconds(0.95),
    (
        _series("p50", _percentile_seconds(0.5), "primary-600", **REPLIES),
        _series("p95", _percentile_seconds(0.95), "orange-600", **REPLIES),
    ),
    kind="line",
    unit="s",
)
TOKENS_CHART: Final = Chart(
    _("Tokens"),
    attrgetter("tokens"),
    (
        _series(_("Sent for replies"), attrgetter("prompt_tokens"), "primary-600", **REPLIES),
        _series(_("Received for replies"), attrgetter("completion_tokens"), "blue-400", **REPLIES),
        _series(
            *(_("Extraction of facts"), attrgetter("extraction_tokens"), "green-600"),
            "orchestrator_extractionrun",
        ),
    ),
)
# A day between days without a value is a point.
LINE_OPTIONS: Final = {"spanGaps": True, "pointStyle": "circle", "pointRadius": 2}
CHARTS: Final = (*(MESSAGES_CHART, SOURCES_CHART, ESCALATIONS_CHART, TIMES_CHART, TOKENS_CHART),)


def chart_context(filters: ChartFilters) -> dict[str, Any]:
    """Return the charts of a range for index.html."""
    period = filters.activity()
    before, total = period.previous_total, period.total
    return {
        "charts": [_chart_context(chart, period, total, before, filters) for chart in CHARTS],
        "cost": None if not total.cost else format_number(total.cost, 2),
        "cost_before": None if not before.cost else format_number(before.cost, 2),
        "is_complete": period.is_complete,
        "channels": _channels(),
    }


def _channels() -> list[str]:
    """Return the channels of counted days, and those of every deployment."""
    rows = DailyActivity.objects.exclude(channel="").order_by().values_list("channel", flat=True)
    return sorted({"rest", "slack", *rows.distinct()[:50]})


def _chart_context(
    chart: Chart, period: Activity, total: Day, before: Day, filters: ChartFilters
) -> dict[str, Any]:
    days, earlier = list(period.days.items()), list(period.previous_days.values())
    datasets = [
        {
            "label": str(series.name),
            "data": [series.value(day) for _, day in days],
            "backgroundColor": f"var(--color-{series.colour})",
            "borderColor": f"var(--color-{series.colour})",
            "maxBarThickness": 20,
            "maxTicksXLimit": 8,
            "displayYAxis": True,
            **({"suffixYAxis": chart.unit} if chart.unit else {}),
            **({"stack": "day"} if chart.kind == "bar" else LINE_OPTIONS),
        }
        for series in chart.series
    ]
    if any(chart.headline(day) for day in earlier):
        datasets.append(
            {
                "type": "line",
                "label": gettext("Days before"),
                "data": [chart.headline(day) for day in earlier],
                "borderColor": "var(--color-base-400)",
                "borderDash": [4, 4],
                "spanGaps": True,
            }
        )
    labels = [date_format(day, "MONTH_DAY_FORMAT") for day, _ in days]
    return {
        "title": chart.title,
        "kind": chart.kind,
        "data": json.dumps({"labels": labels, "datasets": datasets}),
        "days": json.dumps([*(str(day) for day, _ in days), str(filters.last + timedelta(days=1))]),
        "addresses": json.dumps(
            [_rows_url(series, filters, "DAY", "NEXT") for series in chart.series]
        ),
        "series": [
            {
                "name": series.name,
                "colour": series.colour,
                "total": _format_number(series.value(total), chart.unit),
                "link": _rows_url(
                    series, filters, str(filters.first), str(filters.last + timedelta(days=1))
                ),
            }
            for series in chart.series
        ],
        "summary": _format_number(chart.headline(total), chart.unit),
        "change": _format_change(chart.headline(total), chart.headline(before)),
    }


def _rows_url(series: Series, filters: ChartFilters, since: str, until: str) -> str:
    """Return the list of the rows of a series between two days."""
    if not series.model:
        return ""
    parameters = {"agent": str(filters.agent_id)} if filters.agent_id else {}
    if filters.channel and series.model in (MESSAGES, ESCALATIONS):
        parameters["channel__exact"] = filters.channel
    time_range = {
        f"{series.time}__gte": f"{since} 00:00:00+00:00",
        f"{series.time}__lt": f"{until} 00:00:00+00:00",
    }
    url = reverse(f"admin:{series.model}_changelist")
    return f"{url}?{urlencode({**time_range, **series.filters, **parameters})}"


def _format_number(value: float | int | None, unit: str) -> str:
    if value is None:
        return "-"
    return f"{format_number(value, 2)} {unit}" if unit else format_number(value)


def _format_change(now: float | None, before: float | None) -> str:
    """Return the difference to the days before, in percent."""
    if not now or not before:
        return ""
    change = round(100 * (now - before) / before)
    return f"{'+' if change >= 0 else ''}{format_number(change)} %"


def daily_table(filters: ChartFilters) -> tuple[list[str], Iterable[Sequence[Any]]]:
    """Return the range as a table: names of columns, and for each day the numbers with links."""
    period = filters.activity()
    series = [line for chart in CHARTS for line in chart.series]
    rows = [
        (
            day,
            [
                (
                    _format_number(
                        line.value(values), "" if isinstance(line.value(values), int) else "s"
                    ),
                    _rows_url(line, filters, str(day), str(day + timedelta(days=1))),
                )
                for line in series
            ],
        )
        for day, values in reversed(list(period.days.items()))
    ]
    return [line.name for line in series], rows
