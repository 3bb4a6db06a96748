"""Memories: the recall of an agent for a question."""

from dataclasses import asdict
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.utils.translation import gettext

from konstruct.admin.access import log_access
from konstruct.admin.lists import agent_names
from konstruct.admin.memory.marking import highlight
from konstruct.admin.memory.sources import left_out_context, memory_context
from konstruct.admin.pages import AgentAndUser, PersonChoice, as_uuid
from konstruct.orchestrator.models import Agent
from memory.context.search import search_memory
from memory.models import Scope
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action
from tenants.context import required_tenant_id

RECALL = "audit.recall_memories"
MAX_QUERY_CHARACTERS = 8192
SUGGESTED_USERS = 200
MAX_FACTS = 10
VIEW_FACTS = "memory.view_memoryentry"


@tenant_site.page("memories/", name="memories", permission=RECALL)
def memories(request: HttpRequest) -> HttpResponseBase:
    """Ask an agent's memory of a user."""
    names = agent_names()
    person = PersonChoice.of_request(request)
    target, query = _target(request, person), _query(request)
    found: dict[str, Any] = {}
    users = Scope.objects.order_by("-pk").values_list("user_id", flat=True)[:SUGGESTED_USERS]
    if target and query:
        log_access(
            request,
            Action.SEARCH,
            "memories",
            agent_id=target.agent.pk,
            user_id=target.user_id,
        )
        found = _recall(request, target, query)
    else:
        # Without a question the page lists the people to ask about.
        log_access(request, Action.LIST, "people", people=users)
    return tenant_site.render(
        request,
        "konstruct/memories.html",
        title=gettext("Memories"),
        agents=names.items(),
        agent_id=as_uuid(request.GET.get("agent")) or next(iter(names), None),
        user_id=person.typed,
        person=person,
        query=query,
        found=found,
        users=users,
    )


def _target(request: HttpRequest, person: PersonChoice) -> AgentAndUser | None:
    """Return the agent and the person to ask about, or None if one is missing or unknown."""
    agent_id = as_uuid(request.GET.get("agent"))
    agent = Agent.objects.filter(pk=agent_id).first() if agent_id and person.user_id else None
    return AgentAndUser(agent, person.user_id) if agent else None


def _query(request: HttpRequest) -> str:
    return request.GET.get("q", "").replace("\0", "")[:MAX_QUERY_CHARACTERS].strip()


def _recall(request: HttpRequest, target: AgentAndUser, query: str) -> dict[str, Any]:
    """Return the recall by the agent's policy for memories.html."""
    searched = search_memory(
        required_tenant_id(),
        target.user_id,
        query,
        agent_id=target.agent.pk,
        policy=target.agent.recall_policy,
        facts=MAX_FACTS if request.user.has_perm(VIEW_FACTS) else 0,
        gate=target.agent.recall_policy.gate,
        shared=True,
    )
    result = searched.messages
    authors = {"user_id": target.user_id, "agent_name": target.agent.name}
    hits = [
        {
            **memory_context(asdict(hit), asdict(hit), target.agent),
            **authors,
            "highlighted": highlight(hit.content, query),
        }
        for hit in (result.hits if result else ())
    ]
    cut = left_out_context(map(asdict, result.cut), target.agent) if result else []
    return {
        "result": result,
        "hits": hits,
        "cut": [{**memory, **authors} for memory in cut],
        "facts": searched.facts or [],
    }
