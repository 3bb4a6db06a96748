"""Erasures: requesting one of a message or conversation, and the lists of all requests."""

from typing import Any, ClassVar
from uuid import UUID

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from konstruct.admin.access import AgentRowsAdmin, actor_of, log_row_access
from konstruct.admin.lists import link
from konstruct.orchestrator.identities.erasure_requests import request_message_erasure
from memory.models import Message
from tenants import transaction
from tenants.admin.badges import Colours
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action, ErasureRequest, MessageErasure

ERASE = "audit.add_erasurerequest"
STATES = Colours(
    {
        "done": "success",
        "waits for the owner": "warning",
        "being done": "info",
        "failed, will be tried again": "danger",
    }
)


@tenant_site.page("messages/<uuid:message_id>/erase/", name="erase_message", permission=ERASE)
def erase_message(request: HttpRequest, message_id: UUID) -> HttpResponseBase:
    """Ask for a reason and the scope, then request the erasure."""
    message = get_object_or_404(Message, pk=message_id)
    if request.method != "POST":
        with transaction.atomic():
            log_row_access(request, Action.VIEW, message)
        return tenant_site.render(
            request,
            "konstruct/erase_message.html",
            title=gettext("Erase a message"),
            message=message,
        )
    whole = request.POST.get("what") == "conversation"
    with transaction.atomic():
        erasure = request_message_erasure(
            agent_id=message.agent_id,
            user_id=message.user_id,
            thread_id=message.thread_id,
            message_id=None if whole else message.pk,
            by=actor_of(request),
            reason=request.POST.get("reason", "").replace("\0", "")[:2000],
        )
        log_row_access(
            request,
            Action.ERASE,
            message,
            "conversation" if whole else "message",
            subject_id=erasure.pk if whole else message.pk,
            thread_id=message.thread_id,
            erasure_id=str(erasure.pk),
        )
    messages.success(
        request, gettext("The erasure is requested. An operator's process carries it out.")
    )
    return redirect("admin:audit_messageerasure_change", erasure.pk)


class ErasureAdmin(AgentRowsAdmin):
    """Requests of erasure."""

    list_filter: Any = (("done_at", admin.EmptyFieldListFilter), "created_at")
    ordering: Any = ("-created_at",)
    receipt_page: ClassVar[str]
    begun_column: ClassVar[str]
    """The column that has a value once it is begun."""

    @display(description=_("Receipt"))
    def page(self, request: ErasureRequest | MessageErasure) -> SafeString:
        """A link to the receipt, or to how far it is."""
        text = gettext("Receipt") if request.done_at else gettext("Progress")
        return link(text, self.receipt_page, request.pk)

    @display(description=_("State"), label=STATES)
    def state(self, request: ErasureRequest | MessageErasure) -> str:
        """Return the word for the state of the request."""
        if request.done_at:
            return gettext("done")
        if request.last_error:
            return gettext("failed, will be tried again")
        if getattr(request, self.begun_column):
            return gettext("being done")
        return gettext("waits for the owner")


@admin.register(ErasureRequest, site=tenant_site)
class ErasureRequestAdmin(ErasureAdmin):
    """Requests to erase people, with their state and receipts."""

    receipt_page, begun_column = "erasure_receipt", "progress"
    list_display = ("created_at", "user_id", "agent", "requested_by", "state", "done_at", "page")
    search_fields = ("=user_id",)
    search_help_text = _("The id of a person, including erased ones.")
    fields = (
        *("user_id", "agent", "threads", "reason", "requested_by", "created_at"),
        *("state", "progress_text", "last_error", "done_at", "page", "receipt"),
    )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Search by an id, also that of an erased user, of which the receipt has a digest."""
        if not search_term:
            return queryset, False
        about = ErasureRequest.objects.about(search_term.strip(), search_term)
        return queryset.filter(pk__in=about.order_by().values("pk")), False

    @display(description=_("How far"))
    def progress_text(self, request: ErasureRequest) -> str:
        """The progress of an erasure that runs."""
        if not request.progress or "messages" not in request.progress:
            return "-"
        removed = request.progress["messages"]
        done = gettext("%(value)s of %(value_2)s messages removed") % {
            "value": removed["removed"],
            "value_2": removed["of"],
        }
        return f"{request.progress['step']}: {done}"


@admin.register(MessageErasure, site=tenant_site)
class MessageErasureAdmin(ErasureAdmin):
    """Requests to erase messages and conversations, with their state and receipts."""

    receipt_page, begun_column = "message_receipt", "receipt"
    list_display = (
        *("created_at", "user_id", "thread_id", "message_id", "requested_by", "state", "page"),
    )
    search_fields = ("=user_id", "=thread_id")
    fields = (
        *("message_id", "thread_id", "user_id", "agent", "reason", "requested_by", "created_at"),
        *("state", "last_error", "done_at", "page", "receipt"),
    )
