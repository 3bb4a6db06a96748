"""Receipts of erasures: pages to print; of a person's also a JSON file with a digest."""

from typing import Any
from uuid import UUID

from django.apps import apps
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from konstruct.admin.access import log_row_access
from konstruct.admin.lists import agent_names
from konstruct.orchestrator.identities.erasure_requests import receipt_document
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action, ErasureRequest, MessageErasure

VIEW, VIEW_MESSAGES = "audit.view_erasurerequest", "audit.view_messageerasure"
# What stays for a while, in the words of the receipt's storage.
LATER = {
    "backups": _("Backups from before"),
    "cache_file": _("The file of the cache"),
    "logs": _("Lines of logs from before"),
    "pages_of_vacuumed_tables": _("Space in the files of the database"),
    "statistics": _("Statistics of the database"),
    "write_ahead_log": _("The log of the database"),
}
# Tables that people know by another name than the models have.
KINDS = {
    "memory_conversationembedding": _("vectors of messages"),
    "memory_indexedmessage": _("entries of the index of words"),
    "memory_posting": _("words of the index"),
    "memory_scope": _("parts of the index"),
    "memory_pendingembedding": _("messages that wait for a vector"),
}


@tenant_site.page("erasures/<uuid:erasure_id>/", name="erasure_receipt", permission=VIEW)
def receipt(request: HttpRequest, erasure_id: UUID) -> HttpResponse:
    """Show how far an erasure is, and the receipt in the end."""
    erasure = get_object_or_404(ErasureRequest, pk=erasure_id)
    later = ((erasure.receipt or {}).get("storage") or {}).get("later") or {}
    later_texts = [(LATER.get(name, name.replace("_", " ")), when) for name, when in later.items()]
    return _render_receipt(request, "konstruct/receipt.html", erasure, later=later_texts)


@tenant_site.page(
    "erased-messages/<uuid:erasure_id>/", name="message_receipt", permission=VIEW_MESSAGES
)
def message_receipt(request: HttpRequest, erasure_id: UUID) -> HttpResponse:
    """Show the receipt of an erasure of a message or a conversation."""
    erasure = get_object_or_404(MessageErasure, pk=erasure_id)
    quoted = len((erasure.receipt or {}).get("quoted_in") or [])
    return _render_receipt(request, "konstruct/message_receipt.html", erasure, quoted=quoted)


def _render_receipt(
    request: HttpRequest, template: str, erasure: ErasureRequest | MessageErasure, **context: Any
) -> HttpResponse:
    log_row_access(request, Action.VIEW, erasure)
    receipt: dict[str, Any] = erasure.receipt or {}
    return tenant_site.render(
        request,
        template,
        title=gettext("Receipt of an erasure"),
        erasure=erasure,
        receipt=receipt,
        agent=agent_names().get(erasure.agent_id) if erasure.agent_id else None,
        kinds=_kinds(receipt.get("tables") or {}),
        **context,
    )


@tenant_site.page("erasures/<uuid:erasure_id>/receipt.json", name="receipt_json", permission=VIEW)
def download(request: HttpRequest, erasure_id: UUID) -> HttpResponse:
    """Send the receipt as a file with its digest."""
    erasure = get_object_or_404(ErasureRequest, pk=erasure_id)
    if erasure.done_at is None:
        raise Http404("The erasure is not done: it has no receipt yet.")
    log_row_access(request, Action.EXPORT, erasure)
    document = receipt_document(erasure, request.tenant)  # type: ignore[attr-defined]
    headers = {"Content-Disposition": f'attachment; filename="receipt-{erasure_id}.json"'}
    return JsonResponse(document, json_dumps_params={"indent": 2}, headers=headers)


def _kinds(tables: dict[str, dict[str, Any]]) -> list[tuple[str, int, int]]:
    """Return how much was removed, and was left without the person, of each kind of thing."""
    names = {
        model._meta.db_table: str(model._meta.verbose_name_plural)
        for model in apps.get_models(include_auto_created=True)
    } | KINDS
    sums: dict[str, list[int]] = {}
    for table, counts in tables.items():
        of_kind = sums.setdefault(str(names.get(table, _("records of the framework"))), [0, 0])
        of_kind[0] += counts.get("removed", 0)
        of_kind[1] += counts.get("changed", 0)
    return sorted((name, removed, changed) for name, (removed, changed) in sums.items())
