"""Today, the home of a tenant's admin: lists of waiting work, and charts of the activity."""

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.translation import gettext

from konstruct.admin.access import log_access
from konstruct.admin.charts import chart_context, chosen_days, daily_table, range_of
from konstruct.admin.first_steps import first_steps
from konstruct.admin.lists import agent_names, model_page
from konstruct.admin.memory.fact_review import REVIEW, proposed_facts
from konstruct.admin.operations.escalations import ANSWER_PERMISSION, VIEW, colleague_names
from konstruct.admin.operations.failed_jobs import failed_jobs
from konstruct.admin.waiting import badge, waiting_counts
from konstruct.channels.notifications.sending import has_recipients
from konstruct.orchestrator.activity import recount
from konstruct.orchestrator.models import Escalation, ToolCall
from konstruct.templatetags.texts import translated
from memory.browse import statistics
from tenants import transaction
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action, ErasureRequest, MessageErasure

READ = "memory.view_message"
ADD_RECIPIENT = "orchestrator.add_notificationrecipient"
# Rows of each list of Today.
MAX_ROWS_PER_SECTION = 5


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Add Today to the index page of a tenant's site, the limits to the operators' one.

    It is Unfold's callback.

    Args:
        request: the request.
        context: the context of the page.

    Returns:
        The context. The charts are left out for a user who may not read messages, and each list
        for a user who may not see its rows.
    """
    if getattr(request, "tenant", None) is None:
        return {**context, "limits": _limits()}
    log_access(request, Action.VIEW, "dashboard", asked=request.GET.dict())
    names = agent_names()
    today = {**context, "title": gettext("Today"), "sections": list(_sections(request, names))}
    if not request.user.has_perm(READ):
        return today
    return {
        **today,
        "figures": _figures(),
        "first_steps": first_steps(request),
        **chart_context(chosen_days(request)),
    }


@tenant_site.page("activity/", name="activity", permission=READ)
def activity_by_day(request: HttpRequest) -> HttpResponseBase:
    """Show the numbers of the charts as a table, each with a link to its rows.

    A POST counts the days of the table again, such as after an import or an erasure.
    """
    days = chosen_days(request)
    if request.method == "POST":
        with transaction.atomic():
            log_access(request, Action.EDIT, "dashboard", asked={"days": days})
            first, last = range_of(days)
            recount(first=first, last=last)
        return redirect(reverse("admin:activity", query={"days": days}))
    log_access(request, Action.VIEW, "dashboard", asked={"days": days})
    columns, rows = daily_table(days)
    return tenant_site.render(
        request,
        "konstruct/activity.html",
        title=gettext("Activity by day"),
        columns=columns,
        rows=rows,
        days=days,
        is_fullwidth=1,
    )


def _limits() -> list[tuple[str, str, int, int]]:
    """Return the limits of parallel work by process: the work, the setting, its value, and the
    reserve.
    """
    slots = settings.JOB_SLOTS
    at_model, of_mem0 = settings.LLM_MAX_CONCURRENT, settings.MEM0_CONCURRENCY
    return [
        (gettext("Replies"), "REPLY_CONCURRENCY", *slots["replies"]),
        (gettext("Deliveries"), "DELIVERY_CONCURRENCY", *slots["deliveries"]),
        (gettext("Embeddings"), "EMBEDDING_CONCURRENCY", *slots["embeddings"]),
        (gettext("Extractions"), "EXTRACTION_CONCURRENCY", *slots["extractions"]),
        (gettext("Requests to the language model"), "LLM_MAX_CONCURRENT", at_model, at_model // 10),
        (gettext("Extractions for mem0's API"), "MEM0_CONCURRENCY", of_mem0, of_mem0 // 4),
    ]


def _figures() -> list[tuple[str, str, str]]:
    """Return how much there is of everything, each with its list."""
    amounts = statistics.row_counts()
    figures = (
        (gettext("Messages"), "messages", reverse("admin:conversations")),
        (gettext("People"), "people", reverse("admin:people")),
        (gettext("Embedded pieces"), "pieces", _changelist_url("memory_conversationembedding")),
        (gettext("Facts"), "facts", f"{_changelist_url('memory_memoryentry')}?state=now"),
    )
    size = filesizeformat(statistics.size_in_bytes())
    return [
        *((label, str(amounts[name]), link) for label, name, link in figures),
        (gettext("On disk"), size, _changelist_url("memory_message")),
    ]


def _sections(request: HttpRequest, names: Mapping[UUID, str]) -> Iterator[dict[str, Any]]:
    """Yield the lists that the user may see, each with its oldest rows."""
    counts = waiting_counts(request)
    if request.user.has_perm(VIEW):
        yield _escalations(request, counts["orchestrator.escalation"], names)
    if request.user.has_perm("orchestrator.view_toolcall"):
        yield _tool_calls(counts["orchestrator.toolcall"])
    if request.user.has_perm(REVIEW):
        yield _proposed_facts(counts["fact_review"])
    if request.user.has_perm("orchestrator.view_pendingreply"):
        failed = counts.get("orchestrator.pendingreply", 0) + counts.get("channels.delivery", 0)
        jobs = failed_jobs(request, MAX_ROWS_PER_SECTION)
        yield _section(
            gettext("Failed"),
            max(failed, len(jobs)),
            f"{_changelist_url('orchestrator_pendingreply')}?state=failed",
            gettext("No reply, delivery or job has failed."),
            jobs,
        )
    if request.user.has_perm("audit.view_erasurerequest"):
        yield _section(
            gettext("Erasures"),
            counts["audit.erasurerequest"] + counts.get("audit.messageerasure", 0),
            _changelist_url("audit_erasurerequest"),
            gettext("No erasure waits or runs."),
            _erasures(request),
        )


def _section(
    title: str, count: int, link: str, empty: str, rows: list[dict[str, Any]]
) -> dict[str, Any]:
    return {"title": title, "count": badge(count), "link": link, "empty": empty, "rows": rows}


def _escalations(request: HttpRequest, count: int, names: Mapping[UUID, str]) -> dict[str, Any]:
    """Return the open escalations, longest waiting first; with ?mine=1 those of the user."""
    rows, is_mine = Escalation.objects.open().to_people(), request.GET.get("mine") == "1"
    if is_mine:
        rows = rows.filter(assigned_to=request.user.get_username())
    query = "state=open&to=person" + ("&assigned=me" if is_mine else "")
    empty = (
        gettext("No escalation is assigned to you.")
        if is_mine
        else gettext("No conversation waits for a person.")
    )
    section = _section(
        gettext("Escalations"),
        count,
        f"{_changelist_url('orchestrator_escalation')}?{query}",
        empty,
        [
            {
                "title": row.reason,
                "link": reverse("admin:escalation", args=[row.pk]),
                "person": row.user_id,
                "detail": names.get(row.agent_id, ""),
                "since": row.opened_at,
                "escalation": row,
            }
            for row in rows.order_by("opened_at", "id")[:MAX_ROWS_PER_SECTION]
        ],
    )
    may_assign = request.user.has_perm(ANSWER_PERMISSION) and section["rows"]
    return {
        **section,
        "mine": is_mine,
        "is_escalations": True,
        "lacks_recipients": request.user.has_perm(ADD_RECIPIENT) and not has_recipients(),
        "colleagues": may_assign and colleague_names(),
    }


def _tool_calls(count: int) -> dict[str, Any]:
    """Return the tool calls that wait for consent."""
    calls = ToolCall.objects.waiting().order_by("created_at")[:MAX_ROWS_PER_SECTION]
    return _section(
        gettext("Waiting for consent"),
        count,
        f"{_changelist_url('orchestrator_toolcall')}?state__exact=waiting",
        gettext("No tool call waits for the consent of a person."),
        [
            {
                "title": call.question or call.name,
                "link": reverse("admin:conversation", args=[call.message_id]),
                "person": call.user_id,
                "since": call.created_at,
            }
            for call in calls
        ],
    )


def _proposed_facts(count: int) -> dict[str, Any]:
    """Return the facts that wait for a review."""
    return _section(
        gettext("Proposed facts"),
        count,
        reverse("admin:fact_review"),
        gettext("No fact waits for a review."),
        [
            {
                "title": fact.content,
                "link": reverse("admin:memory_memoryentry_change", args=[fact.pk]),
                "person": fact.user_id,
                "detail": translated(fact.review_reason),
                "since": fact.created_at,
            }
            for fact in proposed_facts().defer("embedding")[:MAX_ROWS_PER_SECTION]
        ],
    )


def _erasures(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the requests that are not carried out yet, oldest first."""
    erasures: list[ErasureRequest | MessageErasure] = [
        *ErasureRequest.objects.open()[:MAX_ROWS_PER_SECTION]
    ]
    if request.user.has_perm("audit.view_messageerasure"):
        message_erasures = MessageErasure.objects.filter(done_at__isnull=True)
        erasures += message_erasures.order_by("created_at", "pk")[:MAX_ROWS_PER_SECTION]
    return [
        {
            "title": gettext("Person")
            if isinstance(row, ErasureRequest)
            else gettext("Message or conversation"),
            "link": reverse(model_page(row, "change"), args=[row.pk]),
            "person": row.user_id,
            "detail": row.last_error or (gettext("runs") if row.receipt else gettext("requested")),
            "since": row.created_at,
        }
        for row in sorted(erasures, key=lambda row: row.created_at)[:MAX_ROWS_PER_SECTION]
    ]


def _changelist_url(name: str) -> str:
    return reverse(f"admin:{name}_changelist")
