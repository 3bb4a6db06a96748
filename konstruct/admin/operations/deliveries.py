"""Deliveries: which messages channels show, which they do not show yet, and why."""

from django.contrib import admin

from konstruct.admin.jobs import JobAdmin, JobStateFilter
from konstruct.channels.delivery.queue import DELIVERIES
from konstruct.channels.models import Delivery
from tenants.admin.sites import tenant_site


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
