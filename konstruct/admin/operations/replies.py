"""Messages without a reply: queued, held, or given up."""

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from konstruct.admin.jobs import JobAdmin
from konstruct.orchestrator.exceptions import NothingToRetry
from konstruct.orchestrator.models import PendingReply
from konstruct.orchestrator.pipeline.accept import retry_reply
from konstruct.orchestrator.replies.queue import REPLIES
from tenants.admin.sites import tenant_site
from tenants.context import required_tenant_id


def retry_failed_reply(message_id: UUID) -> bool:
    """Enqueue the reply to a message again; return whether it had failed."""
    try:
        retry_reply(message_id, tenant_id=required_tenant_id())
    except NothingToRetry:
        return False
    return True


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
        return retry_failed_reply(row.pk)
