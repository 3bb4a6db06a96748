"""Events of channels that no worker has made a message of yet."""

from typing import Any

from django.contrib import admin
from django.db.models import OuterRef

from konstruct.admin.jobs import JobAdmin, JobStateFilter
from konstruct.channels.inbox import ARRIVALS
from konstruct.channels.models import Arrival, arrival_key
from tenants.admin.sites import tenant_site


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
