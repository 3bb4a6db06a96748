"""Calls of tools and of language models, read only."""

import json
from datetime import timedelta
from typing import Any, Final

from django.contrib import admin
from django.db.models import F, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from konstruct.admin.access import AgentRowsAdmin
from konstruct.admin.lists import AgentFilter, ChoiceFilter, UserFilter, agent_names, link
from konstruct.admin.pages import as_uuid
from konstruct.orchestrator import metering
from konstruct.orchestrator.models import CallOutcome, ModelCall, ToolCall
from konstruct.orchestrator.models.tool_calls import ToolCallState
from konstruct.orchestrator.runner import PURPOSES
from tenants.admin.columns import Colours
from tenants.admin.sites import ExtraContext, tenant_site


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


# The days that are summed above the list, and the agents with most tokens in them.
DAYS: Final = 14
MAX_AGENTS: Final = 10


class PurposeFilter(ChoiceFilter):
    """Calls with one purpose."""

    title = _("purpose")
    parameter_name = "purpose"
    values = {purpose: _(purpose) for purpose in PURPOSES}

    def narrow(self, rows: Any, value: str) -> Any:
        return rows.filter(purpose=value)


@admin.register(ModelCall, site=tenant_site)
class ModelCallAdmin(AgentRowsAdmin):
    """Requests to language models, with their tokens and their cost."""

    list_before_template = "konstruct/model_usage.html"
    list_display = (
        "created_at", "outcome_label", "error", "purpose_label", "agent", "agent_version", "model",
        "prompt_tokens", "completion_tokens", "cost", "reply",
    )  # fmt: skip
    list_filter = ("outcome", PurposeFilter, AgentFilter, "created_at")
    fields = (
        *("created_at", "outcome_label", "error", "purpose_label", "agent", "agent_version"),
        *("model", "endpoint", "requests", "prompt_tokens", "completion_tokens", "cost", "reply"),
    )

    @display(
        description=_("Outcome"),
        label=Colours(
            {
                CallOutcome.DONE.label: "success",
                CallOutcome.FAILED.label: "danger",
                CallOutcome.UNKNOWN.label: "warning",
            }
        ),
    )
    def outcome_label(self, call: ModelCall) -> str:
        """The outcome; unknown where the process ended before the answer came."""
        label = CallOutcome(call.outcome).label
        return gettext(label)

    @display(description=_("purpose"), ordering="purpose")
    def purpose_label(self, call: ModelCall) -> str:
        """The purpose in words."""
        return gettext(call.purpose)

    @display(description=_("Reply"))
    def reply(self, call: ModelCall) -> SafeString | str:
        """A link to the reply, or to the message that it should answer."""
        if call.message_id is None:
            return ""
        reply_id = call.reply_id  # type: ignore[attr-defined]  # an annotation
        text = gettext("Open reply") if reply_id else gettext("Open message")
        shown = reply_id or call.message_id
        return link(text, "conversation", shown, fragment=f"m{shown}")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the calls with the ids of their replies."""
        calls: QuerySet[Any] = super().get_queryset(request)
        return calls.annotate(reply_id=F("message__reply__pk"))

    def changelist_view(
        self, request: HttpRequest, extra_context: ExtraContext = None
    ) -> HttpResponse:
        """The list of calls below the sums of the last days."""
        agent_id = as_uuid(request.GET.get("agent"))
        rows = metering.usage(
            since=metering.midnight() - timedelta(days=DAYS - 1), agent_id=agent_id
        )
        names = agent_names()
        by_agent = sorted(
            metering.sum_by(rows, "agent_id").items(),
            key=lambda item: -(item[1].prompt_tokens + item[1].completion_tokens),
        )
        usage = {
            "days": DAYS,
            "tables": [
                (gettext("Day (UTC)"), [*metering.sum_by(rows, "day").items()]),
                (
                    gettext("Agent"),
                    [
                        (names.get(agent_id, str(agent_id or gettext("none"))), counts)
                        for agent_id, counts in by_agent[:MAX_AGENTS]
                    ],
                ),
            ],
        }
        response: HttpResponse = super().changelist_view(
            request, {**(extra_context or {}), "usage": usage}
        )
        return response
