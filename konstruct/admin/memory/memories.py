"""Memories: what an agent would recall of a user for a question, and what lies beside a memory."""

from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404

from konstruct.admin.access import note, note_row
from konstruct.admin.choosing import Chosen, as_user_id, as_uuid
from konstruct.admin.lists import agent_names
from konstruct.admin.memory.marking import highlighted
from konstruct.admin.memory.recall_events import left_out, remembered
from konstruct.orchestrator.models.agents import recall_policy
from memory.browse.threads import nearest_neighbours
from memory.models import Message, Scope
from memory.recall import RecallResult, recall
from memory.recall.marks import OwnCalibration, own_calibration
from memory.recall.policy import PRESETS
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action
from tenants.context import required_tenant_id

MAX_QUERY_CHARACTERS = 8192
SUGGESTED_USERS = 200


@tenant_site.page("memories/", name="memories", permission="audit.recall_memories")
def memories(request: HttpRequest) -> HttpResponseBase:
    """Ask an agent's memory of a user, as the agent itself does for a reply."""
    names = agent_names()
    chosen = Chosen.of(request.GET)
    preset = request.GET.get("preset", "")
    query = request.GET.get("q", "").replace("\0", "")[:MAX_QUERY_CHARACTERS].strip()
    result = None
    if chosen and query:
        note(
            request,
            Action.SEARCH,
            "memories",
            agent_id=chosen.agent.pk,
            user_id=chosen.user_id,
            query=query,
        )
        policy = recall_policy(chosen.agent)
        result = recall(
            required_tenant_id(),
            chosen.agent.pk,
            chosen.user_id,
            query,
            policy=policy.with_preset(preset) if preset in PRESETS else policy,
        )
    else:
        # Whom one can ask about is listed.
        note(request, Action.LIST, "people")
    calibration = own_calibration()
    return tenant_site.render(
        request,
        "konstruct/memories.html",
        title="Memories",
        agents=names.items(),
        agent_id=as_uuid(request.GET.get("agent")) or next(iter(names), None),
        user_id=as_user_id(request.GET.get("user")),
        query=query,
        chosen=chosen,
        asked=bool(query),
        presets=PRESETS,
        preset=preset,
        calibration=calibration,
        hits=_hits(result, calibration) if result else [],
        cut=left_out(map(asdict, result.cut), calibration) if result else [],
        result=result,
        users=Scope.objects.order_by("-pk").values_list("user_id", flat=True)[:SUGGESTED_USERS],
    )


@tenant_site.page(
    "memories/<uuid:message_id>/", name="neighbours", permission="audit.recall_memories"
)
def neighbours(request: HttpRequest, message_id: UUID) -> HttpResponseBase:
    """What is remembered beside a message: the nearest by meaning."""
    message = get_object_or_404(Message, pk=message_id)
    note_row(request, Action.VIEW, message, "nearest memories")
    return tenant_site.render(
        request,
        "konstruct/neighbours.html",
        title="Nearest memories",
        message=message,
        agent=agent_names().get(message.agent_id, str(message.agent_id)),
        neighbours=nearest_neighbours(message),
    )


def _hits(result: RecallResult, calibration: OwnCalibration) -> list[dict[str, Any]]:
    """Return the hits, with the words of the question marked."""
    return [
        {
            **remembered(asdict(hit), asdict(hit), calibration),
            "highlighted": highlighted(hit.content, result.query),
            "neighbours": True,
        }
        for hit in result.hits
    ]
