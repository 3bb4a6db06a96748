"""Today, the home of a tenant's admin: what waits for a person, and charts of the activity."""

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext

from konstruct.admin.access import note
from konstruct.admin.charts import Chosen, charts_of, days_of
from konstruct.admin.first_steps import first_steps
from konstruct.admin.lists import agent_names, model_page
from konstruct.admin.memory.fact_review import REVIEW, proposed_facts
from konstruct.admin.operations.escalations import ANSWER_PERMISSION, SEE, colleague_names
from konstruct.admin.operations.failed_jobs import failed_jobs
from konstruct.admin.waiting import shown, waiting
from konstruct.channels.notifications.sending import has_recipients
from konstruct.orchestrator.activity import recount
from konstruct.orchestrator.models import Escalation, ToolCall
from konstruct.templatetags.texts import translated
from memory.browse import statistics
from tenants import transaction
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action, ErasureRequest, MessageErasure
from tenants.context import read_from_replica

READ = "memory.view_message"
ADD_RECIPIENT = "orchestrator.add_notificationrecipient"
# Rows of each list of Today.
SHOWN = 5


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
    note(request, Action.VIEW, "dashboard", asked=request.GET.dict())
    names = agent_names()
    today = {**context, "title": gettext("Today"), "sections": list(_sections(request, names))}
    if not request.user.has_perm(READ):
        return today
    chosen = Chosen.of(request)
    with read_from_replica():
        figures, steps = _figures(), first_steps(request)
    return {
        **today,
        "chosen": chosen,
        "query": urlencode(chosen.parameters),
        "agents": names.items(),
        "figures": figures,
        "first_steps": steps,
        **charts_of(chosen),
    }


@tenant_site.page("activity/", name="activity", permission=READ)
def by_day(request: HttpRequest) -> HttpResponseBase:
    """Show the numbers of the charts as a table, each with a link to its rows.

    A POST counts the days of the table again, such as after an import or an erasure.
    """
    chosen = Chosen.of(request)
    if request.method == "POST":
        with transaction.atomic():
            note(request, Action.EDIT, "dashboard", asked=chosen.parameters)
            recount(first=chosen.first, last=chosen.last)
        return redirect(reverse("admin:activity", query=chosen.parameters))
    note(request, Action.VIEW, "dashboard", asked=chosen.parameters)
    columns, rows = days_of(chosen)
    return tenant_site.render(
        request,
        "konstruct/activity.html",
        title=gettext("Activity by day"),
        columns=columns,
        rows=rows,
        query=urlencode(chosen.parameters),
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
        (gettext("Embedded pieces"), "pieces", _list("memory_conversationembedding")),
        (gettext("Facts"), "facts", f"{_list('memory_memoryentry')}?state=now"),
    )
    size = filesizeformat(statistics.size_in_bytes())
    return [
        *((label, str(amounts[name]), link) for label, name, link in figures),
        (gettext("On disk"), size, _list("memory_message")),
    ]


def _sections(request: HttpRequest, names: Mapping[UUID, str]) -> Iterator[dict[str, Any]]:
    """Return the lists that the user may see, each with its oldest rows."""
    counts = waiting(request)
    if request.user.has_perm(SEE):
        yield _escalations(request, counts["orchestrator.escalation"], names)
    if request.user.has_perm("orchestrator.view_toolcall"):
        yield _section(
            gettext("Waiting for consent"),
            counts["orchestrator.toolcall"],
            f"{_list('orchestrator_toolcall')}?state__exact=waiting",
            gettext("No tool call waits for the consent of a person."),
            [
                {
                    "title": call.question or call.name,
                    "link": reverse("admin:conversation", args=[call.message_id]),
                    "person": call.user_id,
                    "since": call.created_at,
                }
                for call in ToolCall.objects.waiting().order_by("created_at")[:SHOWN]
            ],
        )
    if request.user.has_perm(REVIEW):
        review = reverse("admin:fact_review")
        yield _section(
            gettext("Proposed facts"),
            counts["fact_review"],
            review,
            gettext("No fact waits for a review."),
            [
                {
                    "title": fact.content,
                    "link": reverse("admin:memory_memoryentry_change", args=[fact.pk]),
                    "person": fact.user_id,
                    "detail": translated(fact.review_reason),
                    "since": fact.created_at,
                }
                for fact in proposed_facts().defer("embedding")[:SHOWN]
            ],
        )
    failed = counts.get("orchestrator.pendingreply", 0) + counts.get("channels.delivery", 0)
    if request.user.has_perm("orchestrator.view_pendingreply"):
        replies = f"{_list('orchestrator_pendingreply')}?state=failed"
        jobs = failed_jobs(request, SHOWN)
        yield _section(
            gettext("Failed"),
            max(failed, len(jobs)),
            replies,
            gettext("No reply, delivery or job has failed."),
            jobs,
        )
    if request.user.has_perm("audit.view_erasurerequest"):
        count = counts["audit.erasurerequest"] + counts.get("audit.messageerasure", 0)
        erasures = _list("audit_erasurerequest")
        yield _section(
            gettext("Erasures"),
            count,
            erasures,
            gettext("No erasure waits or runs."),
            _erasures(request),
        )


def _section(
    title: str, count: int, link: str, empty: str, rows: list[dict[str, Any]]
) -> dict[str, Any]:
    return {"title": title, "count": shown(count), "link": link, "empty": empty, "rows": rows}


def _escalations(request: HttpRequest, count: int, names: Mapping[UUID, str]) -> dict[str, Any]:
    """Return the open escalations, longest waiting first; with ?mine=1 those of the user."""
    rows, mine = Escalation.objects.open().to_people(), request.GET.get("mine") == "1"
    if mine:
        rows = rows.filter(assigned_to=request.user.get_username())
    query = "state=open&to=person" + ("&assigned=me" if mine else "")
    empty = (
        gettext("No escalation is assigned to you.")
        if mine
        else gettext("No conversation waits for a person.")
    )
    section = _section(
        gettext("Escalations"),
        count,
        f"{_list('orchestrator_escalation')}?{query}",
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
            for row in rows.order_by("opened_at", "id")[:SHOWN]
        ],
    )
    may_assign = request.user.has_perm(ANSWER_PERMISSION) and section["rows"]
    return {
        **section,
        "mine": mine,
        "is_escalations": True,
        "lacks_recipients": request.user.has_perm(ADD_RECIPIENT) and not has_recipients(),
        "colleagues": may_assign and colleague_names(),
    }


def _erasures(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the requests that are not carried out yet, oldest first."""
    found: list[ErasureRequest | MessageErasure] = [*ErasureRequest.objects.open()[:SHOWN]]
    if request.user.has_perm("audit.view_messageerasure"):
        open_ones = MessageErasure.objects.filter(done_at__isnull=True)
        found += open_ones.order_by("created_at", "pk")[:SHOWN]
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
        for row in sorted(found, key=lambda row: row.created_at)[:SHOWN]
    ]


def _list(name: str) -> str:
    return reverse(f"admin:{name}_changelist")
