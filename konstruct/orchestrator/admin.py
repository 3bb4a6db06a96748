"""The orchestrator in a tenant's admin: agents are edited, waiting replies are looked at."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.decorators import display

from konstruct.orchestrator.exceptions import NothingToRetry
from konstruct.orchestrator.intake import retry_reply
from konstruct.orchestrator.models import Agent, PendingReply
from tenants.context import required_tenant_id
from tenants.sites import ReadOnlyModelAdmin, tenant_site


@admin.register(Agent, site=tenant_site)
class AgentAdmin(ModelAdmin):
    """Agents: who they are and how they remember."""

    list_display = ("name", "model_tier", "model", "recall_mode", "is_active", "created_at")
    list_filter = ("is_active", "model_tier", "recall_mode")
    search_fields = ("name", "identity", "persona")
    readonly_fields = ("id", "created_at")
    fieldsets = (
        (None, {"fields": ("name", "is_active", "id", "created_at")}),
        ("Prompt", {"fields": ("system_prompt", "identity", "persona")}),
        ("Language model", {"fields": ("model_tier", "model")}),
        (
            "Recall",
            {
                "fields": (
                    "recall_mode",
                    "recall_top_k",
                    "recall_neighbours",
                    "recall_gate",
                    "recall_open_at",
                    "recall_keep_at",
                    "recall_weights",
                )
            },
        ),
    )

    def has_delete_permission(self, request: HttpRequest, obj: Agent | None = None) -> bool:
        """Its memory would be nobody's: an agent that is not wanted any more is made inactive."""
        return False


class StateFilter(admin.SimpleListFilter):
    """Waiting, or given up."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("waiting", "waiting"), ("failed", "failed")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() is None:
            return queryset
        return queryset.filter(failed_at__isnull=self.value() == "waiting")


@admin.register(PendingReply, site=tenant_site)
class PendingReplyAdmin(ReadOnlyModelAdmin):
    """Messages without a reply, and why; those that were given up can be tried again."""

    list_display = ("message", "state", "attempts", "last_error", "due_at", "created_at")
    list_filter = (StateFilter,)
    list_select_related = ("message",)
    search_fields = ("last_error", "message__content", "message__user_id")
    ordering = ("created_at",)
    actions = ("retry",)

    @display(label={"failed": "danger", "waiting": "info"})
    def state(self, pending: PendingReply) -> str:
        """Return the word for the row's state."""
        return "failed" if pending.failed_at else "waiting"

    def has_retry_permission(self, request: HttpRequest) -> bool:
        """Who may change pending replies may have them tried again."""
        return request.user.has_perm("orchestrator.change_pendingreply")

    @admin.action(description="Try again to answer", permissions=["retry"])
    def retry(self, request: HttpRequest, queryset: QuerySet[PendingReply]) -> None:
        """Ring for the selected messages again; those that are still tried are left alone."""
        retried = 0
        tenant_id = required_tenant_id()
        for pending in queryset:
            try:
                retry_reply(pending.message_id, tenant_id=tenant_id)
            except NothingToRetry as error:
                self.message_user(request, str(error), messages.WARNING)
            else:
                retried += 1
        if retried:
            self.message_user(request, f"{retried} tried again.", messages.SUCCESS)
