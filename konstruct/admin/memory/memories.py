"""Memories: the recall of an agent for a question, and the rows beside a memory."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext

from konstruct.admin.access import log_access, log_row_access
from konstruct.admin.list_tools import date_range
from konstruct.admin.lists import agent_names
from konstruct.admin.memory.playground import (
    FACTS,
    KINDS,
    LOCAL_PARAMETERS,
    MESSAGES,
    NOT_IN_THE_API,
    PolicyForm,
    QuestionForm,
    curl_command,
    mark_differences,
    python_snippet,
    request_body,
    run_recall,
)
from konstruct.admin.page_tools import PageTools, date_range_query
from konstruct.admin.query_parameters import AgentAndUser, as_user_id, as_uuid
from memory.browse.threads import similar_messages
from memory.models import Message, Scope
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action

RECALL = "audit.recall_memories"
MAX_QUERY_CHARACTERS = 8192
SUGGESTED_USERS = 200
VIEW_FACTS = "memory.view_memoryentry"


@tenant_site.page("memories/", name="memories", permission=RECALL)
def memories(request: HttpRequest) -> HttpResponseBase:
    """Ask an agent's memory of a user, by the agent's policy or others, side by side."""
    names = agent_names()
    target = AgentAndUser.from_query(request.GET)
    query = _query(request)
    question = QuestionForm(request.GET)
    forms = [PolicyForm(request.GET), PolicyForm(request.GET, prefix="b")]
    is_comparing = request.GET.get("compare") == "on"
    sides: list[dict[str, Any]] = []
    commands: dict[str, str] = {}
    are_valid = all([question.is_valid(), *(form.is_valid() for form in forms)])
    if target and query and are_valid:
        log_access(
            request,
            Action.SEARCH,
            "memories",
            agent_id=target.agent.pk,
            user_id=target.user_id,
            query=query,
        )
        kinds, at = _kinds(request, question), _as_of(request, question)
        sides = [
            run_recall(target, query, form, kinds=kinds, at=at)
            for form in (forms if is_comparing else forms[:1])
        ]
        sides = [_in_range(request, side) for side in sides]
        if is_comparing:
            mark_differences(*sides)
        commands = _commands(request, request_body(target, query, forms[0], kinds=kinds, at=at))
    else:
        # Without a question the page lists the people to ask about.
        log_access(request, Action.LIST, "people")
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
        sides=sides,
        days=date_range_query(request),
        list_tools=TOOLS.list_tools(request),
        commands=commands.items(),
        without_api=NOT_IN_THE_API if sides and {*LOCAL_PARAMETERS} & {*forms[0].given} else "",
        users=Scope.objects.order_by("-pk").values_list("user_id", flat=True)[:SUGGESTED_USERS],
        is_fullwidth=is_comparing,
    )


def _query(request: HttpRequest) -> str:
    return request.GET.get("q", "").replace("\0", "")[:MAX_QUERY_CHARACTERS].strip()


def _kinds(request: HttpRequest, question: QuestionForm) -> list[str]:
    """Return the kinds of memories to search that the user may see."""
    kinds = question.cleaned_data["kinds"] or KINDS
    may_view_facts = request.user.has_perm(VIEW_FACTS)
    return [kind for kind in kinds if kind != FACTS or may_view_facts]


def _commands(request: HttpRequest, body: Mapping[str, Any]) -> dict[str, str]:
    """Return the same search as a command and as a program."""
    return {
        "curl": curl_command(request.build_absolute_uri(reverse("search-memories")), body),
        "Python": python_snippet(request.build_absolute_uri("/").rstrip("/"), body),
    }


def _as_of(request: HttpRequest, question: QuestionForm) -> datetime | None:
    """Return the moment of the form, or else the end of the range of days."""
    at: datetime | None = question.cleaned_data["at"]
    return at or date_range(request.GET)[1]


def _in_range(request: HttpRequest, side: dict[str, Any]) -> dict[str, Any]:
    """Return the recall without messages before the range of days."""
    since, _ = date_range(request.GET)
    if since is None:
        return side
    return {**side, "hits": [hit for hit in side["hits"] if hit["created_at"] >= since]}


def _export_rows(request: HttpRequest) -> Iterator[tuple[Any, ...]]:
    """Yield the messages that the first policy recalls, best first."""
    target, query = AgentAndUser.from_query(request.GET), _query(request)
    question, form = QuestionForm(request.GET), PolicyForm(request.GET)
    if not (target and query and question.is_valid() and form.is_valid()):
        return
    found = run_recall(
        target,
        query,
        form,
        kinds=[MESSAGES],
        at=_as_of(request, question),
    )
    for hit in _in_range(request, found)["hits"]:
        yield tuple(hit[name] for name in EXPORT_COLUMNS)


EXPORT_COLUMNS = ["message_id", "role", "name", "content", "created_at", "score"]
TOOLS = PageTools(
    "memories",
    permission=RECALL,
    columns=EXPORT_COLUMNS,
    rows=_export_rows,
)


@tenant_site.page("memories/<uuid:message_id>/", name="neighbours", permission=RECALL)
def neighbours(request: HttpRequest, message_id: UUID) -> HttpResponseBase:
    """Show the messages that are nearest to a message by meaning."""
    message = get_object_or_404(Message, pk=message_id)
    log_row_access(request, Action.VIEW, message, "nearest memories")
    return tenant_site.render(
        request,
        "konstruct/neighbours.html",
        title=gettext("Nearest memories"),
        message=message,
        agent=agent_names().get(message.agent_id, str(message.agent_id)),
        neighbours=similar_messages(message),
    )
