"""The sidebars of both sites, Records, and Today: what waits, and five charts of the activity."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any, Final

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.translation import gettext, gettext_lazy as _

from konstruct.admin.access import log_access
from konstruct.orchestrator import activity, replies
from konstruct.templatetags.texts import language_names
from memory.models import Message
from tenants import transaction
from tenants.admin import exports, sites, tenants
from tenants.admin.recorded_admin import format_number
from tenants.audit.models import Action
from tenants.context import fetch_row, required_tenant_id

# Title, icon, and the model of a list, which needs its view permission, or the name of a page.
TENANT_MENU = (
    (
        _("Work"),
        (
            (_("Today"), "today", "index"),
            (_("Conversations"), "forum", "conversations"),
            (_("People"), "group", "people"),
            (_("Facts to review"), "rule", "fact_review"),
            (_("Escalations"), "support_agent", "orchestrator.escalation"),
            (_("Agents"), "smart_toy", "orchestrator.agent"),
            (_("Search"), "search", "search_page"),
        ),
    ),
    ("", ((_("Records"), "database", "records"),)),
    (
        _("Settings"),
        (
            (_("Team"), "badge", "auth.user"),
            (_("Language models"), "neurology", "orchestrator.languagemodel"),
            (_("API keys"), "key", "api.apikey"),
            (_("Retention"), "auto_delete", "audit.retentionrule"),
            (_("Notifications"), "notifications", "outbox.subscription"),
            (_("Slack"), "tag", "channels.slackinstallation"),
        ),
    ),
)
OPERATORS_MENU = (
    (
        "",
        (
            (_("Tenants"), "domain", "tenants.tenant"),
            (_("Processes"), "memory", "processes"),
            (_("Operators"), "badge", "auth.user"),
            (_("Groups"), "admin_panel_settings", "auth.group"),
            (_("Log"), "history", "tenants.operatorevent"),
        ),
    ),
)
# The explanation of each entry, which is the model of a list, or the name of a page.
RECORDS: Final = (
    (
        _("Conversations"),
        {
            "memory.message": _("Each message of a person and of an agent."),
            "memory.recallevent": _(
                "What an agent found in its memory for a reply, and its prompt."
            ),
            "orchestrator.toolcall": _("What agents did or asked to do."),
            "memory.conversation": _("Titles and metadata that programs set."),
            "memory.conversationitem": _(
                "Tool calls and results that programs sent through the OpenAI API."
            ),
            "sessions": _("Threads that LangGraph keeps."),
            "windows": _("The last turns of each agent and user, as prompts include them."),
            "memory.windowclear": _("When recent turns were cleared, and by whom."),
        },
    ),
    (
        _("Memory"),
        {
            "memory.memoryentry": _("What agents know, with earlier versions."),
            "memory.factevidence": _("The quotes of messages from which facts come."),
            "memory.factevent": _("Each change of a fact, and by whom."),
            "orchestrator.extractionrun": _("When facts were extracted, with preview and undo."),
            "memories": _("What an agent recalls for a person and a text: try it."),
            "memory.conversationembedding": _("Messages in pieces, with their embeddings."),
            "memory.recallexclusion": _("Messages that are not recalled."),
        },
    ),
    (
        _("People"),
        {
            "orchestrator.channelidentity": _("Accounts in channels, and the person of each."),
            "memory.scope": _("Which agent has memories of which person."),
            "audit.erasurerequest": _("Requests to erase a person, with receipts."),
            "audit.messageerasure": _("Requests to erase a message or a conversation."),
            "channels.slackmember": _("Members of the team who answer people from Slack."),
        },
    ),
    (
        _("Queue"),
        {
            "orchestrator.pendingreply": _("Messages without a reply, and why."),
            "channels.delivery": _("Replies on their way to a channel."),
            "memory.pendingembedding": _("Messages that cannot be searched yet."),
            "orchestrator.extractioncursor": _(
                "How far facts were extracted from each conversation."
            ),
            "channels.arrival": _("What Slack sent and is not read yet."),
            "outbox.outboxevent": _("What programs can read, and programs and people receive."),
            "outbox.eventdelivery": _(
                "Events sent to programs and people; failed ones can be retried."
            ),
        },
    ),
    (
        _("Access and usage"),
        {
            "audit.accessevent": _("Who read or changed what."),
            "audit.listexport": _("Files of lists, and who requested them."),
            "import_history": _("Exports of other systems: preview and import them here."),
            "orchestrator.historyimport": _("Files with history, and who sent them."),
            "orchestrator.dailyusage": _("Quotas, messages and costs by day."),
            "orchestrator.modelcall": _("Each request to a language model."),
            "auth.group": _("What members of the team may do."),
            "activity": _("The numbers of the charts of Today."),
        },
    ),
)
# A number counts no further.
MAX_COUNT: Final = 99
_FAILED: Final = (
    "tenants_job WHERE tenant_id = %(tenant)s AND failed_at IS NOT NULL"
    f" AND error_code <> '{replies.CLOSED}' AND kind ="
)
# The rows that wait for a person, and the filter of their list. Each has an index, or is a small
# table.
_OPEN: Final = "orchestrator_escalation WHERE resolved_at IS NULL AND to_agent_id IS NULL"
_PROPOSED: Final = "memory_memoryentry WHERE state = 'proposed' AND version_of IS NULL"
WAITING: Final = {
    "orchestrator.escalation": (_OPEN, {"resolved_at__isempty": "1", "to_agent_id__isempty": "1"}),
    "orchestrator.toolcall": (
        "orchestrator_toolcall WHERE state = 'waiting'",
        {"state__exact": "waiting"},
    ),
    "fact_review": (_PROPOSED, {}),
    "orchestrator.pendingreply": (f"{_FAILED} 'reply'", {"state": "failed"}),
    "channels.delivery": (f"{_FAILED} 'delivery'", {"state": "failed"}),
    "channels.arrival": (f"{_FAILED} 'arrival'", {"state": "failed"}),
    "orchestrator.extractioncursor": (f"{_FAILED} 'extraction'", {"state": "failed"}),
    "outbox.eventdelivery": (f"{_FAILED} 'notification'", {"state": "failed"}),
    "audit.erasurerequest": ("audit_erasurerequest WHERE done_at IS NULL", {}),
    "audit.messageerasure": ("audit_messageerasure WHERE done_at IS NULL", {}),
}


def permission_of(entry: str) -> str:
    """Return the permission for an entry of the menu: the model of a list, or a page."""
    app, _dot, model = entry.partition(".")
    return f"{app}.view_{model}" if model else sites.tenant_site.pages.get(entry, "")


def title_of(entry: str) -> str:
    """Return the name of a list or of a page for people."""
    return str(sites.tenant_site.titles.get(entry) or exports.list_title(entry))


def waiting_counts(request: HttpRequest) -> dict[str, int]:
    """Return the numbers that the user may see, up to `MAX_COUNT` + 1: one query for a request."""
    cached: dict[str, int] | None = getattr(request, "waiting", None)
    if cached is not None:
        return cached
    visible = {
        entry: rows
        for entry, (rows, _filter) in WAITING.items()
        if request.user.has_perm(permission_of(entry))
    }
    numbers: tuple[Any, ...] = ()
    if visible:
        counts = ", ".join(
            f"(SELECT count(*) FROM (SELECT FROM {rows} LIMIT {MAX_COUNT + 1}) AS found)"  # noqa: S608
            for rows in visible.values()
        )
        numbers = fetch_row(f"SELECT {counts}", {"tenant": required_tenant_id()})
    counts_by_entry = dict(zip(visible, numbers, strict=True))
    request.waiting = counts_by_entry  # type: ignore[attr-defined]
    return counts_by_entry


def badge(count: int) -> str:
    """Return a number as a badge; empty for 0."""
    return f"{MAX_COUNT}+" if count > MAX_COUNT else str(count or "")


def waiting_lists(request: HttpRequest) -> list[tuple[Any, str, str]]:
    """Return what waits for a person: the title, the filtered list, and the number of rows."""
    return [
        (title_of(entry), exports.list_url(entry, **WAITING[entry][1]), badge(count))
        for entry, count in waiting_counts(request).items()
        if count
    ]


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """The groups of the sidebar, with the pages that this person may open."""
    is_tenant = getattr(request, "tenant", None) is not None
    counts = waiting_counts(request) if is_tenant else {}
    tables = ["records", *(target for _, entries in RECORDS for target in entries)]
    is_in_records = is_tenant and request.path.startswith(tuple(map(exports.list_url, tables)))
    groups: list[dict[str, Any]] = []
    for title, entries in TENANT_MENU if is_tenant else OPERATORS_MENU:
        items = [
            {
                "title": name,
                "icon": icon,
                "link": exports.list_url(target),
                "badge": badge(counts.get(target, 0)) or None,
                **({"active": is_in_records} if target == "records" else {}),
            }
            for name, icon, target in entries
            if may_open(request, target)
        ]
        if items:
            groups.append({"title": title, "separator": bool(groups), "items": items})
    return groups


def may_open(request: HttpRequest, target: str) -> bool:
    """Return whether the person may open an entry; Records with any of its tables."""
    if target == "records":
        return any(may_open(request, of) for _, entries in RECORDS for of in entries)
    permission = permission_of(target)
    return not permission or request.user.has_perm(permission)


@sites.tenant_site.page("records/", permission="", title=_("Records"))
def records(request: HttpRequest) -> dict[str, Any]:
    """Show the tables of the tenant that the person may open, with the numbers that wait."""
    if not may_open(request, "records"):
        raise PermissionDenied
    counts = waiting_counts(request)
    groups = [
        (
            group,
            [
                (title_of(target), text, exports.list_url(target), badge(counts.get(target, 0)))
                for target, text in entries.items()
                if may_open(request, target)
            ],
        )
        for group, entries in RECORDS
    ]
    log_access(request, Action.VIEW, "records")
    return {"groups": groups}


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


@sites.tenant_site.page("activity/", name="activity", permission=READ, title=_("Activity by day"))
def activity_by_day(request: HttpRequest) -> sites.Content:
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
    return {
        "columns": [name for name, *_ in columns],
        "rows": rows,
        "days": days,
        "is_fullwidth": 1,
    }


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Add Today to the index page of a tenant's site, or what needs the attention of operators.

    It is Unfold's callback.

    Returns:
        The context. The charts are left out without a message, and for a user who may not read
        messages.
    """
    if getattr(request, "tenant", None) is None:
        return {**context, "attention": tenants.attention_context(request)}
    log_access(request, Action.VIEW, "dashboard")
    counts = waiting_counts(request)
    today = {
        **context,
        "title": gettext("Today"),
        "sees_work": bool(counts),
        "waiting": waiting_lists(request),
    }
    if not (request.user.has_perm(READ) and Message.objects.exists()):
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
