"""Work that waits: events of channels, replies, deliveries and extractions."""

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from konstruct.admin.access import AgentNameAdmin
from konstruct.admin.jobs import JobAdmin, JobStateFilter
from konstruct.admin.lists import AgentFilter, UserFilter, link
from konstruct.channels.delivery.queue import DELIVERIES
from konstruct.channels.inbox import ARRIVALS
from konstruct.channels.models import Arrival, Delivery, arrival_key
from konstruct.orchestrator.exceptions import NothingToRetry
from konstruct.orchestrator.extraction.queue import EXTRACTIONS
from konstruct.orchestrator.models import ExtractionCursor, PendingReply
from konstruct.orchestrator.pipeline.accept import retry_reply
from konstruct.orchestrator.replies.queue import REPLIES
from memory.models import Message
from tenants.admin.sites import tenant_site
from tenants.admin.times import time_text
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
        "user_id", "agent", "state", "processed_up_to", "processed_at", "attempts", "last_error",
        "due_at",
    )  # fmt: skip
    list_filter = (JobStateFilter, AgentFilter, UserFilter)
    list_select_related = ()
    search_fields = ("=user_id", "=thread_id")
    ordering = ("user_id", "agent_id", "thread_id")
    fields = (
        *("user_id", "agent", "thread_id", "state", "processed_up_to", "processed_at"),
        *("attempts", "last_error", "due_at"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        last = Message.objects.filter(number=OuterRef("last_number"))
        return rows.annotate(
            last_message_id=Subquery(last.values("pk")[:1]),
            last_message_at=Subquery(last.values("created_at")[:1]),
        )

    @display(description=_("Processed up to"), empty_value=_("no message yet"))
    def processed_up_to(self, cursor: Any) -> Any:
        """A link to the last message that was processed."""
        if cursor.last_number == 0:
            return None
        if cursor.last_message_id is None:
            return gettext("message %(last_number)s, which was erased") % {
                "last_number": cursor.last_number
            }
        return link(
            time_text(cursor.last_message_at),
            "conversation",
            cursor.last_message_id,
            fragment=f"m{cursor.last_message_id}",
        )
