"""Extractions: up to which message facts were extracted from each conversation, and failed jobs."""

from typing import Any

from django.contrib import admin
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from konstruct.admin.access import AgentNameAdmin
from konstruct.admin.jobs import JobAdmin, JobStateFilter
from konstruct.admin.lists import AgentFilter, UserFilter, link
from konstruct.orchestrator.extraction.queue import EXTRACTIONS
from konstruct.orchestrator.models import ExtractionCursor
from memory.models import Message
from tenants.admin.sites import tenant_site


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
            date_format(timezone.localtime(cursor.last_message_at), "DATETIME_FORMAT"),
            "conversation",
            cursor.last_message_id,
            fragment=f"m{cursor.last_message_id}",
        )
