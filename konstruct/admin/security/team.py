"""The people of a tenant and their roles."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin
from django.contrib.auth.models import Group, User
from django.http import HttpRequest
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from konstruct.admin.access import AuditedAdmin
from tenants.admin.recorded import RecordedPeopleAdmin
from tenants.admin.sites import tenant_site


@admin.register(User, site=tenant_site)
class PersonAdmin(RecordedPeopleAdmin, AuditedAdmin):  # type: ignore[misc]  # unfold has no types
    """People of a tenant: deactivated and not deleted, for the log keeps what they did."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Only superusers may change superusers: with a new password they could log in as them."""
        beyond_reach = obj is not None and obj.is_superuser and not _is_superuser(request)
        return not beyond_reach and bool(super().has_change_permission(request, obj))

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        """Only superusers may grant more than roles."""
        fixed = () if _is_superuser(request) else ("is_superuser", "user_permissions")
        return (*super().get_readonly_fields(request, obj), *fixed)


def _is_superuser(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_superuser", False))


@admin.register(Group, site=tenant_site)
class RoleAdmin(GroupAdmin, AuditedAdmin):  # type: ignore[misc]  # unfold has no types
    """Roles: groups with their permissions."""
