"""Erasing a message, or its conversation: asked for here, done by the owner's process."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse

from konstruct.admin.access import actor_of, note
from konstruct.orchestrator.identities.erasure_requests import request_message_erasure
from memory.models import Message
from tenants import transaction
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action

ERASE = "audit.add_erasurerequest"


@tenant_site.page("messages/<uuid:message_id>/erase/", name="erase_message", permission=ERASE)
def erase_message(request: HttpRequest, message_id: UUID) -> HttpResponseBase:
    """Ask why, and whether only the message is meant; then note that it is to be erased."""
    message = Message.objects.filter(pk=message_id).first()
    if message is None:
        raise Http404("This tenant has no such message.")
    told: dict[str, Any] = {"agent_id": message.agent_id, "user_id": message.user_id}
    if request.method != "POST":
        with transaction.atomic():
            note(request, Action.VIEW, "message", subject_id=message.pk, **told)
        return tenant_site.render(
            request, "konstruct/erase_message.html", title="Erase a message", message=message
        )
    whole = request.POST.get("what") == "conversation"
    with transaction.atomic():
        erasure = request_message_erasure(
            **told,
            thread_id=message.thread_id,
            message_id=None if whole else message.pk,
            by=actor_of(request),
            reason=request.POST.get("reason", "").replace("\0", "")[:2000],
        )
        note(
            request,
            Action.ERASE,
            "conversation" if whole else "message",
            subject_id=erasure.pk if whole else message.pk,
            thread_id=message.thread_id,
            erasure_id=str(erasure.pk),
            **told,
        )
    messages.success(request, "The erasure is requested. An operator's process carries it out.")
    return redirect(reverse("admin:audit_messageerasure_change", args=[erasure.pk]))
