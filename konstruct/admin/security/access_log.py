"""The access log, and requests of erasure: to be read, never written by hand."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.decorators import display

from konstruct.admin.access import AuditedReadOnlyAdmin
from konstruct.admin.lists import UserFilter, agent, with_agent_name
from tenants.admin.record_columns import asked, changed, changes, exact_time, what
from tenants.admin.sites import tenant_site
from tenants.audit.models import AccessEvent, ErasureRequest, MessageErasure
from tenants.audit.pseudonyms import pseudonyms

STATES = {
    "done": "success",
    "waits for the owner": "warning",
    "being done": "info",
    "failed, will be tried again": "danger",
}


class UserOfLogFilter(UserFilter):
    """Everything that was done with one user's memory; named in the address by links."""

    def rows_of(self, user_id: str, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The user's; who was erased is in the log under another name."""
        return queryset.filter(user_id__in=[user_id, *pseudonyms(user_id)])


@admin.register(AccessEvent, site=tenant_site)
class AccessEventAdmin(AuditedReadOnlyAdmin):
    """Who did what with what, or was refused: with what was before and after, from where, when."""

    list_display = (
        "exact_time", "actor", "what", "subject", "user_id", "changed", "address",
    )  # fmt: skip
    list_filter = ("action", "actor_kind", UserOfLogFilter, "created_at")
    search_fields = ("=actor", "=user_id", "=subject_id", "=address")
    search_help_text = (
        "The name of who did it, the id of the user whose memory it was, the id of what it was done"
        " with, or an address."
    )
    ordering = ("-id",)
    fields = (
        *("exact_time", "actor", "actor_kind", "actor_id", "address", "action", "subject"),
        *("subject_id", "agent", "user_id", "changes", "asked", "request_id"),
    )
    readonly_fields = ("agent", "exact_time", "changes", "asked")

    agent = staticmethod(agent)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return with_agent_name(super().get_queryset(request))

    def get_sortable_by(self, request: HttpRequest) -> list[str]:
        return []

    what = staticmethod(what)
    changed = staticmethod(changed)
    changes = staticmethod(changes)
    asked = staticmethod(asked)
    exact_time = staticmethod(exact_time)


@admin.register(ErasureRequest, site=tenant_site)
class ErasureRequestAdmin(AuditedReadOnlyAdmin):
    """Who is to be forgotten, and what became of it."""

    list_display = ("created_at", "user_id", "agent", "requested_by", "state", "done_at")
    list_filter = (("done_at", admin.EmptyFieldListFilter), "created_at")
    search_fields = ("=user_id",)
    ordering = ("-created_at",)
    fields = (
        *("user_id", "agent", "threads", "reason", "requested_by", "created_at"),
        *("state", "how_far", "last_error", "done_at", "receipt"),
    )
    readonly_fields = ("agent", "state", "how_far")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return with_agent_name(super().get_queryset(request))

    @display(description="Agent")
    def agent(self, request: Any) -> str:
        """The one that forgets, or all of them."""
        return request.agent_name or "all of them"

    @display(description="How far")
    def how_far(self, request: ErasureRequest) -> str:
        """What is being done, while it is."""
        if not request.progress or "messages" not in request.progress:
            return "-"
        messages = request.progress["messages"]
        done = f"{messages['removed']} of {messages['of']} messages removed"
        return f"{request.progress['step']}: {done}"

    @display(description="State", label=STATES)
    def state(self, request: ErasureRequest) -> str:
        """How far it is."""
        return _state(request, begun=bool(request.progress))


@admin.register(MessageErasure, site=tenant_site)
class MessageErasureAdmin(AuditedReadOnlyAdmin):
    """Which messages and conversations are to be erased, and what became of it."""

    list_display = ("created_at", "user_id", "thread_id", "message_id", "requested_by", "state")
    list_filter = (("done_at", admin.EmptyFieldListFilter), "created_at")
    search_fields = ("=user_id", "=thread_id")
    ordering = ("-created_at",)
    fields = (
        *("message_id", "thread_id", "user_id", "agent", "reason", "requested_by", "created_at"),
        *("state", "last_error", "done_at", "receipt"),
    )
    readonly_fields = ("agent", "state")

    agent = staticmethod(agent)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return with_agent_name(super().get_queryset(request))

    @display(description="State", label=STATES)
    def state(self, request: MessageErasure) -> str:
        """How far it is."""
        return _state(request, begun=bool(request.receipt))


def _state(request: ErasureRequest | MessageErasure, *, begun: bool) -> str:
    if request.done_at:
        return "done"
    if request.last_error:
        return "failed, will be tried again"
    return "being done" if begun else "waits for the owner"
