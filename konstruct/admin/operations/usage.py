"""Usage: days and calls of a tenant; for operators the usage of all tenants, and processes."""

import logging
from collections.abc import Iterable, Iterator
from datetime import UTC, timedelta
from typing import Any, Final

from django.contrib import admin
from django.db import DatabaseError
from django.db.models import F, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _
from unfold.decorators import display

from konstruct.admin.access import AgentRowsAdmin, AuditedReadOnlyAdmin
from konstruct.admin.lists import AgentFilter, UserFilter, link
from konstruct.api.health import readiness
from konstruct.orchestrator import usage
from konstruct.orchestrator.models import CallOutcome, DailyUsage, ModelCall, ToolCall
from konstruct.orchestrator.models.tool_calls import ToolCallState
from tenants.admin.columns import Colours
from tenants.admin.exports import export_response
from tenants.admin.sites import ExtraContext, operator_site, tenant_site
from tenants.audit.operator_log import record_person_action
from tenants.context import tenant_scope
from tenants.exceptions import KonstructError
from tenants.limits.quotas import UNLIMITED, Quota, limits_of
from tenants.models import Tenant
from tenants.outages import OUTAGES

logger = logging.getLogger(__name__)

# Days of the operators' CSV.
CSV_DAYS: Final = 366


@admin.register(DailyUsage, site=tenant_site)
class DailyUsageAdmin(AuditedReadOnlyAdmin):
    """Counts of days, below the quotas with their use."""

    list_before_template = "konstruct/usage.html"
    list_display = ("day", *usage.COUNTS)
    date_hierarchy = "day"
    ordering = ("-day",)

    def changelist_view(
        self, request: HttpRequest, extra_context: ExtraContext = None
    ) -> HttpResponse:
        """Show the quotas and the days."""
        tenant = usage.tenant_row()
        measured_at = parse_datetime(tenant.usage.get("measured_at", ""))
        quotas = {"quotas": _quotas(tenant), "measured_at": measured_at}
        return super().changelist_view(request, {**(extra_context or {}), **quotas})


@operator_site.page("usage/", name="usage", permission="tenants.view_tenant")
def usage_by_day(request: HttpRequest) -> HttpResponseBase:
    """Send the days of all tenants as CSV."""
    record_person_action(request, "export", "usage")
    columns = ["tenant", "day", *usage.COUNTS]
    return export_response("usage", columns, _days(Tenant.objects.provisioned()))


def _days(tenants: Iterable[Tenant]) -> Iterator[tuple[Any, ...]]:
    """Yield the days of tenants. A tenant that cannot be read has one line, "unknown"."""
    since = timezone.now().astimezone(UTC).date() - timedelta(days=CSV_DAYS)
    for tenant in tenants:
        rows: list[tuple[Any, ...]]
        try:
            with tenant_scope(tenant.pk):
                days = DailyUsage.objects.filter(day__gte=since).order_by("day")
                rows = list(days.values_list("day", *usage.COUNTS))
        except (*OUTAGES, DatabaseError, KonstructError) as error:
            logger.warning("The usage of tenant %s cannot be read: %s", tenant.slug, error)
            rows = [("unknown",)]
        yield from ((tenant.slug, *row) for row in rows)


def _quotas(tenant: Tenant) -> list[dict[str, Any]]:
    limits = limits_of(tenant.quotas)
    rows = []
    for quota, used in usage.usage_of(tenant, Quota).items():
        limit = limits.get(quota, UNLIMITED)
        most = limit.hard or limit.soft
        rows.append(
            {
                "label": quota.label,
                "used": used,
                "soft": limit.soft,
                "hard": limit.hard,
                "share": min(100, int(100 * used / most)) if most and used is not None else None,
                "level": limit.level(used),
            }
        )
    return rows


@operator_site.page("processes/", permission="tenants.view_tenant")
def processes(request: HttpRequest) -> HttpResponseBase:
    """List the services and worker processes with their states, as `/health/ready` does."""
    record_person_action(request, "list", "processes")
    return operator_site.render(
        request,
        "konstruct/processes.html",
        title=gettext("Processes"),
        checks=readiness().items(),
    )


@admin.register(ToolCall, site=tenant_site)
class ToolCallAdmin(AgentRowsAdmin):
    """Tool calls of agents. Only the user approves or denies them."""

    list_display = (
        "created_at", "state_label", "name", "agent", "user_id", "question", "decided_by", "result",
    )  # fmt: skip
    list_filter = ("state", AgentFilter, UserFilter, "name")
    search_fields = ("=user_id", "question", "decided_by")

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


@admin.register(ModelCall, site=tenant_site)
class ModelCallAdmin(AgentRowsAdmin):
    """Requests to language models, with their tokens and their cost."""

    list_display = (
        "created_at", "outcome_label", "error", "purpose_label", "agent", "agent_version",
        "language_model", "model", "prompt_tokens", "completion_tokens", "cost", "reply",
    )  # fmt: skip
    list_filter = ("outcome", AgentFilter, "created_at")

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
