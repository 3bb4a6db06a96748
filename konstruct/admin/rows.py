"""The tables of memory, sessions of LangGraph graphs, and windows of recent turns."""

from typing import Any, Final

from django.contrib import admin, messages
from django.db.models import Case, F, QuerySet, When, functions
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext, gettext_lazy as _

from konstruct.admin import access, pages, queue
from konstruct.orchestrator.models import Agent
from memory import context, exceptions, indexing, models
from memory.browse.lists import displayed_names
from memory.context.session import Session
from memory.conversations import short_term, transcript, window_store
from tenants import transaction
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action
from tenants.context import required_tenant_id

MAX_QUERY_CHARACTERS: Final = 200


class MemoryAdmin(access.AgentRowsAdmin):
    """Rows of an agent and a user, in an order that has an index: other orders are too slow."""

    sortable_by: tuple[str, ...] = ()
    list_filter: Any = (pages.AgentFilter, pages.UserFilter, "created_at")


@admin.register(models.Message, site=tenant_site)
class MessageAdmin(MemoryAdmin):
    """The transcript: every turn, verbatim."""

    sortable_by = ("created_at",)
    list_display = ("created_at", "agent", "user_id", "role", "name", "channel", pages.shortened)
    list_filter = (pages.AgentFilter, pages.UserFilter, "role", "created_at")
    ordering = ("-number",)
    fields = (
        *("content", "role", "name", "agent", "user_id", "thread_id", "channel", "created_at"),
        *("metadata", "usage", "finish_reason"),
        *("conversation", "in_reply_to", "idempotency_key", "external_id", "id", "number"),
        "agent_id",
    )

    @admin.display(description=_("Conversation"))
    def conversation(self, message: models.Message) -> str:
        """A link to the conversation."""
        return pages.link(gettext("Open conversation"), "conversation", message.pk)


@admin.register(models.ConversationEmbedding, site=tenant_site)
class ConversationEmbeddingAdmin(MemoryAdmin):
    """Embedded texts, with the model of the vectors."""

    sortable_by = ("created_at",)
    list_display = ("created_at", "agent", "user_id", "role", pages.shortened, "embedding_model")
    list_filter = (pages.AgentFilter, pages.UserFilter, "role", "created_at")


@admin.register(models.PendingEmbedding, site=tenant_site)
class PendingEmbeddingAdmin(queue.JobAdmin):
    """Messages that are not embedded yet, with the reason. Failed ones can be retried."""

    kind = transcript.EMBEDDINGS
    list_display = ("message", "state", "attempts", "last_error", "due_at", "created_at")
    ordering = ("created_at", "message_id")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        # An embedding is never given up: it has failed until its next attempt.
        failed_at = Case(When(last_error__gt="", then=F("due_at")))
        return super().get_queryset(request).annotate(failed_at=failed_at)

    def retry_job(self, row: models.PendingEmbedding) -> bool:
        return indexing.retry_now(row.pk)


