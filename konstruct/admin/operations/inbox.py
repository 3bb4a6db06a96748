"""Arrivals: what channels have told and no worker could make a message of yet."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.decorators import display

from konstruct.admin.access import AuditedReadOnlyAdmin, note
from konstruct.channels import inbox
from konstruct.channels.models import Arrival
from tenants import transaction
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action


@admin.register(Arrival, site=tenant_site)
class ArrivalAdmin(AuditedReadOnlyAdmin):
    """The inbox, which is empty but for moments; and what was given up."""

    list_display = ("key", "state", "attempts", "last_error", "due_at", "created_at")
    list_filter = ("channel",)
    search_fields = ("key", "last_error")
    ordering = ("-id",)
    actions = ("retry",)

    @display(label={"failed": "danger", "waiting": "info"})
    def state(self, arrival: Arrival) -> str:
        """Return the word for the row's state."""
        return "failed" if arrival.failed_at else "waiting"

    def has_retry_permission(self, request: HttpRequest) -> bool:
        """Who may change arrivals may have them tried again."""
        return request.user.has_perm("channels.change_arrival")

    @admin.action(description="Try again to take in", permissions=["retry"])
    def retry(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Let the sweeper enqueue the selected; those that are still tried are left alone."""
        retried = 0
        for arrival in queryset:
            with transaction.atomic():
                if inbox.retry(arrival.pk):
                    note(request, Action.RETRY, "arrival", subject_id=arrival.key)
                    retried += 1
        self.message_user(request, f"{retried} tried again.", messages.SUCCESS)
