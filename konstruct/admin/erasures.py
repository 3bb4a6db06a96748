"""Erasures of people, messages and conversations, the receipts, and the rules of retention."""

import json
from collections.abc import Iterable
from typing import Any, ClassVar, Final
from uuid import UUID

from django import forms
from django.apps import apps
from django.contrib import admin, messages
from django.core.validators import MaxValueValidator, MinValueValidator
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy as _
from unfold import decorators, widgets

from konstruct.admin import access, pages
from konstruct.api.http.problems import current_request_id
from konstruct.orchestrator import retention_rules
from konstruct.orchestrator.identities import channel_identities, erasure_requests
from memory.arguments import as_code_points
from memory.browse.lists import displayed_names, similar_user_ids
from memory.facts.rows import echoes_of_message
from memory.models import MemoryEntry, Message
from tenants import error_texts, transaction
from tenants.admin.recorded_admin import BADGES
from tenants.admin.sites import Content, tenant_site
from tenants.audit.models import Action, ErasureRequest, MessageErasure, RetentionRule

ERASE = "audit.add_erasurerequest"
RECEIPT = "audit.view_erasurerequest"
# Replies to others that can be chosen one by one.
MAX_REPLIES = 200
REQUESTED = _("The erasure is requested. An operator's process carries it out.")


