"""API keys: create a key, show it once, revoke it."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from unfold.decorators import display
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget, UnfoldAdminTextInputWidget

from konstruct.admin.access import AuditedAdmin, note_row
from konstruct.api.auth.keys import issue_key, revoke_key
from konstruct.api.http.bodies import ID_TEXT
from konstruct.api.models import USUAL_SCOPES, ApiKey, KeyScope
from tenants import transaction
from tenants.admin.sites import tenant_site
from tenants.audit.changes import row_state
from tenants.audit.models import Action
from tenants.context import required_tenant_id


class ApiKeyForm(forms.ModelForm):
    """The name, scopes and limits of a new key."""

    scopes = forms.MultipleChoiceField(
        choices=KeyScope.choices,
        initial=USUAL_SCOPES,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text=ApiKey._meta.get_field("scopes").help_text,
    )
    user_id = forms.CharField(
        label="User",
        required=False,
        max_length=255,
        strip=False,
        empty_value=None,
        validators=[ID_TEXT],
        widget=UnfoldAdminTextInputWidget,
        help_text=ApiKey._meta.get_field("user_id").help_text,
    )

    class Meta:
        model = ApiKey
        fields = ("name", "scopes", "agent", "user_id", "expires_at")


@admin.register(ApiKey, site=tenant_site)
class ApiKeyAdmin(AuditedAdmin):
    """Keys of programs. The key itself is shown once, after it is made."""

    form = ApiKeyForm
    list_display = (
        "name", "prefix", "state", "may", "agent", "user_id", "last_used_at", "created_at",
        "expires_at", "revoked_at",
    )  # fmt: skip
    list_select_related = ("agent",)
    search_fields = ("name", "prefix", "user_id")
    fields = ("name", "scopes", "agent", "user_id", "expires_at")
    actions = ("revoke",)

    @display(label={"valid": "success", "revoked": "danger", "expired": "warning"})
    def state(self, key: ApiKey) -> str:
        """Return whether the key is valid, expired or revoked."""
        if key.revoked_at is not None:
            return "revoked"
        expired = key.expires_at is not None and key.expires_at <= timezone.now()
        return "expired" if expired else "valid"

    @display(description="scopes")
    def may(self, key: ApiKey) -> str:
        """Return the scopes of the key."""
        return ", ".join(key.scopes)

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        """Create the key with the service that the command uses, and show it once."""
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
        self.message_user(
            request, f"Copy the key now, it is never shown again: {text}", messages.WARNING
        )

    def has_change_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        """Refuse: a key is created and revoked, not edited."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        """Refuse: revoked keys stay, to show who had access."""
        return False

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        """Who may change keys may revoke them."""
        return request.user.has_perm("api.change_apikey")

    @admin.action(description="Revoke", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        """Revoke the selected keys."""
        revoked = 0
        for key in queryset:
            with transaction.atomic():
                was = row_state(key)
                if revoke_key(key.pk):
                    key.refresh_from_db()
                    note_row(request, Action.EDIT, key, before=was, after=row_state(key))
                    revoked += 1
        self.message_user(request, f"{revoked} revoked.", messages.SUCCESS)
