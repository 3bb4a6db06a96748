"""Base classes of pages that list jobs by their subjects: state columns, and the action Retry."""

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db.models import OuterRef, Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from konstruct.admin.access import AuditedAdmin, AuditedReadOnlyAdmin, log_row_access
from konstruct.orchestrator.replies.queue import CLOSED
from tenants import transaction
from tenants.admin.badges import Colours
from tenants.audit.models import Action
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


class JobStateFilter(admin.SimpleListFilter):
    """Rows with a job in a state."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(state, gettext(state)) for state in model_admin.states]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        condition = _CONDITIONS.get(self.value() or "")
        return queryset if condition is None else queryset.filter(condition)


class JobListAdmin(AuditedAdmin):
    """Rows with the state of their job. Jobs that were given up can be retried."""

    kind: ClassVar[JobKind]
    job_key: ClassVar[Any] = OuterRef("message_id")
    """Expression of the key of a row's job; None where the rows are jobs."""
    states: ClassVar[tuple[str, ...]] = ("queued", "failed")
    """Of rows without a job the last one."""
    list_filter: Any = (JobStateFilter,)
    actions: Any = ("retry",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        if self.job_key is None:
            return rows
        return rows.annotate(**job_columns(self.kind.name, self.job_key))

    @admin.display(description=_("attempts"), ordering="attempts")
    def attempts(self, row: Any) -> int:
        """Return the number of attempts."""
        return row.attempts or 0

    @admin.display(description=_("last error"))
    def last_error(self, row: Any) -> str:
        """Return the error of the last attempt."""
        return row.last_error or ""

    @admin.display(description=_("due at"), ordering="due_at", empty_value="-")
    def due_at(self, row: Any) -> Any:
        """Return the time of the next attempt."""
        return row.due_at

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
