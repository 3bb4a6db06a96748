"""People: the list of end users, the export and erasure of one, and the ids of channels."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import display_for_field, display_for_value
from django.core.exceptions import ValidationError
from django.db.models import ForeignKey, JSONField, Model, QuerySet, UUIDField
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.http import content_disposition_header, urlencode
from django.utils.translation import gettext, gettext_lazy as _
from unfold.decorators import display

from konstruct.admin.access import AuditedAdmin, PageList, actor_of, log_access
from konstruct.admin.pages import UserField, agent_names, as_user_id, column, show_outcome
from konstruct.admin.people.erasures import ERASE, REQUESTED, ErasureForm
from konstruct.admin.people.person import VIEW, VIEW_ACCOUNTS
from konstruct.api.http.problems import current_request_id
from konstruct.orchestrator.identities import channel_identities
from konstruct.orchestrator.identities.erasure_requests import replies_to_others, request_erasure
from konstruct.orchestrator.identities.person_export import PersonExport, exported_models
from konstruct.orchestrator.models import ChannelIdentity
from konstruct.templatetags.texts import translated
from memory.arguments import as_code_points
from memory.browse.lists import people, similar_user_ids, with_text
from memory.models import Message
from tenants.admin.exports import streamed
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action, ErasureRequest
from tenants.audit.people import Person

# Replies to others that can be chosen one by one.
MAX_REPLIES = 200
EXPORT = "audit.export_person"
RECEIPT = "audit.view_erasurerequest"


class PersonList(PageList):
    """Users in the order of their ids, found by names, ids and accounts."""

    list_name = "people"
    permission = VIEW
    list_display = (
        *("person", "user_id", column("last_at", _("Last message"))),
        *(column("channel", _("Channel")), "agents", column("facts", _("Facts"))),
    )
    search_fields = ("user_id",)
    search_help_text = _("A name, an id, or the id of a linked account.")
    ordering = ("user_id",)
    time_column = "pk"

    def row_url(self, row: Any) -> str:
        return reverse("admin:person", query={"user": row.user_id})

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return people()

    def search(self, request: HttpRequest, rows: Any, query: str) -> Any:
        """Search by names and ids, and by accounts for users who may view them."""
        may_view = request.user.has_perm(VIEW_ACCOUNTS)
        accounts = channel_identities.users_of_accounts(query) if may_view else ()
        return rows.filter(with_text(query, also_ids=accounts))

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list; the id of an erased person leads to the receipt."""
        asked = as_user_id(request.GET.get("q"))
        if (
            asked
            and not channel_identities.is_known([asked])
            and ErasureRequest.objects.about(asked).exists()
        ):
            return redirect(reverse("admin:person", query={"user": asked}))
        return super().changelist_view(request, extra_context)

    @display(description=_("Person"))
    def person(self, user: Any) -> str:
        """The name, and other names."""
        return ", ".join(dict.fromkeys([user.name, *user.names])) or user.user_id

    @display(description=_("Agents"))
    def agents(self, user: Any) -> int:
        """The number of agents with messages of the person."""
        return len(user.agents)


PersonList.serve(Person)


@tenant_site.page("people/person/export/", permission=EXPORT)
def export_person(request: HttpRequest) -> HttpResponseBase:
    """Send all data of a person, with all their ids: as JSON, or as a page to print."""
    user_id = as_user_id(request.GET.get("user"))
    user_ids = channel_identities.linked_ids(user_id)
    if request.method != "POST" or not user_id or not channel_identities.is_known(user_ids):
        return redirect(reverse("admin:person", query={"user": user_id}))
    as_page = request.POST.get("as") == "page"
    kind = "html" if as_page else "json"
    log_access(request, Action.EXPORT, "person", user_id=user_id, format=kind)
    exported = PersonPage(user_ids, agent_names())
    if as_page:
        tenant = request.tenant  # type: ignore[attr-defined]  # set by TenantMiddleware
        return HttpResponse(
            exported.as_page(tenant=tenant, user_ids=user_ids, made_at=timezone.now())
        )
    disposition = content_disposition_header(True, f"{user_id[:80]}.json")
    return streamed(
        request,
        exported.as_json(),
        content_type="application/json",
        headers={"Content-Disposition": disposition or "attachment"},
    )


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
            raise ValidationError(gettext("This is not the id of the user."))
        return typed


