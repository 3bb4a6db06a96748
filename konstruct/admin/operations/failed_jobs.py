"""Failed jobs of all kinds that people can retry, for Today, and their retry."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from konstruct.admin.access import note
from konstruct.channels.delivery.queue import DELIVERIES
from konstruct.channels.inbox import ARRIVALS
from konstruct.channels.notifications.looking import SENDING
from konstruct.orchestrator.exceptions import NothingToRetry
from konstruct.orchestrator.extraction.queue import EXTRACTIONS
from konstruct.orchestrator.pipeline.accept import retry_reply
from konstruct.orchestrator.replies.queue import REPLIES
from tenants import transaction
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action
from tenants.context import required_tenant_id
from tenants.models import Job


def _retry_reply(key: UUID) -> bool:
    try:
        retry_reply(key, tenant_id=required_tenant_id())
    except NothingToRetry:
        return False
    return True


@dataclass(frozen=True, slots=True)
class FailedKind:
    """A kind of jobs: its label, who may see and who may retry it, and the page of its rows."""

    label: Any
    view: str
    retry: Callable[[UUID], bool]
    change: str
    address: str
    is_message: bool = False
    """Whether the key of a job is a message, which has a conversation."""


KINDS: Final = {
    REPLIES.name: FailedKind(
        _("Reply"),
        "orchestrator.view_pendingreply",
        _retry_reply,
        "orchestrator.change_pendingreply",
        "admin:orchestrator_pendingreply_changelist",
        is_message=True,
    ),
    DELIVERIES.name: FailedKind(
        _("Delivery"),
        "channels.view_delivery",
        DELIVERIES.retry,
        "channels.change_delivery",
        "admin:channels_delivery_changelist",
        is_message=True,
    ),
    ARRIVALS.name: FailedKind(
        _("Event of a channel"),
        "channels.view_arrival",
        ARRIVALS.retry,
        "channels.change_arrival",
        "admin:channels_arrival_changelist",
    ),
    EXTRACTIONS.name: FailedKind(
        _("Extraction of facts"),
        "orchestrator.view_extractioncursor",
        EXTRACTIONS.retry,
        "orchestrator.change_extractioncursor",
        "admin:orchestrator_extractioncursor_changelist",
    ),
    SENDING.name: FailedKind(
        _("Notification"),
        "orchestrator.view_notificationrecipient",
        SENDING.retry,
        "orchestrator.change_notificationrecipient",
        "admin:orchestrator_notificationrecipient_changelist",
    ),
}


def failed_jobs(request: HttpRequest, limit: int) -> list[dict[str, Any]]:
    """Return the jobs that failed last and that the user may see, newest first."""
    kinds = [name for name, kind in KINDS.items() if request.user.has_perm(kind.view)]
    jobs = Job.objects.failed().filter(tenant_id=required_tenant_id(), kind__in=kinds)
    reads = request.user.has_perm("memory.view_message")
    return [
        {
            "title": KINDS[job.kind].label,
            "link": reverse("admin:conversation", args=[job.key])
            if KINDS[job.kind].is_message and reads
            else f"{reverse(KINDS[job.kind].address)}?state=failed",
            "detail": job.last_error,
            "since": job.failed_at,
            "retry": reverse("admin:retry_job", args=[job.kind, job.key])
            if request.user.has_perm(KINDS[job.kind].change)
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
    of_kind = KINDS.get(kind)
    if of_kind is None:
        raise Http404("There are no failed jobs of this kind.")
    if request.method != "POST" or not request.user.has_perm(of_kind.change):
        raise PermissionDenied
    with transaction.atomic():
        retried = of_kind.retry(key)
        if retried:
            note(request, Action.RETRY, kind, subject_id=key)
    if retried:
        messages.success(request, gettext("%(label)s is retried.") % {"label": of_kind.label})
    else:
        messages.warning(request, gettext("This job has not failed, or was retried already."))
    return redirect("admin:index")
