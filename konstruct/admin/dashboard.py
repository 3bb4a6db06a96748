"""The first page of a tenant's admin: its memory in numbers, each a way to the rows behind it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.timesince import timesince

from konstruct.admin.access import note
from konstruct.admin.choosing import memory_query
from konstruct.admin.lists import agent_names
from konstruct.orchestrator.models import PendingReply
from memory.browse import statistics
from memory.browse.statistics import Amount, Day
from tenants.audit.models import Action
from tenants.context import reading_replica

DAYS = 30
BUSIEST = 5
CHART_WIDTH, CHART_HEIGHT = 600, 160


@dataclass(frozen=True, slots=True)
class Figure:
    """One number, with the way to its rows."""

    label: str
    value: str
    link: str
    note: str = ""
    is_bad: bool = False


@dataclass(frozen=True, slots=True)
class Bar:
    """One day in a chart: the whole, and the part of it that is told apart."""

    label: str
    link: str
    x: float
    width: float
    height: float
    part: float

    @property
    def y(self) -> float:
        """Where it begins, from above."""
        return CHART_HEIGHT - self.height

    @property
    def part_y(self) -> float:
        """Where its part begins, from above."""
        return CHART_HEIGHT - self.part


@dataclass(frozen=True, slots=True)
class Chart:
    """Days as bars."""

    title: str
    summary: str
    bars: list[Bar]
    first: date
    last: date
    most: int
    legend: str = ""


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Add the numbers to the index page of a tenant's site, for those who may read messages."""
    if getattr(request, "tenant", None) is None or not request.user.has_perm("memory.view_message"):
        return context
    note(request, Action.VIEW, "dashboard")
    with reading_replica():
        return {**context, **_numbers()}


def _numbers() -> dict[str, Any]:
    names, amounts = agent_names(), statistics.amounts()
    agents, users = statistics.busiest(BUSIEST)
    return {
        "title": "Dashboard",
        "figures": _figures(amounts),
        "charts": [
            _messages_chart(amounts["messages"].rows),
            _recalls_chart(amounts["recalls"].rows),
        ],
        "latest": statistics.LATEST,
        "busiest_agents": [
            (names.get(agent_id, str(agent_id)), count, memory_query(agent_id, None))
            for agent_id, count in agents
        ],
        "busiest_users": [
            (user_id, names.get(agent_id, str(agent_id)), count, memory_query(agent_id, user_id))
            for (agent_id, user_id), count in users
        ],
    }


def _figures(amounts: dict[str, Amount]) -> list[Figure]:
    outbox = statistics.outbox()
    pending, embeddings = (
        _list("orchestrator_pendingreply"),
        _list("memory_pendingembedding"),
    )
    waiting = PendingReply.objects.waiting().count()
    failed = PendingReply.objects.failed().count()
    return [
        Figure(
            "Messages",
            _shown(amounts["messages"]),
            reverse("admin:conversations"),
            "of users and agents",
        ),
        Figure("People", _shown(amounts["people"]), reverse("admin:people"), "whom agents know"),
        Figure(
            "Memories",
            _shown(amounts["pieces"]),
            _list("memory_conversationembedding"),
            "embedded pieces",
        ),
        Figure(
            "Recalls", _shown(amounts["recalls"]), _list("memory_recallevent"), "one for each reply"
        ),
        Figure(
            "Facts",
            _shown(amounts["facts"]),
            f"{_list('memory_memoryentry')}?state=now",
            "current",
        ),
        Figure(
            "Replies queued",
            f"{waiting:,}",
            f"{pending}?state=queued",
            "are written in a moment",
        ),
        Figure(
            "Replies failed",
            f"{failed:,}",
            f"{pending}?state=failed",
            "can be retried",
            is_bad=failed > 0,
        ),
        Figure(
            "Embeddings queued",
            f"{outbox.waiting:,}",
            embeddings,
            f"the oldest for {timesince(outbox.oldest)}" if outbox.oldest else "nothing waits",
        ),
        Figure(
            "Embeddings failed",
            f"{outbox.failed:,}",
            f"{embeddings}?state=failed",
            "retried automatically",
            is_bad=outbox.failed > 0,
        ),
        Figure(
            "Memory on disk",
            filesizeformat(statistics.size_in_bytes()),
            _list("memory_message"),
            "all tables and indexes",
        ),
    ]


def _messages_chart(rows: int) -> Chart:
    days = statistics.messages_per_day(DAYS, rows=rows)
    total = sum(day.count for day in days)
    address = reverse("admin:memory_message_changelist")
    return _chart(
        "Messages per day",
        f"{_about(rows)}{total:,} in {DAYS} days",
        days,
        address,
        lambda day: f"{day.count:,}",
    )


def _recalls_chart(rows: int) -> Chart:
    days = statistics.recalls_per_day(DAYS, rows=rows)
    total, found = sum(day.count for day in days), sum(day.found for day in days)
    share = f", {round(100 * found / total)} % found something" if total else ""
    return _chart(
        "Recalls per day",
        f"{_about(rows)}{total:,} in {DAYS} days{share}",
        days,
        reverse("admin:memory_recallevent_changelist"),
        lambda day: f"{day.count:,}, of which {day.found:,} found something",
        legend="green: found something",
    )


def _chart(
    title: str, summary: str, days: Sequence[Day], address: str, say: Any, legend: str = ""
) -> Chart:
    most = max(day.count for day in days)
    step = CHART_WIDTH / len(days)
    bars = [
        Bar(
            label=f"{day.day:%-d %B}: {say(day)}",
            link=f"{address}?{_on(day.day)}",
            x=round(number * step + 0.1 * step, 1),
            width=round(0.8 * step, 1),
            height=round(CHART_HEIGHT * day.count / most, 1) if most else 0,
            part=round(CHART_HEIGHT * day.found / most, 1) if most else 0,
        )
        for number, day in enumerate(days)
    ]
    return Chart(title, summary, bars, days[0].day, days[-1].day, most, legend)


def _on(day: date) -> str:
    """One day as the parameters of a list."""
    end = day + timedelta(days=1)
    return urlencode(
        {
            "created_at__gte": f"{day} 00:00:00+00:00",
            "created_at__lt": f"{end} 00:00:00+00:00",
        }
    )


def _about(rows: int) -> str:
    return "about " if statistics.is_sampled(rows) else ""


def _list(name: str) -> str:
    return reverse(f"admin:{name}_changelist")


def _shown(amount: Amount) -> str:
    return f"{'about ' if amount.is_estimate else ''}{amount.rows:,}"
