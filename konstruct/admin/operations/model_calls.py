"""Calls of language models: each call, and tokens and money by day and by agent."""

from datetime import timedelta
from typing import Any, Final

from django.contrib import admin
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone
from unfold.decorators import display

from konstruct.admin.access import AgentRowsAdmin
from konstruct.admin.choosing import as_uuid
from konstruct.admin.lists import AgentFilter, agent_names
from konstruct.orchestrator import metering
from konstruct.orchestrator.models import CallOutcome, ModelCall
from tenants.admin.sites import tenant_site
from tenants.context import reading_replica

# The days that are summed above the list, and the agents with most tokens in them.
DAYS: Final = 14
MAX_AGENTS: Final = 10


@admin.register(ModelCall, site=tenant_site)
class ModelCallAdmin(AgentRowsAdmin):
    """Requests to language models, with their tokens and their cost."""

    list_before_template = "konstruct/model_usage.html"
    list_display = (
        "created_at", "how_it_ended", "purpose", "agent", "model", "prompt_tokens",
        "completion_tokens", "cost",
    )  # fmt: skip
    list_filter = ("outcome", "purpose", AgentFilter, "created_at")
    ordering = ("-created_at", "id")
    fields = (
        *("created_at", "how_it_ended", "purpose", "agent", "model"),
        *("prompt_tokens", "completion_tokens", "cost"),
    )
    readonly_fields = ("agent", "how_it_ended")

    @display(
        description="Outcome",
        label={
            CallOutcome.DONE.label: "success",
            CallOutcome.FAILED.label: "danger",
            CallOutcome.UNKNOWN.label: "warning",
        },
    )
    def how_it_ended(self, call: ModelCall) -> str:
        """The outcome; unknown where the process ended before the answer came."""
        return str(CallOutcome(call.outcome).label)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponseBase:
        """The list of calls below the sums of the last days."""
        agent_id = as_uuid(request.GET.get("agent"))
        with reading_replica():
            rows = metering.usage(
                since=metering.midnight() - timedelta(days=DAYS - 1), agent_id=agent_id
            )
        names, by_agent = agent_names(), metering.summed(rows, "agent_id")
        by_agent.sort(key=lambda each: -(each.prompt_tokens + each.completion_tokens))
        usage = {
            "days": DAYS,
            "today": timezone.now(),
            "tables": [
                ("Day (UTC)", [(each.day, each) for each in metering.summed(rows, "day")]),
                (
                    "Agent",
                    [
                        (names.get(each.agent_id, each.agent_id or "none"), each)
                        for each in by_agent[:MAX_AGENTS]
                    ],
                ),
            ],
        }
        response: HttpResponseBase = super().changelist_view(
            request, {**(extra_context or {}), "usage": usage}
        )
        return response
