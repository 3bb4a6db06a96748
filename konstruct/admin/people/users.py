"""People: the list of end users, the export and erasure of one, and the ids of channels."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import content_disposition_header, urlencode
from django.utils.translation import gettext, gettext_lazy as _
from unfold.decorators import display

from konstruct.admin.access import AuditedAdmin, PageList, actor_of, log_access
from konstruct.admin.lists import agent_names, column
from konstruct.admin.pages import UserField, as_user_id, show_outcome
from konstruct.admin.people.erasures import ERASE, REQUESTED, ErasureForm
from konstruct.admin.people.person import VIEW, VIEW_ACCOUNTS
from konstruct.admin.people.person_export import PersonPage
from konstruct.api.http.problems import current_request_id
from konstruct.orchestrator.identities import channel_identities
from konstruct.orchestrator.identities.erasure_requests import replies_to_others, request_erasure
from konstruct.orchestrator.models import ChannelIdentity
from memory.browse.people import people, similar_user_ids, with_text
from memory.ids import as_code_points
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
