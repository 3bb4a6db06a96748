"""Messages that wait for a reply, and those whose reply was given up."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.decorators import display

from konstruct.admin.access import AuditedReadOnlyAdmin, note
from konstruct.orchestrator.exceptions import NothingToRetry
from konstruct.orchestrator.models import PendingReply
from konstruct.orchestrator.pipeline.accept import retry_reply
from tenants import transaction
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action
from tenants.context import required_tenant_id


class StateFilter(admin.SimpleListFilter):
    """Waiting, held, or given up."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(word, word) for word in ("waiting", "held", "failed")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() in ("waiting", "failed"):
            return queryset.filter(failed_at__isnull=self.value() == "waiting", held_for="")
        return queryset.exclude(held_for="") if self.value() == "held" else queryset


@admin.register(PendingReply, site=tenant_site)
class PendingReplyAdmin(AuditedReadOnlyAdmin):
    """Messages without a reply, and why; those that were given up can be tried again."""

    list_display = (
        "message",
        "state",
        "held_for",
        "attempts",
        "last_error",
        "due_at",
        "created_at",
    )
    list_filter = (StateFilter,)
    list_select_related = ("message",)
    search_fields = ("last_error", "message__content", "message__user_id")
    ordering = ("created_at", "message_id")
    actions = ("retry",)

    @display(label={"failed": "danger", "waiting": "info", "held": "warning"})
    def state(self, pending: PendingReply) -> str:
        """Return the word for the row's state."""
        if pending.held_for:
            return "held"
        return "failed" if pending.failed_at else "waiting"

    def has_retry_permission(self, request: HttpRequest) -> bool:
        """Who may change pending replies may have them tried again."""
        return request.user.has_perm("orchestrator.change_pendingreply")

    @admin.action(description="Try again to answer", permissions=["retry"])
    def retry(self, request: HttpRequest, queryset: QuerySet[PendingReply]) -> None:
        """Enqueue the selected messages again; those that are still tried are left alone."""
        retried = 0
        tenant_id = required_tenant_id()
        for pending in queryset.select_related("message"):
            try:
                with transaction.atomic():
                    retry_reply(pending.message_id, tenant_id=tenant_id)
                    note(
                        request,
                        Action.RETRY,
                        "reply",
                        subject_id=pending.message_id,
                        agent_id=pending.message.agent_id,
                        user_id=pending.message.user_id,
                    )
            except NothingToRetry as error:
                self.message_user(request, str(error), messages.WARNING)
            else:
                retried += 1
        if retried:
            self.message_user(request, f"{retried} tried again.", messages.SUCCESS)
