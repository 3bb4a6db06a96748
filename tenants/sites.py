"""The two admin sites: the operators' on the public hosts, a tenant's on its own hosts.

Every package's admin.py registers its models on one of them. Two, for one site would offer tenants
and domains inside a tenant's admin, and a tenant's tables where there are none.
"""

from typing import Any

from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.sites import UnfoldAdminSite

from tenants.models import Tenant


class OperatorSite(UnfoldAdminSite):
    """Where operators manage tenants and domains, and see nothing of what is inside."""

    index_title = "Tenants"

    def has_permission(self, request: HttpRequest) -> bool:
        return _tenant_of(request) is None and super().has_permission(request)

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        context = super().each_context(request)
        return {**context, "site_subheader": "Operators"}


class TenantSite(UnfoldAdminSite):
    """Where a tenant's own users audit what its agents remember."""

    index_title = "Memory"

    def has_permission(self, request: HttpRequest) -> bool:
        return _tenant_of(request) is not None and super().has_permission(request)

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """Say on every page whose memory this is."""
        context = super().each_context(request)
        tenant = _tenant_of(request)
        return {**context, "site_subheader": tenant.name if tenant else ""}


def _tenant_of(request: HttpRequest) -> Tenant | None:
    """Return what the middleware found; None on a public host."""
    tenant: Tenant | None = getattr(request, "tenant", None)
    return tenant


# Both answer to "admin:…": each URL configuration has one of them.
operator_site = OperatorSite(name="admin")
tenant_site = TenantSite(name="admin")


class ReadOnlyModelAdmin(ModelAdmin):
    """Rows to look at: adding, changing and deleting them is refused to everybody."""

    actions: Any = None

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
