"""Sessions: the threads of LangGraph graphs, listed, read and cleared."""

from datetime import UTC, datetime
from typing import Any, Final

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.utils.http import urlencode
from django.utils.translation import gettext

from konstruct.admin.access import log_access
from memory.context import SessionStore
from memory.context.exceptions import CheckpointRefused, UnreadableSession
from memory.context.session import Session
from memory.exceptions import InvalidArgument
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action
from tenants.context import required_tenant_id

VIEW: Final = "memory.view_message"
CLEAR: Final = "audit.clear_session"
PER_PAGE: Final = 25
MAX_MESSAGES: Final = 50
# A state is read whole.
MAX_BYTES: Final = 4_000_000


@tenant_site.page("sessions/", name="sessions", permission=VIEW)
def session_list(request: HttpRequest) -> HttpResponseBase:
    """List the sessions by their last use, newest first, or find the session of a thread."""
    thread_id = request.GET.get("thread", "").replace("\0", "")
    page = find_sessions(thread_id) if thread_id else _page(request)
    log_access(request, Action.LIST, "sessions")
    last = page[PER_PAGE - 1] if len(page) > PER_PAGE else None
    return tenant_site.render(
        request,
        "konstruct/sessions.html",
        title=gettext("Sessions"),
        sessions=[
            (session, urlencode({"thread": session.thread_id})) for session in page[:PER_PAGE]
        ],
        asked=thread_id,
        is_first=not request.GET.get("before"),
        older=last and urlencode({"before": f"{last.checkpoint_id} {last.thread_id}"}),
    )


@tenant_site.page("sessions/session/", name="session", permission=VIEW)
def session(request: HttpRequest) -> HttpResponseBase:
    """One session with its newest messages, as far as they can be read without its graph."""
    found = _get_session(request)
    log_access(request, Action.VIEW, "session")
    turns: list[dict[str, Any]] = []
    problem = ""
    try:
        turns = _store().get_session_messages(found.thread_id, MAX_MESSAGES, max_bytes=MAX_BYTES)
    except (UnreadableSession, CheckpointRefused) as error:
        problem = gettext("The messages cannot be shown: %(error)s.") % {"error": error}
    return tenant_site.render(
        request,
        "konstruct/session.html",
        title=gettext("Session"),
        session=found,
        query=urlencode({"thread": found.thread_id}),
        turns=turns,
        problem=problem,
    )


@tenant_site.post_page("sessions/session/clear/", name="clear_session", permission=CLEAR)
def clear(request: HttpRequest) -> HttpResponseBase:
    """Delete the whole history of a session and log it."""
    found = _get_session(request)
    # First, because LangGraph's connection has its own transaction.
    log_access(request, Action.CLEAR, "session")
    _store().clear_session(found.thread_id)
    messages.success(request, gettext("The session is cleared. Messages of conversations stay."))
    return redirect("admin:sessions")


def _store() -> SessionStore:
    return SessionStore(required_tenant_id())


def _page(request: HttpRequest) -> list[Session]:
    """Return one session more than a page has."""
    checkpoint_id, _, thread_id = request.GET.get("before", "").replace("\0", "").partition(" ")
    position = Session(thread_id, datetime.min.replace(tzinfo=UTC), 0, checkpoint_id)
    return _store().list_sessions(PER_PAGE + 1, before=position if checkpoint_id else None)


def find_sessions(thread_id: str) -> list[Session]:
    """Return the session of a thread, if there is one."""
    try:
        found = _store().get_session(thread_id)
    except InvalidArgument:
        return []
    return [found] if found else []


def _get_session(request: HttpRequest) -> Session:
    for found in find_sessions(request.GET.get("thread", "")):
        return found
    raise Http404("This tenant has no such session.")
