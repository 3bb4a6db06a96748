"""People: an end user across agents and channels; exporting all that is known; forgetting it."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import content_disposition_header, urlencode

from konstruct.admin.access import actor_of, note
from konstruct.admin.choosing import as_user_id, whose
from konstruct.admin.export import person_as_json
from konstruct.admin.identities import known_as
from konstruct.api.request_id import current_request_id
from konstruct.audit.erasure_requests import AlreadyRequested, request_erasure
from konstruct.audit.models import AccessEvent, Action, ErasureRequest
from konstruct.orchestrator.models import Agent
from memory.models import MemoryEntry
from memory.people import acquaintances, is_known, people
from memory.threads import latest_threads
from tenants.sites import tenant_site

PER_PAGE = 50
SEE = "memory.view_scope"
EXPORT = "audit.export_person"
ERASE = "audit.add_erasurerequest"


@tenant_site.page("people/", name="people", permission=SEE)
def people_list(request: HttpRequest) -> HttpResponseBase:
    """Users by their ids."""
    like, after = as_user_id(request.GET.get("q")), request.GET.get("after", "").replace("\0", "")
    note(request, Action.SEARCH if like else Action.LIST, "people", query=like)
    found = people(after=after, like=like, limit=PER_PAGE + 1)
    return tenant_site.render(
        request,
        "konstruct/people.html",
        title="People",
        people=[(person, urlencode({"user": person.user_id})) for person in found[:PER_PAGE]],
        q=like,
        after=after,
        following=urlencode({"q": like, "after": found[PER_PAGE - 1].user_id})
        if len(found) > PER_PAGE
        else "",
    )


@tenant_site.page("people/person/", name="person", permission=SEE)
def person(request: HttpRequest) -> HttpResponseBase:
    """One user, with every agent."""
    user_id = as_user_id(request.GET.get("user"))
    agents = {agent.pk: agent for agent in Agent.objects.all()}
    if not user_id or not is_known(user_id, list(agents)):
        messages.warning(request, f"Nothing is known of {user_id!r}.")
        return redirect(reverse("admin:people"))
    note(request, Action.VIEW, "person", user_id=user_id)
    known = acquaintances(user_id, list(agents))
    threads = latest_threads(
        agent_ids=[each.agent_id for each in known], user_id=user_id, limit=10
    ).threads
    return tenant_site.render(
        request,
        "konstruct/person.html",
        title="Person",
        user_id=user_id,
        query=urlencode({"user": user_id}),
        known=[
            (
                agents[each.agent_id],
                each,
                whose(each.agent_id, user_id),
            )
            for each in known
        ],
        threads=[(thread, agents[thread.agent_id].name) for thread in threads],
        facts=MemoryEntry.objects.filter(user_id=user_id).entries().defer("embedding")[:20],
        accesses=_accesses(request, user_id),
        erasure=ErasureRequest.objects.filter(user_id=user_id).order_by("-created_at").first(),
        channels=known_as(request, user_id),
        may_export=request.user.has_perm(EXPORT),
        may_erase=request.user.has_perm(ERASE),
        may_recall=request.user.has_perm("audit.recall_memories"),
        may_read=request.user.has_perm("memory.view_message"),
        may_see_windows=request.user.has_perm("memory.view_windowclear"),
        may_see_facts=request.user.has_perm("memory.view_memoryentry"),
    )


@tenant_site.page("people/person/export/", name="export_person", permission=EXPORT)
def export(request: HttpRequest) -> HttpResponseBase:
    """Send all that is known of a user."""
    user_id = as_user_id(request.GET.get("user"))
    agents = list(Agent.objects.all())
    if request.method != "POST" or not is_known(user_id, [agent.pk for agent in agents]):
        return redirect(f"{reverse('admin:person')}?{urlencode({'user': user_id})}")
    note(request, Action.EXPORT, "person", user_id=user_id)
    disposition = content_disposition_header(True, f"{user_id[:80]}.json")
    return StreamingHttpResponse(
        person_as_json(user_id, agents),
        content_type="application/json",
        headers={"Content-Disposition": disposition or "attachment"},
    )


@tenant_site.page("people/person/erase/", name="erase_person", permission=ERASE)
def erase(request: HttpRequest) -> HttpResponseBase:
    """Ask for the erasure of a user, once their id was typed to show that it is meant."""
    user_id = as_user_id(request.GET.get("user"))
    agents = list(Agent.objects.values_list("pk", flat=True))
    if not user_id or not is_known(user_id, agents):
        return redirect(reverse("admin:people"))
    problem = ""
    if request.method == "POST":
        if as_user_id(request.POST.get("typed")) == user_id:
            return _request(request, user_id)
        problem = "This is not the id of the user."
    return tenant_site.render(
        request,
        "konstruct/erase_person.html",
        title="Request erasure",
        user_id=user_id,
        query=urlencode({"user": user_id}),
        problem=problem,
        reason=request.POST.get("reason", ""),
    )


def _request(request: HttpRequest, user_id: str) -> HttpResponseBase:
    try:
        request_erasure(
            user_id,
            by=actor_of(request),
            reason=request.POST.get("reason", "").replace("\0", "")[:2000],
            request_id=current_request_id(),
        )
    except AlreadyRequested as error:
        messages.warning(request, str(error))
    else:
        messages.success(request, "The erasure is requested. An operator's process carries it out.")
    return redirect(f"{reverse('admin:person')}?{urlencode({'user': user_id})}")


def _accesses(request: HttpRequest, user_id: str) -> Any:
    if not request.user.has_perm("audit.view_accessevent"):
        return []
    return AccessEvent.objects.filter(user_id=user_id).order_by("-id")[:10]
