"""Tool calls, read only: the call, who consented, and its result."""

import json

from django.contrib import admin
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from konstruct.admin.access import AgentRowsAdmin
from konstruct.admin.lists import AgentFilter, UserFilter
from konstruct.orchestrator.models import ToolCall
from konstruct.orchestrator.models.tool_calls import ToolCallState
from tenants.admin.badges import Colours
from tenants.admin.sites import tenant_site


@admin.register(ToolCall, site=tenant_site)
class ToolCallAdmin(AgentRowsAdmin):
    """Tool calls of agents. Only the user approves or denies them."""

    list_display = (
        "created_at", "state_label", "name", "agent", "user_id", "question", "decided_by", "result",
    )  # fmt: skip
    list_filter = ("state", AgentFilter, UserFilter, "name")
    search_fields = ("=user_id", "question", "decided_by")
    fields = (
        *("state_label", "name", "agent", "user_id", "thread_id", "message"),
        *("content", "formatted_arguments", "question"),
        *("created_at", "expires_at", "decided_at", "decided_by", "done_at", "result"),
        *("round", "position", "call_id"),
    )

    @display(
        description=_("State"),
        label=Colours(
            {
                ToolCallState.WAITING.label: "warning",
                ToolCallState.WITH_PROGRAM.label: "warning",
                ToolCallState.APPROVED.label: "info",
                ToolCallState.DONE.label: "success",
                ToolCallState.DENIED.label: "danger",
                ToolCallState.EXPIRED.label: "danger",
                ToolCallState.FAILED.label: "danger",
            }
        ),
    )
    def state_label(self, call: ToolCall) -> str:
        """Return the word for the row's state."""
        return str(call.get_state_display())

    @display(description=_("Arguments"))
    def formatted_arguments(self, call: ToolCall) -> SafeString:
        """The arguments of the call, as JSON."""
        return format_html(
            '<pre class="k-pre">{}</pre>', json.dumps(call.arguments, indent=2, ensure_ascii=False)
        )
