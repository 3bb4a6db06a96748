"""Memories: the recall of an agent for a question, and the rows beside a memory."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext

from konstruct.admin.access import note, note_row
from konstruct.admin.choosing import Chosen, as_user_id, as_uuid
from konstruct.admin.list_tools import range_of
from konstruct.admin.lists import agent_names
from konstruct.admin.memory.playground import (
    FACTS,
    KINDS,
    MESSAGES,
    NOT_IN_THE_API,
    OWN,
    PolicyForm,
    QuestionForm,
    as_curl,
    as_python,
    as_request,
    mark_differences,
    recalled,
)
from konstruct.admin.page_tools import PageTools, days_of
from memory.browse.threads import similar_messages
from memory.models import Message, Scope
from memory.recall.marks import tenant_calibration
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action

SEE = "audit.recall_memories"
MAX_QUERY_CHARACTERS = 8192
SUGGESTED_USERS = 200
VIEW_FACTS = "memory.view_memoryentry"


@tenant_site.page("memories/", name="memories", permission=SEE)
def memories(request: HttpRequest) -> HttpResponseBase:
    """Ask an agent's memory of a user, by the agent's policy or others, side by side."""
    names = agent_names()
    chosen = Chosen.of(request.GET)
    query = _query(request)
    question = QuestionForm(request.GET)
    forms = [PolicyForm(request.GET), PolicyForm(request.GET, prefix="b")]
    is_comparing = request.GET.get("compare") == "on"
    calibration = tenant_calibration()
    sides: list[dict[str, Any]] = []
    commands: dict[str, str] = {}
    are_valid = all([question.is_valid(), *(form.is_valid() for form in forms)])
    if chosen and query and are_valid:
        note(
            request,
            Action.SEARCH,
            "memories",
            agent_id=chosen.agent.pk,
            user_id=chosen.user_id,
            query=query,
        )
        kinds = question.cleaned_data["kinds"] or KINDS
        if not request.user.has_perm(VIEW_FACTS):
            kinds = [kind for kind in kinds if kind != FACTS]
        at = _as_of(request, question)
        sides = [
            _in_range(
                request,
                recalled(chosen, query, form, kinds=kinds, at=at, calibration=calibration),
            )
            for form in (forms if is_comparing else forms[:1])
        ]
        if is_comparing:
            mark_differences(*sides)
        body = as_request(chosen, query, forms[0], kinds=kinds, at=at)
        commands = {
            "curl": as_curl(request.build_absolute_uri(reverse("search-memories")), body),
            "Python": as_python(request.build_absolute_uri("/").rstrip("/"), body),
        }
    else:
        # Whom one can ask about is listed.
        note(request, Action.LIST, "people")
    return tenant_site.render(
        request,
        "konstruct/memories.html",
        title=gettext("Memories"),
        agents=names.items(),
        agent_id=as_uuid(request.GET.get("agent")) or next(iter(names), None),
        user_id=as_user_id(request.GET.get("user")),
        query=query,
        asked=bool(query),
        question=question,
        policy_forms=forms,
        is_comparing=is_comparing,
        has_knobs=is_comparing or not are_valid or any(form.has_changed() for form in forms),
        calibration=calibration,
        sides=sides,
        days=days_of(request),
        list_tools=TOOLS.list_tools(request),
        commands=commands.items(),
        without_api=NOT_IN_THE_API if sides and {*OWN} & {*forms[0].given} else "",
        users=Scope.objects.order_by("-pk").values_list("user_id", flat=True)[:SUGGESTED_USERS],
        is_fullwidth=is_comparing,
    )


def _query(request: HttpRequest) -> str:
    return request.GET.get("q", "").replace("\0", "")[:MAX_QUERY_CHARACTERS].strip()


def _as_of(request: HttpRequest, question: QuestionForm) -> datetime | None:
    """Return the moment of the form, or else the end of the range of days."""
    at: datetime | None = question.cleaned_data["at"]
    return at or range_of(request.GET)[1]


def _in_range(request: HttpRequest, side: dict[str, Any]) -> dict[str, Any]:
    """Return the recall without messages before the range of days."""
    since, _ = range_of(request.GET)
    if since is None:
        return side
    return {**side, "hits": [hit for hit in side["hits"] if hit["created_at"] >= since]}


def _exported(request: HttpRequest) -> Iterator[tuple[Any, ...]]:
    """Yield the messages that the first policy recalls, best first."""
    chosen, query = Chosen.of(request.GET), _query(request)
    question, form = QuestionForm(request.GET), PolicyForm(request.GET)
    if not (chosen and query and question.is_valid() and form.is_valid()):
        return
    found = recalled(
        chosen,
        query,
        form,
        kinds=[MESSAGES],
        at=_as_of(request, question),
        calibration=tenant_calibration(),
    )
    for hit in _in_range(request, found)["hits"]:
        yield tuple(hit[name] for name in EXPORTED)


EXPORTED = ["message_id", "role", "name", "content", "created_at", "score"]
TOOLS = PageTools(
    "memories",
    permission=SEE,
    columns=EXPORTED,
    rows=_exported,
    filters=["agent", "compare", *PolicyForm.base_fields],
)


@tenant_site.page("memories/<uuid:message_id>/", name="neighbours", permission=SEE)
def neighbours(request: HttpRequest, message_id: UUID) -> HttpResponseBase:
    """Show the messages that are nearest to a message by meaning."""
    message = get_object_or_404(Message, pk=message_id)
    note_row(request, Action.VIEW, message, "nearest memories")
    return tenant_site.render(
        request,
        "konstruct/neighbours.html",
        title=gettext("Nearest memories"),
        message=message,
        agent=agent_names().get(message.agent_id, str(message.agent_id)),
        neighbours=similar_messages(message),
    )
