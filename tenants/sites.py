"""The two admin sites: the operators' on the public hosts, a tenant's on its own hosts.

Every package's admin.py registers its models on one of them. Two, for one site would offer tenants
and domains inside a tenant's admin, and a tenant's tables where there are none.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.functional import SimpleLazyObject
from unfold.admin import ModelAdmin
from unfold.sites import UnfoldAdminSite

from tenants.models import Tenant

View = Callable[..., HttpResponseBase]


class PagedSite(UnfoldAdminSite):
    """An admin site with pages of its own beside those of its models."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.pages: dict[str, str] = {}
        self._page_urls: list[URLPattern] = []

    def page(self, route: str, *, name: str, permission: str) -> Callable[[View], View]:
        """Serve a view below /admin/, as admin:NAME, to whoever has the permission."""

        def register(view: View) -> View:
            @wraps(view)
            def guarded(request: HttpRequest, **arguments: Any) -> HttpResponseBase:
                if not request.user.has_perm(permission):
                    raise PermissionDenied
                return view(request, **arguments)

            self.pages[name] = permission
            self._page_urls.append(path(route, self.admin_view(guarded), name=name))
            return guarded

        return register

    def get_app_list(
        self, request: HttpRequest, app_label: str | None = None
    ) -> list[dict[str, Any]]:
        """List the models once somebody looks: every page asks, for a sidebar it does not have."""
        listed: Any = SimpleLazyObject(
            lambda: super(PagedSite, self).get_app_list(request, app_label)
        )
        return cast("list[dict[str, Any]]", listed)

    def get_sidebar_list(self, request: HttpRequest) -> list[dict[str, Any]]:
        """Mark where somebody is, in the menu that was made for this very page.

        Unfold would make a copy first, as of a menu that stands in the settings.
        """
        menu = self._get_config("SIDEBAR", request)["navigation"]
        groups: list[dict[str, Any]] = self._get_value(menu, request)
        for group in groups:
            group["items"] = self._get_navigation_items(request, group["items"])
        return groups

    def extra_urls(self) -> list[URLPattern]:
        return self._page_urls

    def render(
        self, request: HttpRequest, template: str, *, title: str, **context: Any
    ) -> TemplateResponse:
        """Answer with a page of the site."""
        request.current_app = self.name
        return TemplateResponse(
            request, template, {**self.each_context(request), "title": title, **context}
        )

    def search(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Find models by their names, for the sidebar.

        Unfold would keep what it finds in the cache, under the user's number: that of another
        person in every other tenant.
        """
        asked = request.GET.get("s", "").strip().lower()
        if not asked:
            return HttpResponse()
        found = self._search_apps(self.get_app_list(request), asked)
        extended = "extended" in request.GET
        return TemplateResponse(
            request,
            f"unfold/helpers/{'command' if extended else 'search'}_results.html",
            {"page_obj": Paginator(found, 100), "results": found, "page_counter": 0},
            headers={"HX-Trigger": "search"},
        )


class OperatorSite(PagedSite):
    """Where operators manage tenants and domains, and see nothing of what is inside."""

    index_title = "Tenants"

    def has_permission(self, request: HttpRequest) -> bool:
        return _tenant_of(request) is None and super().has_permission(request)

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        context = super().each_context(request)
        return {**context, "site_subheader": "Operators"}


class TenantSite(PagedSite):
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
