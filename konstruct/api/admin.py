"""API keys in a tenant's admin: made, shown once, revoked."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from unfold.admin import ModelAdmin
from unfold.decorators import display

from konstruct.api.access import issue_key, revoke_key
from konstruct.api.models import ApiKey
from tenants.context import required_tenant_id
from tenants.sites import tenant_site


@admin.register(ApiKey, site=tenant_site)
class ApiKeyAdmin(ModelAdmin):
    """Keys of programs. The key itself is shown once, after it is made."""

    list_display = ("name", "prefix", "state", "created_at", "expires_at", "revoked_at")
    search_fields = ("name", "prefix")
    fields = ("name", "expires_at")
    actions = ("revoke",)

    @display(label={"valid": "success", "revoked": "danger", "expired": "warning"})
    def state(self, key: ApiKey) -> str:
        """Return the word for what the key is worth now."""
        if key.revoked_at is not None:
            return "revoked"
        expired = key.expires_at is not None and key.expires_at <= timezone.now()
        return "expired" if expired else "valid"

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        """Make the key by the service, as the command does, and show it this once."""
        key, text = issue_key(
            tenant_id=required_tenant_id(), name=obj.name, expires_at=obj.expires_at
        )
        obj.pk = key.pk
        self.message_user(
            request, f"Copy the key now, it is never shown again: {text}", messages.WARNING
        )

    def has_change_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        """A key is made and revoked, not edited."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        """Revoked keys stay, so that it can be seen who had access."""
        return False

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        """Who may change keys may revoke them."""
        return request.user.has_perm("api.change_apikey")

    @admin.action(description="Revoke", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        """Close the door for the selected keys, for good."""
        revoked = sum(revoke_key(key.pk) for key in queryset)
        self.message_user(request, f"{revoked} revoked.", messages.SUCCESS)
