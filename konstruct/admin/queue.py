"""Work that waits and that was done: jobs, calls of tools and models, usage, and processes."""

import logging
from collections.abc import Iterable, Iterator
from datetime import UTC, timedelta
from typing import Any, ClassVar, Final

from django.contrib import admin, messages
from django.db import DatabaseError
from django.db.models import F, OuterRef, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import dateparse, timezone
from django.utils.translation import gettext, gettext_lazy as _
from unfold.decorators import display

from konstruct.admin import access, pages
from konstruct.api import health
from konstruct.channels import delivery, inbox
from konstruct.channels.models import Arrival, Delivery
from konstruct.orchestrator import models, replies, usage
from konstruct.orchestrator.exceptions import NothingToRetry
from konstruct.orchestrator.extraction.runs import EXTRACTIONS
from konstruct.orchestrator.pipeline.accept import retry_reply
from tenants import context, exceptions, jobs, outages, transaction
from tenants.admin import exports, recorded_admin, sites
from tenants.audit.models import Action
from tenants.audit.operator_log import record_person_action
from tenants.limits.quotas import UNLIMITED, Quota, limits_of
from tenants.models import Tenant, job_columns

_CONDITIONS = {
    "queued": Q(due_at__isnull=False, failed_at__isnull=True, held_for=""),
    "held": Q(held_for__gt=""),
    "failed": Q(failed_at__isnull=False) & ~Q(error_code=replies.CLOSED),
    "closed": Q(failed_at__isnull=False, error_code=replies.CLOSED),
    "delivered": Q(due_at__isnull=True),
    "processed": Q(due_at__isnull=True),
}


