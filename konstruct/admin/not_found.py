"""The page for a row that was deleted or erased, or has expired, in both admins.

This is `handler404` of the URL configurations. Other addresses get Django's page.
"""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.text import capfirst
from django.views.defaults import page_not_found

from konstruct.admin.people.erasures import VIEW, VIEW_MESSAGES
from tenants.admin.sites import operator_site, tenant_site
from tenants.audit.models import MessageErasure

# Arguments of addresses, with the models of their rows.
_MODELS: Final = {
    "agent_id": "orchestrator.agent",
    "erasure_id": "audit.erasurerequest",
    "escalation_id": "orchestrator.escalation",
    "exclusion_id": "memory.recallexclusion",
    "identity_id": "orchestrator.channelidentity",
    "key_id": "api.apikey",
    "memory_id": "memory.memoryentry",
    "message_id": "memory.message",
    "question_id": "orchestrator.savedquestion",
    "reply_id": "memory.message",
    "rule_id": "audit.retentionrule",
    "run_id": "orchestrator.extractionrun",
    "tenant_id": "tenants.tenant",
    "user_id": "auth.user",
}
_MODELS_OF_PEOPLE: Final = frozenset(
    {
        "memory.memoryentry", "memory.message", "orchestrator.channelidentity",
        "orchestrator.escalation",
    }
)  # fmt: skip


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 404."""
    match = request.resolver_match
    if match is None or not match.kwargs or not request.user.is_authenticated:
        return page_not_found(request, exception)
    model = _model_of(request, match.url_name or "", match.kwargs)
    if model is None:
        return page_not_found(request, exception)
    context: dict[str, Any] = {}
    if request.user.has_perm(f"{model.app_label}.view_{model.model_name}"):
        context["list"] = reverse(f"admin:{model.app_label}_{model.model_name}_changelist")
        context["list_name"] = capfirst(model.verbose_name_plural)
    if model.label_lower in _MODELS_OF_PEOPLE:
        if request.user.has_perm(VIEW):
            context["erasures"] = reverse("admin:audit_erasurerequest_changelist")
        if request.user.has_perm(VIEW_MESSAGES):
            context["receipt"] = _receipt_of(match.kwargs.get("message_id"))
    return render(request, "konstruct/gone.html", context, status=404)


def _model_of(request: HttpRequest, name: str, arguments: Mapping[str, Any]) -> Any:
    """Return the options of the model whose row the address names, or None."""
    site = operator_site if getattr(request, "tenant", None) is None else tenant_site
    registered = {model._meta.label_lower: model._meta for model in site._registry}
    for options in registered.values():
        if "object_id" in arguments and name.startswith(
            f"{options.app_label}_{options.model_name}_"
        ):
            return options
    labels = [_MODELS[argument] for argument in arguments if argument in _MODELS]
    return next((registered[label] for label in reversed(labels) if label in registered), None)


def _receipt_of(message_id: UUID | None) -> str:
    """Return the address of the receipt for an erased message, or ""."""
    erasure = MessageErasure.objects.filter(message_id=message_id).first() if message_id else None
    return "" if erasure is None else reverse("admin:message_receipt", args=[erasure.pk])
