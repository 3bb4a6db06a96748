"""Operators' admin of tenants and domains, and the users of both sites."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin, TabularInline
from unfold.decorators import action
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from tenants import provisioning
from tenants.exceptions import InvalidTenant
from tenants.models import Domain, Tenant
from tenants.sites import operator_site, tenant_site


class DomainInline(TabularInline):
    """Host names of one tenant."""

    model = Domain
    extra = 0
    min_num = 1


class TenantAdmin(ModelAdmin):
    """Registers, suspends and resumes tenants; what is inside them it cannot see.

    The web process cannot make a schema: a tenant added here serves after the next migrate, or
    create_tenant with its slug. Deleting is a command (delete_tenant), for the same reason.
    """

    list_display = ["slug", "name", "state", "host_names", "created_at"]
    list_filter = ["state"]
    search_fields = ["slug", "name", "domains__domain"]
    readonly_fields = ["id", "state", "schema_name", "created_at"]
    fields = ["slug", "name", "state", "id", "schema_name", "created_at"]
    inlines = [DomainInline]
    actions = ["suspend", "resume"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Tenant]:
        tenants: QuerySet[Tenant] = super().get_queryset(request)
        return tenants.prefetch_related("domains")

    def get_readonly_fields(self, request: HttpRequest, obj: Tenant | None = None) -> list[str]:
        return [*self.readonly_fields, "slug"] if obj else self.readonly_fields

    def has_delete_permission(self, request: HttpRequest, obj: Tenant | None = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Tenant, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if not change:
            self.message_user(
                request,
                f"{obj} is registered. It will be served once an operator has run"
                f" manage.py create_tenant {obj}, or migrate.",
                messages.WARNING,
            )

    @action(description="Host names")
    def host_names(self, obj: Tenant) -> str:
        return ", ".join(domain.domain for domain in obj.domains.all())

    @action(description="Suspend: stop serving, keep everything", permissions=["change"])
    def suspend(self, request: HttpRequest, queryset: QuerySet[Tenant]) -> None:
        self._each(request, queryset, provisioning.suspend_tenant)

    @action(description="Resume: serve again", permissions=["change"])
    def resume(self, request: HttpRequest, queryset: QuerySet[Tenant]) -> None:
        self._each(request, queryset, provisioning.resume_tenant)

    def _each(self, request: HttpRequest, queryset: QuerySet[Tenant], change_state: Any) -> None:
        for tenant in queryset:
            try:
                change_state(tenant)
            except InvalidTenant as error:
                self.message_user(request, str(error), messages.ERROR)
            else:
                self.message_user(request, f"{tenant} is {tenant.state}")


class PersonAdmin(UserAdmin, ModelAdmin):
    """People who may log in to this site."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm


class TenantPersonAdmin(PersonAdmin):
    """People of a tenant: deactivated and not deleted, for the log keeps what they did."""

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return False


class TeamAdmin(GroupAdmin, ModelAdmin):
    """Groups with their permissions."""


operator_site.register(Tenant, TenantAdmin)
operator_site.register(User, PersonAdmin)
operator_site.register(Group, TeamAdmin)
tenant_site.register(User, TenantPersonAdmin)
tenant_site.register(Group, TeamAdmin)
