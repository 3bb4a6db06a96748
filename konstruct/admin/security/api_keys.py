"""API keys: create or roll a key, show it once, revoke it."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import OuterRef, QuerySet, Subquery, TextField
from django.db.models.functions import Cast
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _
from unfold.decorators import display
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from konstruct.admin.access import AuditedAdmin, log_row_access
from konstruct.admin.lists import link
from konstruct.admin.pages import PageForm, UserField, show_outcome
from konstruct.api.auth.keys import KeyText, issue_key, revoke_key, roll_key
from konstruct.api.models import DEFAULT_SCOPES, ApiKey, KeyScope
from konstruct.model_names import translated_choices
from tenants import transaction
from tenants.admin.columns import Colours
from tenants.admin.sites import tenant_site
from tenants.audit.changes import row_state
from tenants.audit.models import Action
from tenants.context import required_tenant_id

ADD, CHANGE = "api.add_apikey", "api.change_apikey"
LIST = "admin:api_apikey_changelist"


class ApiKeyForm(forms.ModelForm):
    """The name, scopes and limits of a new key."""

    scopes = forms.MultipleChoiceField(
        label=_("Scopes"),
        choices=translated_choices(KeyScope.choices),
        initial=DEFAULT_SCOPES,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text=ApiKey._meta.get_field("scopes").help_text,
    )
    user_id = UserField(help_text=ApiKey._meta.get_field("user_id").help_text)

    class Meta:
        model = ApiKey
        fields = ("name", "scopes", "agent", "user_id", "expires_at")


class RollForm(PageForm):
    """How long the old key works beside the new one."""

    grace = forms.TypedChoiceField(
        label=_("The old key works for"),
        coerce=int,
        choices=[(0, _("no time")), (1, _("an hour")), (24, _("a day")), (168, _("7 days"))],
        initial=24,
    )


@admin.register(ApiKey, site=tenant_site)
class ApiKeyAdmin(AuditedAdmin):
    """Keys of programs. The key itself is shown once, after it is made."""

    form = ApiKeyForm
    redirects_after_add = True
    list_display = (
        "name", "prefix", "state", "change", "expires_at", "revoked_at", "last_used_at",
        "scope_names", "agent", "user_id", "creator", "created_at",
    )  # fmt: skip
    list_select_related = ("agent",)
    search_fields = ("name", "prefix", "user_id")
    fields = ("name", "scopes", "agent", "user_id", "expires_at")
    actions = ("revoke",)

    def get_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> Any:
        """A key that exists shows its scopes as words."""
        return self.fields if obj is None else ("name", "scope_names", *self.fields[2:])

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        people = User.objects.annotate(key=Cast("pk", TextField()))
        names = people.filter(key=OuterRef("created_by")).values("username")
        keys: QuerySet[Any] = super().get_queryset(request)
        return keys.annotate(creator_name=Subquery(names))

    @display(
        description=_("state"),
        label=Colours({"valid": "success", "revoked": "danger", "expired": "warning"}),
    )
    def state(self, key: ApiKey) -> str:
        """Return the word for the row's state."""
        if key.revoked_at is not None:
            return gettext("revoked")
        is_valid = key.expires_at is None or key.expires_at > timezone.now()
        return gettext("valid") if is_valid else gettext("expired")

    @display(description=_("Change"))
    def change(self, key: ApiKey) -> SafeString | str:
        """A link to roll a key that is valid."""
        is_valid = self.state(key) == gettext("valid")
        return link(gettext("Roll"), "roll_key", key.pk) if is_valid else ""

    @display(description=_("Scopes"))
    def scope_names(self, key: ApiKey) -> str:
        """Return the scopes of the key."""
        return ", ".join(gettext(scope) for scope in key.scopes)

    @display(description=_("Created by"))
    def creator(self, key: Any) -> str:
        """The name of the person who made the key, or the command."""
        return key.creator_name or key.created_by or gettext("a command")

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Create the key with the service that the command uses."""
        key, text = issue_key(
            tenant_id=required_tenant_id(),
            name=obj.name,
            scopes=obj.scopes,
            agent_id=obj.agent_id,
            user_id=obj.user_id,
            expires_at=obj.expires_at,
            created_by=str(request.user.pk),
        )
        obj.pk = key.pk
        obj.text = text

    def response_add(
        self, request: HttpRequest, obj: Any, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the key once."""
        return _show(request, obj, obj.text)

    def has_change_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        """Refuse: a key is created, rolled and revoked, not edited."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        """Refuse: revoked keys stay, to show who had access."""
        return False

    @admin.action(description=_("Revoke"), permissions=["act"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        """Revoke the selected keys that are valid. A revoked key cannot be restored."""
        revoked = 0
        for key in queryset:
            before = row_state(key)
            if revoke_key(key.pk):
                key.refresh_from_db()
                log_row_access(request, Action.EDIT, key, before=before, after=row_state(key))
                revoked += 1
        messages.success(request, gettext("%(revoked)s revoked.") % {"revoked": revoked})


@tenant_site.page("api-keys/<uuid:key_id>/roll/", name="roll_key", permission=CHANGE)
def roll(request: HttpRequest, key_id: UUID) -> HttpResponse:
    """Ask how long the old key works yet, then make a new one and show it once."""
    if not request.user.has_perm(ADD):
        raise PermissionDenied
    key = get_object_or_404(ApiKey, pk=key_id)
    form = RollForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        before = row_state(key)
        with show_outcome(request), transaction.atomic():
            new, text = roll_key(
                key,
                grace=timedelta(hours=form.cleaned_data["grace"]),
                created_by=str(request.user.pk),
            )
            log_row_access(request, Action.EDIT, key, before=before, after=row_state(key))
            log_row_access(request, Action.CREATE, new, after=row_state(new), rolled=key.prefix)
            return _show(request, new, text, old=key)
        return redirect(LIST)
    log_row_access(request, Action.VIEW, key)
    return tenant_site.render(
        request, "konstruct/roll_key.html", title=gettext("Roll an API key"), key=key, form=form
    )


def _show(
    request: HttpRequest, key: ApiKey, text: KeyText, *, old: ApiKey | None = None
) -> HttpResponse:
    """Show the text of a key. No cookie keeps it, nor a cache: all pages of the site forbid it."""
    return tenant_site.render(
        request,
        "konstruct/new_key.html",
        title=gettext("Copy the key now"),
        key=key,
        text=text,
        old=old,
    )
