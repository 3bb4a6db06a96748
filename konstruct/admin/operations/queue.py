"""Work that waits: the base of lists of jobs, and events of channels, replies and deliveries."""

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db.models import OuterRef, Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext, gettext_lazy as _
from unfold.decorators import display

from konstruct.admin.access import (
    AgentNameAdmin,
    AuditedAdmin,
    AuditedReadOnlyAdmin,
    log_row_access,
)
from konstruct.admin.lists import AgentFilter, UserFilter, column
from konstruct.channels.delivery.queue import DELIVERIES
from konstruct.channels.inbox import ARRIVALS
from konstruct.channels.models import Arrival, Delivery, arrival_key
from konstruct.orchestrator.exceptions import NothingToRetry
from konstruct.orchestrator.extraction.queue import EXTRACTIONS
from konstruct.orchestrator.models import ExtractionCursor, PendingReply
from konstruct.orchestrator.pipeline.accept import retry_reply
from konstruct.orchestrator.replies import CLOSED, REPLIES
from tenants import transaction
from tenants.admin.columns import ChoiceFilter, Colours
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action
from tenants.context import required_tenant_id
from tenants.jobs import JobKind
from tenants.models import job_columns

STATE_COLOURS = Colours(
    {
        "queued": "info",
        "held": "warning",
        "failed": "danger",
        "closed": "info",
        "delivered": "success",
        "processed": "success",
    }
)


_CONDITIONS = {
    "queued": Q(due_at__isnull=False, failed_at__isnull=True, held_for=""),
    "held": Q(held_for__gt=""),
    "failed": Q(failed_at__isnull=False) & ~Q(error_code=CLOSED),
    "closed": Q(failed_at__isnull=False, error_code=CLOSED),
    "delivered": Q(due_at__isnull=True),
    "processed": Q(due_at__isnull=True),
}


class JobStateFilter(ChoiceFilter):
    """Rows with a job in a state."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(state, gettext(state)) for state in model_admin.states]

    def narrow(self, rows: Any, value: str) -> Any:
        return rows.filter(_CONDITIONS[value])


class JobListAdmin(AuditedAdmin):
    """Rows with the state of their job. Jobs that were given up can be retried."""

    kind: ClassVar[JobKind]
    job_key: ClassVar[Any] = OuterRef("message_id")
    """Expression of the key of a row's job; None where the rows are jobs."""
    states: ClassVar[tuple[str, ...]] = ("queued", "failed")
    """Of rows without a job the last one."""
    list_filter: Any = (JobStateFilter,)
    actions: Any = ("retry",)
    attempts = staticmethod(column("attempts", _("attempts"), ordering="attempts"))
    last_error = staticmethod(column("last_error", _("last error"), empty_value=""))
    due_at = staticmethod(column("due_at", _("due at"), ordering="due_at"))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        if self.job_key is None:
            return rows
        return rows.annotate(**job_columns(self.kind.name, self.job_key))

    @display(description=_("state"), label=STATE_COLOURS)
    def state(self, row: Any) -> str:
        """Return the state of the row's job."""
        if row.held_for:
            return gettext("held")
        if row.failed_at:
            return gettext("closed") if row.error_code == CLOSED else gettext("failed")
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
                log_row_access(request, Action.RETRY, message, self.kind.name, subject_id=row.pk)
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


class JobAdmin(JobListAdmin, AuditedReadOnlyAdmin):
    """Read-only rows about a message, with the state of their job."""

    list_select_related: Any = ("message",)


@admin.register(PendingReply, site=tenant_site)
class PendingReplyAdmin(JobAdmin):
    """Messages without a reply, and why."""

    kind = REPLIES
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
            retry_reply(row.pk, tenant_id=required_tenant_id())
        except NothingToRetry:
            return False
        return True


@admin.register(Arrival, site=tenant_site)
class ArrivalAdmin(JobAdmin):
    """The inbox: empty but for moments, and for events that were given up."""

    kind = ARRIVALS
    job_key = arrival_key(OuterRef("id"))
    list_display = ("key", "state", "attempts", "last_error", "due_at", "created_at")
    list_filter = (JobStateFilter, "channel")
    list_select_related = False
    search_fields = ("key",)
    ordering = ("-id",)

    def retry_job(self, row: Any) -> bool:
        return ARRIVALS.retry(row.job_key)


@admin.register(Delivery, site=tenant_site)
class DeliveryAdmin(JobAdmin):
    """Where each reply is shown in its channel, or why it is not."""

    kind = DELIVERIES
    states = ("queued", "failed", "delivered")
    list_display = (
        "message", "state", "channel", "attempts", "last_error", "due_at", "delivered_at",
        "created_at",
    )  # fmt: skip
    list_filter = (JobStateFilter, "channel")
    search_fields = ("message__content", "message__user_id")
    ordering = ("-created_at", "-message_id")


@admin.register(ExtractionCursor, site=tenant_site)
class ExtractionCursorAdmin(AgentNameAdmin, JobAdmin):
    """Conversations from which facts are extracted."""

    kind = EXTRACTIONS
    job_key = OuterRef("pk")
    states = ("queued", "failed", "processed")
    list_display = (
        "user_id", "agent", "state", "last_number", "processed_at", "attempts", "last_error",
        "due_at",
    )  # fmt: skip
    list_filter = (JobStateFilter, AgentFilter, UserFilter)
    list_select_related = ()
    search_fields = ("=user_id", "=thread_id")
    ordering = ("user_id", "agent_id", "thread_id")