class JobStateFilter(recorded_admin.ChoiceFilter):
    """Rows with a job in a state."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(state, gettext(state)) for state in model_admin.states]

    def narrow(self, rows: Any, value: str) -> Any:
        return rows.filter(_CONDITIONS[value])


class JobAdmin(access.AuditedReadOnlyAdmin):
    """Read-only rows about a message, with the state of their job. Failed ones can be retried."""

    kind: ClassVar[jobs.JobKind]
    job_key: ClassVar[Any] = OuterRef("message_id")
    """Expression of the key of a row's job; None where the rows are jobs."""
    states: ClassVar[tuple[str, ...]] = ("queued", "failed")
    """Of rows without a job the last one."""
    list_filter: Any = (JobStateFilter,)
    list_select_related: Any = ("message",)
    actions: Any = ("retry",)
    attempts = staticmethod(pages.column("attempts", _("attempts"), ordering="attempts"))
    last_error = staticmethod(pages.error_column("last_error", _("last error")))
    due_at = staticmethod(pages.column("due_at", _("due at"), ordering="due_at"))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        if self.job_key is None:
            return rows
        return rows.annotate(**job_columns(self.kind.name, self.job_key))

    @display(description=_("state"), label=recorded_admin.BADGES)
    def state(self, row: Any) -> str:
        """Return the state of the row's job."""
        if row.held_for:
            return gettext("held")
        if row.failed_at:
            return gettext("closed") if row.error_code == replies.CLOSED else gettext("failed")
        state = "queued" if row.due_at else self.states[-1]
        return gettext(state)

    @admin.action(description=_("Retry"), permissions=["act"])
    def retry(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Enqueue the selected jobs that were given up; leave the others alone."""
        retried = 0
        for row in queryset:
            with transaction.atomic():
                if not self.retry_job(row):
                    continue
                message = getattr(row, "message", row)
                access.log_row_access(
                    request, Action.RETRY, message, self.kind.name, subject_id=row.pk
                )
            retried += 1
        if retried:
            self.message_user(
                request, gettext("%(retried)s retried.") % {"retried": retried}, messages.SUCCESS
            )
        if skipped := queryset.count() - retried:
            self.message_user(
                request, gettext("%(left)s had not failed.") % {"left": skipped}, messages.WARNING
            )

    def retry_job(self, row: Any) -> bool:
        """Enqueue the row's job if it was given up."""
        return self.kind.retry(row.pk)


@admin.register(models.PendingReply, site=sites.tenant_site)
class PendingReplyAdmin(JobAdmin):
    """Messages without a reply, and why."""

    kind = replies.REPLIES
    job_key = None
    states = ("queued", "held", "failed", "closed")
    list_display = (
        "message", "state", "waits_for", "attempts", "last_error", "due_at", "created_at",
    )  # fmt: skip
    search_fields = ("last_error", "message__content", "message__user_id")
    ordering = ("created_at", "message_id")

    @admin.display(description=_("held for"))
    def waits_for(self, row: Any) -> str:
        """The condition that a held reply waits for."""
        return str(row.get_held_for_display()) if row.held_for else "-"

    def retry_job(self, row: Any) -> bool:
        try:
            retry_reply(row.pk, tenant_id=context.required_tenant_id())
        except NothingToRetry:
            return False
        return True


@admin.register(Arrival, site=sites.tenant_site)
class ArrivalAdmin(JobAdmin):
    """The inbox: empty but for moments, and for events that were given up."""

    kind = inbox.ARRIVALS
    job_key = OuterRef("id")
    list_display = ("key", "state", "attempts", "last_error", "due_at", "created_at")
    list_filter = (JobStateFilter, "channel")
    list_select_related = False
    search_fields = ("key",)
    ordering = ("-created_at", "-id")


@admin.register(Delivery, site=sites.tenant_site)
class DeliveryAdmin(JobAdmin):
    """Where each reply is shown in its channel, or why it is not."""

    kind = delivery.DELIVERIES
    states = ("queued", "failed", "delivered")
    list_display = (
        "message", "state", "channel", "attempts", "last_error", "due_at", "delivered_at",
        "created_at",
    )  # fmt: skip
    list_filter = (JobStateFilter, "channel")
    search_fields = ("message__content", "message__user_id")
    ordering = ("-created_at", "-message_id")


@admin.register(models.ExtractionCursor, site=sites.tenant_site)
class ExtractionCursorAdmin(access.AgentNameAdmin, JobAdmin):
    """Conversations from which facts are extracted."""

    kind = EXTRACTIONS
    job_key = OuterRef("pk")
    states = ("queued", "failed", "processed")
    list_display = (
        "user_id", "agent", "state", "last_number", "processed_at", "attempts", "last_error",
        "due_at",
    )  # fmt: skip
    list_filter = (JobStateFilter, pages.AgentFilter, pages.UserFilter)
    list_select_related = ()
    search_fields = ("=user_id", "=thread_id")
    ordering = ("user_id", "agent_id", "thread_id")


logger = logging.getLogger(__name__)

# Days of the operators' CSV.
CSV_DAYS: Final = 366


@admin.register(models.DailyUsage, site=sites.tenant_site)
class DailyUsageAdmin(access.AuditedReadOnlyAdmin):
    """Counts of days, below the quotas with their use."""

    list_before_template = "konstruct/usage.html"
    list_display = ("day", *usage.COUNTS)
    date_hierarchy = "day"
    ordering = ("-day",)

    def changelist_view(
        self, request: HttpRequest, extra_context: sites.ExtraContext = None
    ) -> HttpResponse:
        """Show the quotas and the days."""
        tenant = usage.tenant_row()
        measured_at = dateparse.parse_datetime(tenant.usage.get("measured_at", ""))
        quotas = {"quotas": _quotas(tenant), "measured_at": measured_at}
        return super().changelist_view(request, {**(extra_context or {}), **quotas})


@sites.operator_site.page("usage/", name="usage", permission="tenants.view_tenant")
def usage_by_day(request: HttpRequest) -> HttpResponseBase:
    """Send the days of all tenants as CSV."""
    record_person_action(request, "export", "usage")
    columns = ["tenant", "day", *usage.COUNTS]
    return exports.export_response("usage", columns, _days(Tenant.objects.provisioned()))


def _days(tenants: Iterable[Tenant]) -> Iterator[tuple[Any, ...]]:
    """Yield the days of tenants. A tenant that cannot be read has one line, "unknown"."""
    since = timezone.now().astimezone(UTC).date() - timedelta(days=CSV_DAYS)
    for tenant in tenants:
        rows: list[tuple[Any, ...]]
        try:
            with context.tenant_scope(tenant.pk):
                days = models.DailyUsage.objects.filter(day__gte=since).order_by("day")
                rows = list(days.values_list("day", *usage.COUNTS))
        except (*outages.OUTAGES, DatabaseError, exceptions.KonstructError) as error:
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


@sites.operator_site.page("processes/", permission="tenants.view_tenant", title=_("Processes"))
def processes(request: HttpRequest) -> dict[str, Any]:
    """List the services and worker processes with their states, as `/health/ready` does."""
    record_person_action(request, "list", "processes")
    return {"checks": health.readiness.state().items()}


@admin.register(models.ToolCall, site=sites.tenant_site)
class ToolCallAdmin(access.AgentRowsAdmin):
    """Tool calls of agents. Only the user approves or denies them."""

    list_display = (
        "created_at", "state", "name", "agent", "user_id", "question", "decided_by", "result",
    )  # fmt: skip
    list_filter = ("state", pages.AgentFilter, pages.UserFilter, "name")
    search_fields = ("=user_id", "question", "decided_by")


@admin.register(models.ModelCall, site=sites.tenant_site)
class ModelCallAdmin(access.AgentRowsAdmin):
    """Requests to language models, with their tokens and their cost."""

    list_display = (
        "created_at", "outcome", pages.error, "purpose_label", "agent", "agent_version",
        "language_model", "model", "prompt_tokens", "prompt_price", "completion_tokens",
        "completion_price", "cost", "reply",
    )  # fmt: skip
    list_filter = ("outcome", pages.AgentFilter, "created_at")

    @display(description=_("purpose"), ordering="purpose")
    def purpose_label(self, call: models.ModelCall) -> str:
        """The purpose in words."""
        return gettext(call.purpose)

    @display(description=_("Reply"))
    def reply(self, call: models.ModelCall) -> str:
        """A link to the reply, or to the message that it should answer."""
        if call.message_id is None:
            return ""
        reply_id = call.reply_id  # type: ignore[attr-defined]  # an annotation
        text = gettext("Open reply") if reply_id else gettext("Open message")
        shown = reply_id or call.message_id
        return pages.link(text, "conversation", shown, fragment=f"m{shown}")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the calls with the ids of their replies."""
        calls: QuerySet[Any] = super().get_queryset(request)
        return calls.annotate(reply_id=F("message__reply__pk"))
