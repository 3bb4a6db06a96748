"""Deliveries: what channels show of messages, what they could not be given, and trying again."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.decorators import display

from konstruct.admin.access import AuditedReadOnlyAdmin, note
from konstruct.channels.delivery.publisher import redeliver
from konstruct.channels.exceptions import NothingToRedeliver
from konstruct.channels.models import Delivery
from tenants import transaction
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action
from tenants.context import required_tenant_id


class StateFilter(admin.SimpleListFilter):
    """Undelivered, waiting, or shown."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(word, word) for word in ("undelivered", "waiting", "shown")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() == "undelivered":
            return queryset.filter(failed_at__isnull=False)
        if self.value() in ("waiting", "shown"):
            shown = self.value() == "shown"
            return queryset.filter(failed_at__isnull=True, due_at__isnull=shown)
        return queryset


@admin.register(Delivery, site=tenant_site)
class DeliveryAdmin(AuditedReadOnlyAdmin):
    """Where each reply stands in its channel, or why it does not."""

    list_display = (
        "message", "state", "channel", "attempts", "last_error", "due_at", "delivered_at",
        "created_at",
    )  # fmt: skip
    list_filter = (StateFilter, "channel")
    list_select_related = ("message",)
    search_fields = ("last_error", "message__content", "message__user_id")
    ordering = ("-created_at", "-message_id")
    actions = ("retry",)

    @display(label={"undelivered": "danger", "waiting": "info", "shown": "success"})
    def state(self, delivery: Delivery) -> str:
        """Return the word for the row's state."""
        if delivery.failed_at:
            return "undelivered"
        return "waiting" if delivery.due_at else "shown"

    def has_retry_permission(self, request: HttpRequest) -> bool:
        """Who may change deliveries may have them tried again."""
        return request.user.has_perm("channels.change_delivery")

    @admin.action(description="Try again to deliver", permissions=["retry"])
    def retry(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> None:
        """Enqueue the selected again; those that are shown or still tried are left alone."""
        retried = 0
        tenant_id = required_tenant_id()
        for delivery in queryset.select_related("message"):
            try:
                with transaction.atomic():
                    redeliver(delivery.message_id, tenant_id=tenant_id)
                    note(
                        request,
                        Action.RETRY,
                        "delivery",
                        subject_id=delivery.message_id,
                        agent_id=delivery.message.agent_id,
                        user_id=delivery.message.user_id,
                    )
            except NothingToRedeliver as error:
                self.message_user(request, str(error), messages.WARNING)
            else:
                retried += 1
        if retried:
            self.message_user(request, f"{retried} tried again.", messages.SUCCESS)
