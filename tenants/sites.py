"""The two admin sites: the operators' on the public hosts, a tenant's on its own hosts.

Every package's admin.py registers its models on one of them. Two, for one site would offer tenants
and domains inside a tenant's admin, and a tenant's tables where there are none.
"""

from typing import Any

from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.sites import UnfoldAdminSite


class OperatorSite(UnfoldAdminSite):
    """Where operators manage tenants and domains, and see nothing of what is inside."""

    site_title = site_header = "Konstruct operators"
    index_title = "Tenants"

    def has_permission(self, request: HttpRequest) -> bool:
        return getattr(request, "tenant", None) is None and super().has_permission(request)


class TenantSite(UnfoldAdminSite):
    """Where a tenant's own users audit what its agents remember."""

    site_title = site_header = "Konstruct"
    index_title = "Memory"

    def has_permission(self, request: HttpRequest) -> bool:
        return getattr(request, "tenant", None) is not None and super().has_permission(request)


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