@admin.register(models.RecallEvent, site=tenant_site)
class RecallEventAdmin(MemoryAdmin):
    """Recalls: the memories that were found for a reply, and those that were left out."""

    sortable_by = ("created_at",)
    list_display = (
        *("created_at", "agent", "user_id", "query", "hit_count", "abstained", "milliseconds"),
    )
    list_filter = (pages.AgentFilter, pages.UserFilter, "abstained", "created_at")
    fields = (
        *("query", "why", "abstained", "milliseconds", "agent", "user_id", "embedding_model"),
        *("created_at", "id", "agent_id"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        question = functions.Left("reply__in_reply_to__content", MAX_QUERY_CHARACTERS)
        return super().get_queryset(request).defer("packed").annotate(question=question)

    @admin.display(description=_("Query"))
    def query(self, event: Any) -> str:
        """The beginning of the message that was answered."""
        return event.question or ""

    @admin.display(description=_("Sources of the reply"))
    def why(self, event: models.RecallEvent) -> str:
        """A link to the reply and its sources."""
        if event.reply_id is None:
            return gettext("Recalled for no reply.")
        return pages.link(
            gettext("See the reply and its recalled memories"),
            "conversation",
            event.reply_id,
            query={"why": event.reply_id},
        )


@admin.register(models.RecallExclusion, site=tenant_site)
class RecallExclusionAdmin(MemoryAdmin):
    """Messages, and words of messages, that recall leaves out."""

    list_display = ("created_at", "agent", "user_id", "reason", "author_name")
    ordering = ("-created_at",)


@admin.register(models.Scope, site=tenant_site)
class ScopeAdmin(MemoryAdmin):
    """Each user of each agent, with the number that the index of recall uses."""

    list_display = ("id", "agent", "user_id")
    list_filter = (pages.AgentFilter, pages.UserFilter)
    ordering = ("id",)


@admin.register(models.WindowClear, site=tenant_site)
class WindowClearAdmin(MemoryAdmin):
    """Recent turns that were cleared."""

    list_display = ("created_at", "agent", "user_id", "last_number")
    ordering = ("-id",)


@admin.register(models.Conversation, site=tenant_site)
class ConversationAdmin(MemoryAdmin):
    """Titles and metadata of conversations."""

    list_display = ("title", "agent", "user_id", "thread_id", "created_at")
    list_filter = (pages.AgentFilter, pages.UserFilter)
    ordering = ("agent_id", "user_id", "thread_id")


@admin.register(models.ConversationItem, site=tenant_site)
class ConversationItemAdmin(MemoryAdmin):
    """Items that agent frameworks store in conversations."""

    list_display = ("created_at", "agent", "user_id", "thread_id", "__str__")
    list_filter = (pages.AgentFilter, pages.UserFilter)
    ordering = ("-number",)


VIEW: Final = "memory.view_message"
VIEW_WINDOWS: Final = "memory.view_windowclear"
PER_PAGE: Final = 25
MAX_MESSAGES: Final = 50
# A state is read whole.
MAX_BYTES: Final = 4_000_000


@tenant_site.page("sessions/", permission=VIEW, title=_("Sessions"))
def sessions(request: HttpRequest) -> dict[str, Any]:
    """List the sessions by their last use, newest first, or find the session of a thread."""
    thread_id = request.GET.get("thread", "").replace("\0", "")
    last = next(iter(find_sessions(request.GET.get("before", ""))), None)
    page = (
        find_sessions(thread_id) if thread_id else _store().list_sessions(PER_PAGE + 1, before=last)
    )
    access.log_access(request, Action.LIST, "sessions")
    return {
        "sessions": page[:PER_PAGE],
        "asked": thread_id,
        "is_first": last is None,
        "has_older": len(page) > PER_PAGE,
    }


@tenant_site.page("sessions/session/", permission=VIEW, title=_("Session"))
def session(request: HttpRequest) -> dict[str, Any]:
    """One session with its newest messages, as far as they can be read without its graph."""
    found = _get_session(request)
    access.log_access(request, Action.VIEW, "session")
    turns: list[dict[str, Any]] = []
    problem = ""
    try:
        turns = _store().get_session_messages(found.thread_id, MAX_MESSAGES, max_bytes=MAX_BYTES)
    except (exceptions.UnreadableSession, exceptions.CheckpointRefused) as error:
        problem = gettext("The messages cannot be shown: %(error)s.") % {"error": error}
    return {
        "session": found,
        "turns": turns,
        "problem": problem,
    }


@tenant_site.post_page("sessions/session/clear/", permission="audit.clear_session")
def clear_session(request: HttpRequest) -> HttpResponseBase:
    """Delete the whole history of a session and log it."""
    found = _get_session(request)
    # First, because LangGraph's connection has its own transaction.
    access.log_access(request, Action.CLEAR, "session")
    _store().clear_session(found.thread_id)
    messages.success(request, gettext("The session is cleared. Messages of conversations stay."))
    return redirect("admin:sessions")


def _store() -> context.SessionStore:
    return context.SessionStore(required_tenant_id())


def find_sessions(thread_id: str) -> list[Session]:
    """Return the session of a thread, if there is one."""
    try:
        found = _store().get_session(thread_id)
    except exceptions.InvalidArgument:
        return []
    return [found] if found else []


def _get_session(request: HttpRequest) -> Session:
    for found in find_sessions(request.GET.get("thread", "")):
        return found
    raise Http404("This tenant has no such session.")


@tenant_site.page("windows/", permission=VIEW_WINDOWS, title=_("Recent turns"))
def windows(request: HttpRequest) -> dict[str, Any]:
    """List the windows in the cache, also those without a message in the transcript."""
    found, cursor = window_store.list_windows(pages.as_number(request.GET.get("cursor")) or 0)
    access.log_access(request, Action.LIST, "windows", people=[row.user_id for row in found])
    people = displayed_names(row.user_id for row in found)
    agents = {str(pk): name for pk, name in pages.agent_names().items()}
    return {
        "rows": [(row, agents.get(row.agent_id, ""), people.get(row.user_id, "")) for row in found],
        "cursor": cursor,
    }


@tenant_site.page("window/", permission=VIEW_WINDOWS, title=_("Recent turns"))
def window(request: HttpRequest) -> dict[str, Any]:
    """Show one window."""
    agent, user_id = _agent_and_user(request)
    access.log_access(request, Action.VIEW, "window", agent_id=agent.pk, user_id=user_id)
    speakers = {
        "user_id": user_id,
        "person_name": displayed_names([user_id]).get(user_id, ""),
        "agent_name": agent.name,
    }
    return {
        "agent": agent,
        "user_id": user_id,
        "turns": [
            {**turn, **speakers, "at": parse_datetime(turn.get("at", ""))}
            for turn in short_term.get_recent_messages(required_tenant_id(), agent.pk, user_id)
        ],
    }


@tenant_site.post_page("window/clear/", name="clear_window", permission="memory.add_windowclear")
def clear_recent_turns(request: HttpRequest) -> HttpResponseBase:
    """Clear a window and log it."""
    agent, user_id = _agent_and_user(request)
    with transaction.atomic():
        access.log_access(request, Action.CLEAR, "window", agent_id=agent.pk, user_id=user_id)
        short_term.clear_window(required_tenant_id(), agent.pk, user_id)
    messages.success(request, gettext("The recent turns are cleared. Long-term memory stays."))
    return redirect(reverse("admin:window", query={"agent": agent.pk, "user": user_id}))


def _agent_and_user(request: HttpRequest) -> tuple[Agent, str]:
    """Return the agent and the id of the user that the address names."""
    user_id = pages.as_user_id(request.GET.get("user"))
    if not user_id:
        raise Http404("The address names no user.")
    return get_object_or_404(Agent, pk=pages.as_uuid(request.GET.get("agent"))), user_id