class ErasureForm(pages.PageForm):
    """The reason of an erasure, for its receipt."""

    reason = forms.CharField(
        label=_("Reason"),
        required=False,
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("It stays on the receipt: write no id and no name of the person."),
    )
    replies = forms.TypedMultipleChoiceField(
        label=_("Replies to erase as well"),
        coerce=UUID,
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(self, *args: Any, replies: Iterable[Message] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field: Any = self.fields["replies"]
        field.choices = [(str(row.pk), f"{row.user_id}: {row.content[:300]}") for row in replies]
        if not field.choices:
            del self.fields["replies"]


@tenant_site.page("messages/<uuid:message_id>/erase/", permission=ERASE, title=_("Erase a message"))
def erase_message(request: HttpRequest, message_id: UUID) -> Content:
    """Ask for a reason and the scope, then request the erasure."""
    message = get_object_or_404(Message, pk=message_id)
    is_whole = request.POST.get("what") == "conversation"
    form = ErasureForm(
        request.POST if request.method == "POST" else None, replies=echoes_of_message(message)
    )
    if request.method == "POST" and form.is_valid():
        with (
            pages.show_outcome(request, str(REQUESTED), form=form, field="reason"),
            transaction.atomic(),
        ):
            erasure = erasure_requests.request_message_erasure(
                agent_id=message.agent_id,
                user_id=message.user_id,
                thread_id=message.thread_id,
                message_id=None if is_whole else message.pk,
                reply_ids=() if is_whole else form.cleaned_data.get("replies", ()),
                by=access.actor_of(request),
                reason=form.cleaned_data["reason"],
            )
            access.log_row_access(
                request,
                Action.ERASE,
                message,
                "conversation" if is_whole else "message",
                subject_id=erasure.pk if is_whole else message.pk,
                erasure_id=erasure.pk,
            )
            return redirect("admin:audit_messageerasure_change", erasure.pk)
    access.log_row_access(request, Action.VIEW, message)
    return {"message": message, "form": form, "is_whole": is_whole}


class PersonErasureForm(ErasureForm):
    """The reason, the replies to others, and the id of the person as a confirmation."""

    all_replies = forms.BooleanField(label=_("Erase all of these replies"), required=False)
    typed = forms.CharField(
        label=_("The user’s id, to confirm"),
        strip=False,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def __init__(self, *args: Any, user_id: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._user_id = user_id
        if "replies" not in self.fields:
            del self.fields["all_replies"]

    def clean_typed(self) -> str:
        """Refuse another id."""
        typed: str = self.cleaned_data["typed"]
        if typed != self._user_id:
            raise forms.ValidationError(gettext("This is not the id of the user."))
        return typed


@tenant_site.page("people/person/erase/", permission=ERASE, title=_("Request erasure"))
def erase_person(request: HttpRequest) -> Content:
    """Request the erasure of a user, after the id was typed as a confirmation."""
    user_id = pages.as_user_id(request.GET.get("user"))
    if not user_id or not channel_identities.is_known([user_id]):
        messages.warning(
            request, gettext("Nothing is known of %(user_id)r.") % {"user_id": user_id}
        )
        return redirect("admin:people")
    ids = channel_identities.linked_ids(user_id)
    affected = erasure_requests.replies_to_others(ids).order_by("-created_at")
    if not request.user.has_perm("memory.view_message"):
        affected = affected.none()
    form = PersonErasureForm(
        request.POST if request.method == "POST" else None,
        user_id=user_id,
        replies=affected[:MAX_REPLIES],
    )
    if request.method == "POST" and form.is_valid():
        with pages.show_outcome(request, str(REQUESTED), form=form, field="reason"):
            erasure = erasure_requests.request_erasure(
                user_id,
                by=access.actor_of(request),
                reason=form.cleaned_data["reason"],
                request_id=current_request_id(),
                all_replies=form.cleaned_data.get("all_replies", False),
                reply_ids=form.cleaned_data.get("replies", ()),
            )
            if request.user.has_perm(RECEIPT):
                return redirect("admin:audit_erasurerequest_change", erasure.pk)
            return redirect(reverse("admin:person", query={"user": user_id}))
    return {
        "user_id": user_id,
        "name": displayed_names([user_id]).get(user_id),
        "linked": ids[1:],
        "message_count": Message.objects.filter(user_id__in=ids).count(),
        "fact_count": MemoryEntry.objects.entries().filter(user_id__in=ids).count(),
        "spelled": as_code_points(user_id) and f" ({as_code_points(user_id)})",
        "alike": [(other, as_code_points(other)) for other in similar_user_ids(user_id)],
        "form": form,
    }


# What stays for a while, and until when, by its name in the receipt's storage.
LATER: Final = {
    "backups": (_("Backups from before"), _("when they expire")),
    "cache_file": (_("The file of the cache"), _("when the cache writes its file anew")),
    "logs": (_("Lines of logs from before"), _("with their rotation")),
    "pages_of_vacuumed_tables": (
        _("Space in the files of the database"),
        _("when their space is used again, or with erase_user --rewrite"),
    ),
    "statistics": (
        _("Statistics of the database"),
        _("when PostgreSQL vacuums its own catalogue"),
    ),
    "write_ahead_log": (
        _("The log of the database"),
        _("when PostgreSQL recycles the segments written until now"),
    ),
}


class ErasureAdmin(access.RowPageAdmin):
    """Requests of erasure, with their state. The page of one is its receipt."""

    list_filter: Any = (("done_at", admin.EmptyFieldListFilter), "created_at")
    ordering: Any = ("-created_at",)
    title = _("Receipt of an erasure")
    begun_column: ClassVar[str]
    """The column that has a value once it is begun."""

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Return how far an erasure is, and the receipt in the end."""
        receipt: dict[str, Any] = row.receipt or {}
        later = (receipt.get("storage") or {}).get("later") or {}
        return {
            "erasure": row,
            "state": self.state(row),
            "receipt": receipt,
            "stored": json.dumps(receipt, indent=2, ensure_ascii=False),
            "kinds": _kinds(receipt.get("tables") or {}),
            "later": [
                LATER.get(name, (name.replace("_", " "), when)) for name, when in later.items()
            ],
            "quoted": len(receipt.get("quoted_in") or []),
        }

    @decorators.display(description=_("State"), label=BADGES)
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
    """Requests to erase people."""

    template, begun_column = "konstruct/receipt.html", "progress"
    list_display = ("created_at", "user_id", "agent", "requested_by", "state", "done_at")
    search_fields = ("=user_id",)
    search_help_text = _("The id of a person, including erased ones.")

    def search(self, request: HttpRequest, rows: Any, query: str) -> Any:
        """Search by an id, also that of an erased user, of which the receipt has a digest."""
        about = ErasureRequest.objects.about(query)
        return rows.filter(pk__in=about.order_by().values("pk"))


@admin.register(MessageErasure, site=tenant_site)
class MessageErasureAdmin(ErasureAdmin):
    """Requests to erase messages and conversations."""

    template, begun_column = "konstruct/message_receipt.html", "receipt"
    list_display = ("created_at", "user_id", "thread_id", "message_id", "requested_by", "state")
    search_fields = ("=user_id", "=thread_id")


@tenant_site.page("erasures/<uuid:erasure_id>/receipt.json", permission=RECEIPT)
def receipt_json(request: HttpRequest, erasure_id: UUID) -> HttpResponse:
    """Send the receipt as a file with its digest."""
    erasure = get_object_or_404(ErasureRequest, pk=erasure_id)
    if erasure.done_at is None:
        raise Http404("The erasure is not done: it has no receipt yet.")
    access.log_row_access(request, Action.EXPORT, erasure)
    document = erasure_requests.receipt_document(erasure, request.tenant)  # type: ignore[attr-defined]
    headers = {"Content-Disposition": f'attachment; filename="receipt-{erasure_id}.json"'}
    return JsonResponse(document, json_dumps_params={"indent": 2}, headers=headers)


def _kinds(tables: dict[str, dict[str, Any]]) -> list[tuple[str, int, int]]:
    """Return how much was removed, and was left without the person, of each kind of thing."""
    names = {
        model._meta.db_table: str(model._meta.verbose_name_plural)
        for model in apps.get_models(include_auto_created=True)
    }
    sums: dict[str, list[int]] = {}
    for table, counts in tables.items():
        of_kind = sums.setdefault(str(names.get(table, _("records of the framework"))), [0, 0])
        of_kind[0] += counts.get("removed", 0)
        of_kind[1] += counts.get("changed", 0)
    return sorted((name, removed, changed) for name, (removed, changed) in sums.items())


ALL_OTHERS = _("all others")


class RetentionForm(error_texts.TranslatedModelForm):
    """A rule: an agent, and a number of days."""

    agent_id = pages.AgentField(
        ALL_OTHERS,
        help_text=_("The agent of the rule. All others: agents without a rule."),
    )
    days = forms.IntegerField(
        label=_("Days"),
        validators=[MinValueValidator(1), MaxValueValidator(retention_rules.MAX_DAYS)],
        widget=widgets.UnfoldAdminIntegerFieldWidget,
        help_text=_(
            "Older messages are removed every hour, with their vectors and records, and "
            "cannot be restored. Facts have their own expiry. Fewer days than now take effect "
            "after a day, and can be cancelled until then."
        ),
    )

    class Meta:
        model = RetentionRule
        fields = ("agent_id", "days")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance._state.adding:
            # For another agent it would be a new rule, and the end of this one.
            self.fields["agent_id"].disabled = True
            self.initial["days"] = self.instance.next_days or self.instance.days


@decorators.display(description=_("Days"))
def days(rule: RetentionRule) -> str:
    """The days in force; a new rule can have none yet."""
    return gettext("no limit") if rule.days == retention_rules.MAX_DAYS else str(rule.days)


@admin.register(RetentionRule, site=tenant_site)
class RetentionRuleAdmin(access.AgentNameAdmin):
    """Without a rule, conversations are kept indefinitely."""

    form = RetentionForm
    list_display = ("agent", days, "next_days", "effective_at", "created_at")
    ordering = ("created_at",)
    sortable_by = ()
    actions = None  # rules are deleted one by one: each is checked
    change_form_outer_before_template = "konstruct/retention_change.html"

    @decorators.display(description=_("Agent"))
    def agent(self, row: Any) -> str:
        """The agent's name, or all others."""
        return super().agent(row) if row.agent_id else str(ALL_OTHERS)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show the messages that a pending change would remove."""
        rule = kwargs.get("obj")
        if rule is not None and rule.effective_at is not None and request.method == "GET":
            # Without a change in force, cancelling removes the rule.
            is_new = rule.days == retention_rules.days_without(rule)
            context |= {
                "waiting": rule,
                "preview": retention_rules.preview(rule),
                "is_removed": is_new and self.has_delete_permission(request, rule),
            }
        return super().render_change_form(request, context, *args, **kwargs)

    def save_model(self, request: HttpRequest, obj: RetentionRule, form: Any, change: bool) -> None:
        """Save the rule; fewer days wait."""
        retention_rules.set_days(obj, form.cleaned_data["days"])

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Delete the rule, if no conversation is removed earlier without it."""
        retention_rules.remove_rule(obj)

    def response_post_save_add(self, request: HttpRequest, obj: RetentionRule) -> HttpResponse:
        return self.response_post_save_change(request, obj)

    def response_post_save_change(self, request: HttpRequest, obj: RetentionRule) -> HttpResponse:
        """Redirect to the preview of a pending change."""
        if obj.effective_at is not None:
            return redirect("admin:audit_retentionrule_change", obj.pk)
        return super().response_post_save_change(request, obj)
