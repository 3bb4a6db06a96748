"""The access log, and requests of erasure: to be read, never written by hand."""

import json
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.decorators import display

from konstruct.admin.access import AuditedReadOnlyAdmin
from konstruct.admin.lists import agent, with_agent_name
from konstruct.audit.models import AccessEvent, ErasureRequest
from tenants.sites import tenant_site


class UserOfLogFilter(admin.SimpleListFilter):
    """Everything that was done with one user's memory; named in the address by links."""

    title = "user"
    parameter_name = "user"

    def has_output(self) -> bool:
        return self.value() is not None

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        asked = request.GET.get("user", "")
        return [(asked, asked[:40])] if asked else []

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        asked = self.value()
        return queryset if asked is None else queryset.filter(user_id=asked.replace("\0", ""))


@admin.register(AccessEvent, site=tenant_site)
class AccessEventAdmin(AuditedReadOnlyAdmin):
    """Who looked at, searched, exported, cleared or asked to erase what, and when."""

    list_display = ("created_at", "actor", "what", "subject", "user_id", "asked")
    list_filter = ("action", "actor_kind", UserOfLogFilter, "created_at")
    search_fields = ("=actor", "=user_id")
    search_help_text = "The name of who did it, or the id of the user whose memory it was."
    ordering = ("-id",)
    fields = (
        *("created_at", "actor", "actor_kind", "actor_id", "action", "subject", "subject_id"),
        *("agent", "user_id", "details", "request_id"),
    )
    readonly_fields = ("agent", "details")

    agent = staticmethod(agent)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return with_agent_name(super().get_queryset(request))

    def get_sortable_by(self, request: HttpRequest) -> list[str]:
        return []

    @display(
        description="Did",
        label={
            "searched": "info",
            "exported": "warning",
            "cleared": "warning",
            "edited": "success",
            "deleted": "danger",
            "asked to erase": "danger",
        },
    )
    def what(self, event: AccessEvent) -> str:
        """The action in words."""
        return event.get_action_display()

    @display(description="Asked for")
    def asked(self, event: AccessEvent) -> str:
        """What was asked for, in short."""
        said = ", ".join(f"{name}: {value}" for name, value in event.detail.items() if value)
        return said if len(said) <= 80 else f"{said[:80]}…"

    @display(description="Details")
    def details(self, event: AccessEvent) -> SafeString:
        """All that was written down."""
        return format_html(
            '<pre class="k-pre">{}</pre>', json.dumps(event.detail, indent=2, ensure_ascii=False)
        )


@admin.register(ErasureRequest, site=tenant_site)
class ErasureRequestAdmin(AuditedReadOnlyAdmin):
    """Who is to be forgotten, and what became of it."""

    list_display = ("created_at", "user_id", "agent", "requested_by", "state", "done_at")
    list_filter = (("done_at", admin.EmptyFieldListFilter), "created_at")
    search_fields = ("=user_id",)
    ordering = ("-created_at",)
    fields = (
        *("user_id", "agent", "threads", "reason", "requested_by", "created_at"),
        *("state", "last_error", "done_at", "receipt"),
    )
    readonly_fields = ("agent", "state")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return with_agent_name(super().get_queryset(request))

    @display(description="Agent")
    def agent(self, request: Any) -> str:
        """The one that forgets, or all of them."""
        return request.agent_name or "all of them"

    @display(
        description="State",
        label={
            "done": "success",
            "waits for the owner": "warning",
            "being done": "info",
            "failed, will be tried again": "danger",
        },
    )
    def state(self, request: ErasureRequest) -> str:
        """How far it is."""
        if request.done_at:
            return "done"
        if request.last_error:
            return "failed, will be tried again"
        return "being done" if request.progress else "waits for the owner"
