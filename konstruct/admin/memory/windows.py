"""Recent turns: windows of agents and users, listed, shown and cleared; those of shared threads."""

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.utils.http import urlencode
from django.utils.translation import gettext

from konstruct.admin.access import log_access, log_row_access
from konstruct.admin.lists import agent_names
from konstruct.admin.pages import AgentAndUser, as_number
from memory.browse.people import displayed_names
from memory.conversations.short_term import clear_window, get_recent_messages
from memory.conversations.thread_window import get_thread_turns, shared_channels
from memory.conversations.window_store import list_windows
from memory.models import Message
from tenants import transaction
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action
from tenants.context import required_tenant_id

CLEAR = "memory.add_windowclear"


@tenant_site.page("windows/", name="windows", permission="memory.view_windowclear")
def window_list(request: HttpRequest) -> HttpResponseBase:
    """List the windows in the cache, also those without a message in the transcript."""
    found, cursor = list_windows(as_number(request.GET.get("cursor")) or 0)
    log_access(request, Action.LIST, "windows", people=[row.user_id for row in found])
    people = displayed_names(row.user_id for row in found)
    agents = {str(pk): name for pk, name in agent_names().items()}
    return tenant_site.render(
        request,
        "konstruct/windows.html",
        title=gettext("Recent turns"),
        rows=[
            (
                row,
                agents.get(row.agent_id, ""),
                people.get(row.user_id, ""),
                urlencode({"agent": row.agent_id, "user": row.user_id}),
            )
            for row in found
        ],
        cursor=cursor,
    )


@tenant_site.page("window/", name="window", permission="memory.view_windowclear")
def window(request: HttpRequest) -> HttpResponseBase:
    """Show one window."""
    chosen = AgentAndUser.from_request(request)
    tenant_id, agent_id = required_tenant_id(), chosen.agent.pk
    log_access(request, Action.VIEW, "window", agent_id=agent_id, user_id=chosen.user_id)
    speakers = {
        "user_id": chosen.user_id,
        "person_name": displayed_names([chosen.user_id]).get(chosen.user_id, ""),
        "agent_name": chosen.agent.name,
    }
    return tenant_site.render(
        request,
        "konstruct/window.html",
        title=gettext("Recent turns"),
        chosen=chosen,
        turns=[
            {**turn, **speakers, "at": parse_datetime(turn.get("at", ""))}
            for turn in get_recent_messages(tenant_id, agent_id, chosen.user_id)
        ],
    )


@tenant_site.page(
    "conversations/<uuid:message_id>/window/",
    name="thread_window",
    permission="memory.view_windowclear",
)
def thread_window(request: HttpRequest, message_id: UUID) -> HttpResponseBase:
    """Show the window of a thread in which several people speak."""
    anchor = get_object_or_404(Message.objects.defer("content"), pk=message_id)
    if anchor.channel not in shared_channels():
        raise Http404("In this channel a thread has no window of its own.")
    turns = get_thread_turns(required_tenant_id(), anchor.thread_id, anchor.channel)
    shown = [turn["user_id"] for turn in turns]
    log_row_access(request, Action.VIEW, anchor, "window of a thread", people=shown)
    people = displayed_names(shown)
    agents = {str(pk): name for pk, name in agent_names().items()}
    return tenant_site.render(
        request,
        "konstruct/thread_window.html",
        title=gettext("Recent turns of the thread"),
        anchor=anchor,
        turns=[
            {
                **turn,
                "at": parse_datetime(turn.get("at", "")),
                "person_name": people.get(turn["user_id"], ""),
                "agent_name": agents.get(turn["answered_by"], ""),
            }
            for turn in turns
        ],
    )


@tenant_site.post_page("window/clear/", name="clear_window", permission=CLEAR)
def clear(request: HttpRequest) -> HttpResponseBase:
    """Clear a window and log it."""
    chosen = AgentAndUser.from_request(request)
    with transaction.atomic():
        log_access(
            request, Action.CLEAR, "window", agent_id=chosen.agent.pk, user_id=chosen.user_id
        )
        clear_window(required_tenant_id(), chosen.agent.pk, chosen.user_id)
    messages.success(request, gettext("The recent turns are cleared. Long-term memory stays."))
    return redirect(f"{reverse('admin:window')}?{chosen.query}")
