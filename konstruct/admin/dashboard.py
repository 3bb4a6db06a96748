"""Today, the home of a tenant's admin: what waits, and five charts of the activity."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any, Final

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.translation import gettext, gettext_lazy as _

from konstruct.admin.access import log_access
from konstruct.admin.menu import waiting_counts, waiting_lists
from konstruct.orchestrator import activity
from konstruct.templatetags.texts import language_names
from memory.models import Message
from tenants import transaction
from tenants.admin.recorded_admin import format_number
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action

READ: Final = "memory.view_message"
RANGES: Final = (7, 30, 90, 365)
DEFAULT_DAYS: Final = 30
# A day between days without a value is a point.
LINE_OPTIONS: Final = {"spanGaps": True, "pointStyle": "circle", "pointRadius": 2}

ReadValue = Callable[[activity.Day], Any]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart: its series are stacked bars, or lines. Each has a name, a value and a colour."""

    title: Any
    series: tuple[tuple[Any, ReadValue, str], ...]
    kind: str = "bar"
    unit: str = ""


def _percentile_seconds(fraction: float) -> ReadValue:
    def read(day: activity.Day) -> float | None:
        seconds = day.percentile(fraction)
        return None if seconds is None else round(seconds, 2)

    return read


CHARTS: Final = (
    Chart(_("Messages"), ((_("Messages"), attrgetter("messages"), "primary-600"),)),
    Chart(
        _("Replies by source"),
        (
            (_("From facts"), attrgetter("from_facts"), "green-600"),
            (_("From recalled messages"), attrgetter("from_memories"), "primary-600"),
            (_("From recent turns alone"), attrgetter("from_turns"), "blue-400"),
            (_("From nothing"), attrgetter("from_nothing"), "orange-400"),
        ),
    ),
    Chart(_("Escalations"), ((_("Escalations"), attrgetter("escalations"), "orange-600"),)),
    Chart(
        _("Reply time"),
        (
            ("p50", _percentile_seconds(0.5), "primary-600"),
            ("p95", _percentile_seconds(0.95), "orange-600"),
        ),
        kind="line",
        unit="s",
    ),
    Chart(
        _("Tokens"),
        (
            (_("Sent for replies"), attrgetter("prompt_tokens"), "primary-600"),
            (_("Received for replies"), attrgetter("completion_tokens"), "blue-400"),
            (_("Extraction of facts"), attrgetter("extraction_tokens"), "green-600"),
        ),
    ),
)


def chosen_days(request: HttpRequest) -> int:
    """Return the number of days of the address; an invalid one is ignored."""
    text = request.GET.get("days", "")
    return int(text) if text in {*map(str, RANGES)} else DEFAULT_DAYS


def _range(days: int) -> dict[str, Any]:
    """Return the first and the last of the days, in UTC."""
    today = datetime.now(UTC).date()
    return {"first": today - timedelta(days=days - 1), "last": today}


def _chart_context(chart: Chart, period: activity.Activity) -> dict[str, Any]:
    datasets = [
        {
            "label": str(name),
            "data": [value(day) for day in period.days.values()],
            "backgroundColor": f"var(--color-{colour})",
            "borderColor": f"var(--color-{colour})",
            "maxBarThickness": 20,
            "maxTicksXLimit": 8,
            "displayYAxis": True,
            **({"suffixYAxis": chart.unit} if chart.unit else {}),
            **({"stack": "day"} if chart.kind == "bar" else LINE_OPTIONS),
        }
        for name, value, colour in chart.series
    ]
    labels = [date_format(day, "MONTH_DAY_FORMAT") for day in period.days]
    return {
        "title": chart.title,
        "kind": chart.kind,
        "data": json.dumps({"labels": labels, "datasets": datasets}),
        "series": [
            {
                "name": name,
                "colour": colour,
                "total": _format_number(value(period.total), chart.unit),
            }
            for name, value, colour in chart.series
        ],
    }


def _format_number(value: float | int | None, unit: str) -> str:
    if value is None:
        return "-"
    return f"{format_number(value, 2)} {unit}" if unit else format_number(value)


@tenant_site.page("activity/", name="activity", permission=READ)
def activity_by_day(request: HttpRequest) -> HttpResponseBase:
    """Show the numbers of the charts as a table.

    A POST counts the days of the table again, such as after an import or an erasure.
    """
    days = chosen_days(request)
    if request.method == "POST":
        with transaction.atomic():
            log_access(request, Action.EDIT, "dashboard", days=days)
            activity.recount(**_range(days))
        return redirect(reverse("admin:activity", query={"days": days}))
    log_access(request, Action.VIEW, "dashboard", days=days)
    columns = [(*series, chart.unit) for chart in CHARTS for series in chart.series]
    rows = [
        (day, [_format_number(value(numbers), unit) for _, value, _, unit in columns])
        for day, numbers in reversed(list(activity.activity(**_range(days)).days.items()))
    ]
    return tenant_site.render(
        request,
        "konstruct/activity.html",
        title=gettext("Activity by day"),
        columns=[name for name, *_ in columns],
        rows=rows,
        days=days,
        is_fullwidth=1,
    )


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Add Today to the index page of a tenant's site. It is Unfold's callback.

    Returns:
        The context. The charts are left out without a message, and for a user who may not read
        messages.
    """
    if getattr(request, "tenant", None) is None:
        return context
    log_access(request, Action.VIEW, "dashboard")
    counts = waiting_counts(request)
    today = {
        **context,
        "title": gettext("Today"),
        "sees_work": bool(counts),
        "waiting": waiting_lists(request),
    }
    if not request.user.has_perm(READ):
        return today
    if not Message.objects.exists():
        return today
    days = chosen_days(request)
    period = activity.activity(**_range(days))
    cost = period.total.cost
    unknown_share, unknown = activity.share_of_unknown_languages()
    return {
        **today,
        "charts": [_chart_context(chart, period) for chart in CHARTS],
        "days": days,
        "ranges": RANGES,
        "cost": format_number(cost, 2) if cost else None,
        "is_complete": period.is_complete,
        "unknown_percent": math.ceil(100 * unknown_share),
        "unknown_languages": language_names(unknown),
    }
