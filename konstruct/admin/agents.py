"""Agents: who they are, which model speaks for them, how they remember."""

from django.contrib import admin
from django.http import HttpRequest

from konstruct.admin.access import AuditedAdmin
from konstruct.orchestrator.models import Agent
from tenants.sites import tenant_site


@admin.register(Agent, site=tenant_site)
class AgentAdmin(AuditedAdmin):
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