@tenant_site.page("people/person/erase/", permission=ERASE)
def erase_person(request: HttpRequest) -> HttpResponseBase:
    """Request the erasure of a user, after the id was typed as a confirmation."""
    user_id = as_user_id(request.GET.get("user"))
    if not user_id or not channel_identities.is_known([user_id]):
        messages.warning(
            request, gettext("Nothing is known of %(user_id)r.") % {"user_id": user_id}
        )
        return redirect("admin:people")
    affected = replies_to_others(channel_identities.linked_ids(user_id)).order_by("-created_at")
    if not request.user.has_perm("memory.view_message"):
        affected = affected.none()
    form = PersonErasureForm(
        request.POST if request.method == "POST" else None,
        user_id=user_id,
        replies=affected[:MAX_REPLIES],
    )
    if request.method == "POST" and form.is_valid():
        with show_outcome(request, str(REQUESTED), form=form, field="reason"):
            erasure = request_erasure(
                user_id,
                by=actor_of(request),
                reason=form.cleaned_data["reason"],
                request_id=current_request_id(),
                all_replies=form.cleaned_data.get("all_replies", False),
                reply_ids=form.cleaned_data.get("replies", ()),
            )
            if request.user.has_perm(RECEIPT):
                return redirect("admin:audit_erasurerequest_change", erasure.pk)
            return redirect(reverse("admin:person", query={"user": user_id}))
    return tenant_site.render(
        request,
        "konstruct/erase_person.html",
        title=gettext("Request erasure"),
        user_id=user_id,
        query=urlencode({"user": user_id}),
        linked=[
            (other, urlencode({"user": other}))
            for other in channel_identities.linked_ids(user_id)[1:]
        ],
        spelled=as_code_points(user_id) and f" ({as_code_points(user_id)})",
        alike=[
            (other, as_code_points(other), urlencode({"user": other}))
            for other in similar_user_ids(user_id)
        ],
        form=form,
    )


class LinkForm(forms.ModelForm):
    """The user that an identity is linked to."""

    user_id = UserField(
        help_text=_(
            "The id or the name of a user, as shown under People. Earlier messages are moved "
            "within two minutes, and cannot be separated again. Empty: it is a separate user from "
            "now on; moved messages stay."
        ),
    )

    class Meta:
        model = ChannelIdentity
        fields = ("user_id",)


