"""Failed jobs of all kinds that people can retry, for Today, and their retry."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.contrib.auth import get_permission_codename
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from konstruct.admin.access import log_access
from konstruct.admin.lists import model_page
from konstruct.admin.operations.replies import retry_failed_reply
from konstruct.channels.delivery.queue import DELIVERIES
from konstruct.channels.inbox import ARRIVALS
from konstruct.channels.models import Arrival, Delivery
from konstruct.channels.notifications.checks import NOTIFICATIONS
from konstruct.orchestrator.extraction.queue import EXTRACTIONS
from konstruct.orchestrator.models import ExtractionCursor, Notification, PendingReply
from konstruct.orchestrator.replies.queue import CLOSED, REPLIES
from tenants import transaction
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action
from tenants.context import required_tenant_id
from tenants.models import Job


@dataclass(frozen=True, slots=True)
class FailedJobKind:
    """A kind of jobs."""

    label: Any
    rows: type[Model]
    """The model of the list of these jobs. Its permissions allow to see and retry them."""
    retry: Callable[[UUID], bool]
    is_message: bool = False
    """Whether the key of a job is a message, which has a conversation."""

    def permission(self, action: str) -> str:
        """Return the permission for an action on the rows, such as "view"."""
        return f"{self.rows._meta.app_label}.{get_permission_codename(action, self.rows._meta)}"

    @property
    def address(self) -> str:
        """The list of the failed rows."""
        return reverse(model_page(self.rows, "changelist"), query={"state": "failed"})


FAILED_JOB_KINDS: Final = {
    REPLIES.name: FailedJobKind(_("Reply"), PendingReply, retry_failed_reply, is_message=True),
    DELIVERIES.name: FailedJobKind(_("Delivery"), Delivery, DELIVERIES.retry, is_message=True),
    ARRIVALS.name: FailedJobKind(_("Event of a channel"), Arrival, ARRIVALS.retry),
    EXTRACTIONS.name: FailedJobKind(_("Extraction of facts"), ExtractionCursor, EXTRACTIONS.retry),
    NOTIFICATIONS.name: FailedJobKind(_("Notification"), Notification, NOTIFICATIONS.retry),
}


def failed_jobs(request: HttpRequest, limit: int) -> list[dict[str, Any]]:
    """Return the jobs that failed last and that the user may see, newest first."""
    kinds = [
        name
        for name, kind in FAILED_JOB_KINDS.items()
        if request.user.has_perm(kind.permission("view"))
    ]
    jobs = Job.objects.failed().filter(tenant_id=required_tenant_id(), kind__in=kinds)
    jobs = jobs.exclude(error_code=CLOSED)  # a person took care of the message
    may_read = request.user.has_perm("memory.view_message")
    return [
        {
            "title": FAILED_JOB_KINDS[job.kind].label,
            "link": reverse("admin:conversation", args=[job.key])
            if FAILED_JOB_KINDS[job.kind].is_message and may_read
            else FAILED_JOB_KINDS[job.kind].address,
            "detail": job.last_error,
            "since": job.failed_at,
            "retry": reverse("admin:retry_job", args=[job.kind, job.key])
            if request.user.has_perm(FAILED_JOB_KINDS[job.kind].permission("change"))
            else "",
        }
        for job in jobs.order_by("-failed_at")[:limit]
    ]


# The permission of each kind is checked below.
@tenant_site.page(
    "jobs/<str:kind>/<uuid:key>/retry/",
    name="retry_job",
    permission="orchestrator.view_pendingreply",
)
def retry_job(request: HttpRequest, kind: str, key: UUID) -> HttpResponseBase:
    """Enqueue a job that failed, as new."""
    job_kind = FAILED_JOB_KINDS.get(kind)
    if job_kind is None:
        raise Http404("There are no failed jobs of this kind.")
    if request.method != "POST" or not request.user.has_perm(job_kind.permission("change")):
        raise PermissionDenied
    with transaction.atomic():
        retried = job_kind.retry(key)
        if retried:
            log_access(request, Action.RETRY, kind, subject_id=key)
    if retried:
        messages.success(request, gettext("%(label)s is retried.") % {"label": job_kind.label})
    else:
        messages.warning(request, gettext("This job has not failed, or was retried already."))
    return redirect("admin:index")
