"""The dashboard of a tenant's admin: numbers and charts, each with a link to its rows."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.timesince import timesince

from konstruct.admin.access import note
from konstruct.admin.choosing import memory_query
from konstruct.admin.first_steps import first_steps
from konstruct.admin.lists import agent_names
from konstruct.orchestrator.models import PendingReply
from memory.browse import statistics
from memory.browse.statistics import Amount, Day
from tenants.audit.models import Action
from tenants.context import reading_replica

DAYS = 30
BUSIEST = 5
CHART_WIDTH, CHART_HEIGHT = 600, 160


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Add the numbers to the index page of a tenant's site, the limits to the operators' one.

    It is Unfold's callback.

    Args:
        request: the request.
        context: the context of the page.

    Returns:
        The context; unchanged for a user who may not read messages.
    """
    if getattr(request, "tenant", None) is None:
        return {**context, "limits": _limits()}
    if not request.user.has_perm("memory.view_message"):
        return context
    note(request, Action.VIEW, "dashboard")
    with reading_replica():
        return {**context, "first_steps": first_steps(request), **_numbers()}


def _limits() -> list[tuple[str, str, int, int]]:
    """Return what each process does at once: the work, the setting, its value, and the reserve."""
    slots = settings.JOB_SLOTS
    at_model, of_mem0 = settings.LLM_MAX_CONCURRENT, settings.MEM0_CONCURRENCY
    return [
        ("Replies", "REPLY_CONCURRENCY", *slots["replies"]),
        ("Deliveries", "DELIVERY_CONCURRENCY", *slots["deliveries"]),
        ("Embeddings", "EMBEDDING_CONCURRENCY", *slots["embeddings"]),
        ("Extractions", "EXTRACTION_CONCURRENCY", *slots["extractions"]),
        ("Requests to the language model", "LLM_MAX_CONCURRENT", at_model, at_model // 10),
        ("Extractions for mem0's API", "MEM0_CONCURRENCY", of_mem0, of_mem0 // 4),
    ]


def _numbers() -> dict[str, Any]:
    names, amounts = agent_names(), statistics.amounts()
    agents, users = statistics.busiest(BUSIEST)
    return {
        "title": "Dashboard",
        "figures": _figures(amounts),
        "charts": _charts(amounts),
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


def _figures(amounts: dict[str, Amount]) -> list[dict[str, Any]]:
    outbox = statistics.outbox()
    waiting = f"the oldest for {timesince(outbox.oldest)}" if outbox.oldest else "nothing waits"
    replies = _list("orchestrator_pendingreply")
    embeddings = _list("memory_pendingembedding")
    facts = f"{_list('memory_memoryentry')}?state=now"
    disk = filesizeformat(statistics.size_in_bytes())
    queued, failed = PendingReply.objects.waiting().count(), PendingReply.objects.failed().count()
    figures = (
        ("Messages", amounts["messages"], reverse("admin:conversations"), "of users and agents"),
        ("People", amounts["people"], reverse("admin:people"), "known to agents"),
        ("Memories", amounts["pieces"], _list("memory_conversationembedding"), "embedded pieces"),
        ("Recalls", amounts["recalls"], _list("memory_recallevent"), "one for each reply"),
        ("Facts", amounts["facts"], facts, "current"),
        ("Replies queued", queued, f"{replies}?state=queued", "written in a moment"),
        ("Replies failed", failed, f"{replies}?state=failed", "can be retried"),
        ("Embeddings queued", outbox.waiting, embeddings, waiting),
        (
            "Embeddings failed",
            outbox.failed,
            f"{embeddings}?state=failed",
            "retried automatically",
        ),
        ("Memory on disk", disk, _list("memory_message"), "all tables and indexes"),
    )
    return [
        {
            "label": label,
            "value": _shown(value),
            "link": link,
            "note": note,
            "is_bad": label.endswith("failed") and value,
        }
        for label, value, link, note in figures
    ]


def _charts(amounts: dict[str, Amount]) -> list[dict[str, Any]]:
    messages = statistics.messages_per_day(DAYS, rows=amounts["messages"].rows)
    recalls = statistics.recalls_per_day(DAYS, rows=amounts["recalls"].rows)
    total, found = sum(day.count for day in recalls), sum(day.found for day in recalls)
    share = f", {round(100 * found / total)} % found something" if total else ""
    return [
        {
            "title": "Messages per day",
            "summary": _summary(amounts["messages"], messages),
            **_bars(messages, _list("memory_message"), lambda day: f"{day.count:,}"),
        },
        {
            "title": "Recalls per day",
            "summary": _summary(amounts["recalls"], recalls) + share,
            "legend": "green: found something",
            **_bars(
                recalls,
                _list("memory_recallevent"),
                lambda day: f"{day.count:,}, of which {day.found:,} found something",
            ),
        },
    ]


def _summary(amount: Amount, days: Sequence[Day]) -> str:
    about = "about " if statistics.is_sampled(amount.rows) else ""
    return f"{about}{sum(day.count for day in days):,} in {DAYS} days"


def _bars(days: Sequence[Day], address: str, label: Callable[[Day], str]) -> dict[str, Any]:
    """Return a bar for each day, in units of the chart; `part` is what found something."""
    most = max(day.count for day in days)
    step, scale = CHART_WIDTH / len(days), CHART_HEIGHT / max(most, 1)
    bars = []
    for number, day in enumerate(days):
        height, part = round(scale * day.count, 1), round(scale * day.found, 1)
        end = day.day + timedelta(days=1)
        shown = {
            "created_at__gte": f"{day.day} 00:00:00+00:00",
            "created_at__lt": f"{end} 00:00:00+00:00",
        }
        bars.append(
            {
                "label": f"{day.day:%-d %B}: {label(day)}",
                "link": f"{address}?{urlencode(shown)}",
                "x": round((number + 0.1) * step, 1),
                "width": round(0.8 * step, 1),
                "y": CHART_HEIGHT - height,
                "height": height,
                "part_y": CHART_HEIGHT - part,
                "part": part,
            }
        )
    return {"bars": bars, "first": days[0].day, "last": days[-1].day, "most": most}


def _list(name: str) -> str:
    return reverse(f"admin:{name}_changelist")


def _shown(value: Amount | int | str) -> str:
    if isinstance(value, Amount):
        return f"{'about ' if value.is_estimate else ''}{value.rows:,}"
    return value if isinstance(value, str) else f"{value:,}"