@admin.register(ChannelIdentity, site=tenant_site)
class ChannelIdentityAdmin(AuditedAdmin):
    """Ids of channels, with the user that each is linked to."""

    form = LinkForm
    list_display = (
        *("native_id", "name", "channel", "workspace", "user_id", "linked_by", "linked_at"),
    )
    list_filter = (("linked_at", admin.EmptyFieldListFilter), "channel")
    search_fields = ("=native_id", "=user_id", "=own_id", "name")
    ordering = ("-created_at", "id")
    readonly_fields = (
        *("channel", "workspace", "native_id", "name", "own_id", "created_at"),
        *("linked_at", "linked_by"),
    )
    fields = ("user_id", *readonly_fields)
    actions = None

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Link the identity, or unlink it."""
        user_id = form.cleaned_data["user_id"]
        if user_id:
            channel_identities.link(obj, user_id, by=actor_of(request).name)
        else:
            channel_identities.unlink(obj)

    def record(self, request: HttpRequest, action: str, row: Any = None, **detail: Any) -> None:
        """Log a change as that of a link."""
        super().record(request, Action.LINK if action == Action.EDIT else action, row, **detail)


# The page leaves out these kinds, which repeat messages, and columns about how memory works.
NOT_ON_PAGE: Final = ("memory_conversationembedding", "memory_scope")
TECHNICAL: Final = (
    *("hits", "cut", "injected", "prompt", "embedding_model", "number", "message_ids", "folded"),
    *("valid_from_precision", "valid_to_precision", "milliseconds", "author_id", "start", "end"),
    "erasures",
)
# The text of a row in the page, by the first of these columns that it has.
TEXTS: Final = ("content", "quote", "name", "query", "question", "reason")
# Columns with words in English, which the page translates.
TRANSLATED: Final = ("review_reason", "reason", "subject")
TITLES: Final = {"recent_turns": _("Recent turns"), "sessions": _("Sessions")}
_LABELS: Final = {"agent": _("agent"), "at": _("created at"), "unreadable": _("Not readable")}
TURN_LABELS: Final = {field.attname: field.verbose_name for field in Message._meta.fields} | _LABELS


class PersonPage(PersonExport):
    """All data of a person, as a page.

    Args:
        user_ids: all ids of the person.
        agents: the names of all agents.
    """

    def __init__(self, user_ids: Sequence[str], agents: dict[UUID, str]) -> None:
        super().__init__(user_ids, agents)
        self._facts: dict[UUID, str] = {}

    def as_page(self, **context: Any) -> str:
        """Return a page. Ids of rows are left out, as are empty values.

        Args:
            context: values of person_export.html.
        """
        sections: list[tuple[Any, list[Any]]] = []
        for table, model in exported_models().items():
            if table not in NOT_ON_PAGE:
                labels = {field.attname: field.verbose_name for field in model._meta.fields}
                texts = (self._as_text(model, row) for row in self.rows_of(model))
                printed = [_printed_row(text, labels) for text in texts]
                sections.append((model._meta.verbose_name_plural, printed))
        for name, rows in self.rows_without_model():
            printed = [_printed_row(_turn_as_text(row), TURN_LABELS) for row in rows]
            sections.append((TITLES[name], printed))
        return render_to_string("konstruct/person_export.html", {**context, "sections": sections})

    def _as_text(self, model: type[Model], row: dict[str, Any]) -> dict[str, Any]:
        """Return the values of a row as people read them, without the ids of rows."""
        texts = {}
        for name, value in row.items():
            field: Any = model._meta.get_field(name)
            if field.attname == "memory_id" and not field.primary_key:
                text: Any = self._facts.get(value, "")
            elif name == "agent_id":
                text = self.agents.get(value, "")
            elif is_internal(field):
                text = ""
            elif name in TRANSLATED:
                text = translated(value)
            elif isinstance(value, bool):
                text = gettext("Yes") if value else gettext("No")
            elif isinstance(field, JSONField):
                text = json.dumps(value, ensure_ascii=False) if value else ""
            else:
                text = display_for_field(value, field, "")
            texts[name] = text
        if "memory_id" in row and "content" in row:
            self._facts[row["memory_id"]] = row["content"]
        return texts


def is_internal(field: Any) -> bool:
    is_key = field.primary_key or isinstance(field, UUIDField | ForeignKey)
    return is_key or field.name in TECHNICAL


def _turn_as_text(turn: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a turn as people read them, without the id of its message."""
    texts = {**turn, "message_id": "", "role": gettext(turn.get("role", ""))}
    if turn.get("at"):
        texts["at"] = display_for_value(datetime.fromisoformat(turn["at"]), "")
    return texts


def _printed_row(row: Mapping[str, Any], labels: Mapping[str, Any]) -> tuple[Any, list[Any]]:
    """Return the text of a row, and its other values with their labels."""
    shown = {name: value for name, value in row.items() if value not in (None, "", [], {})}
    text = shown.pop(next((name for name in TEXTS if name in shown), ""), "")
    return text, [(labels.get(name, name), value) for name, value in shown.items()]
