"""The two admin sites: the operators' on the public hosts, a tenant's on its own hosts.

Every package's admin.py registers its models on one of them. Two, for one site would offer tenants
and domains inside a tenant's admin, and a tenant's tables where there are none.
"""

import math
from collections.abc import Callable
from functools import partial, partialmethod, wraps
from typing import Any, Protocol, cast

from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path
from django.utils.functional import SimpleLazyObject
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.sites import UnfoldAdminSite

from tenants import transaction
from tenants.admin.attention import attention
from tenants.admin.first_admin import first_admin
from tenants.admin.passwords import password_urls, too_many
from tenants.http.client_address import current_address
from tenants.limits.login_throttle import LoginAttempt
from tenants.limits.rate_limit import RateLimit
from tenants.models import Tenant

View = Callable[..., HttpResponseBase]
# Of a view of Django's admin.
ExtraContext = dict[str, Any] | None


class Recorder(Protocol):
    """Records actions on a site itself: login, logout, login_failed, edit, refuse.

    `user` is who it was where the request does not say so (any more); `username` what was typed.
    """

    def __call__(
        self,
        request: HttpRequest,
        action: str,
        *,
        user: Any = None,
        username: str = "",
        **detail: Any,
    ) -> None: ...


class PagedSite(UnfoldAdminSite):
    """An admin site with further pages beside those of its models.

    Logins are throttled. Logins, logouts, changed passwords and refused pages are recorded, those
    that change something in the transaction of the change.
    """

    recorder: Recorder
    """Set by the package that has the site's log."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.pages: dict[str, str] = {}
        self._page_urls: list[URLPattern] = []

    def page(
        self, route: str, *, name: str, permission: str, is_post_only: bool = False
    ) -> Callable[[View], View]:
        """Serve a view below /admin/ to users with the permission.

        Args:
            route: the address below /admin/.
            name: the name of the page, which is admin:NAME in `reverse`.
            permission: what a user needs.
            is_post_only: whether other methods than POST are refused.
        """

        def register(view: View) -> View:
            @wraps(view)
            def guarded(request: HttpRequest, **arguments: Any) -> HttpResponseBase:
                is_refused = is_post_only and request.method != "POST"
                if is_refused or not request.user.has_perm(permission):
                    raise PermissionDenied
                return view(request, **arguments)

            self.pages[name] = permission
            self._page_urls.append(path(route, self.admin_view(guarded), name=name))
            return guarded

        return register

    post_page = partialmethod(page, is_post_only=True)

    def login(self, request: HttpRequest, extra_context: ExtraContext = None) -> HttpResponse:
        """Log in, unless there were too many failures."""
        if request.method != "POST":
            return cast(HttpResponse, super().login(request, extra_context))
        answer = partial(super().login, request, extra_context)
        return self._attempt(request, request.POST.get("username", ""), answer, "login")

    def logout(self, request: HttpRequest, extra_context: ExtraContext = None) -> HttpResponse:
        """End the session."""
        user = request.user
        was_known = user.is_authenticated
        with transaction.atomic():
            response: HttpResponse = super().logout(request, extra_context)
            if was_known and not request.user.is_authenticated:
                self.recorder(request, "logout", user=user)
        return response

    def password_change(
        self, request: HttpRequest, extra_context: ExtraContext = None
    ) -> HttpResponse:
        """Change the user's own password, unless the old one was wrong too often.

        Who has another's session must not guess the password by it: guesses count as logins.
        """
        if request.method != "POST":
            return cast(HttpResponse, super().password_change(request, extra_context))
        answer = partial(super().password_change, request, extra_context)
        username = request.user.get_username()
        return self._attempt(
            request, username, answer, "edit", field="old_password", withheld=["password"]
        )

    def _attempt(
        self,
        request: HttpRequest,
        username: str,
        answer: Callable[[], HttpResponse],
        action: str,
        field: str = "",
        **detail: Any,
    ) -> HttpResponse:
        """Answer a form with a password, and record the outcome.

        An attempt counts as failed if the form is shown again: if a `field` is named,
        only if that field has an error.
        """
        attempt = LoginAttempt(username, current_address())
        limit = attempt.begin()
        if not limit.allowed:
            return self._too_many(request, attempt, limit, username)
        with transaction.atomic():
            response = answer()
            succeeded = response.status_code == 302
            if succeeded:
                self.recorder(request, action, user=request.user, **detail)
        if succeeded or (field and not _is_wrong(response, field)):
            attempt.succeeded()
        elif attempt.is_worth_recording(limit):
            self.recorder(request, "login_failed", username=username)
        return response

    def _too_many(
        self, request: HttpRequest, attempt: LoginAttempt, limit: RateLimit, username: str
    ) -> HttpResponse:
        """Refuse an attempt without checking its password."""
        seconds = math.ceil(limit.retry_after)
        if attempt.is_worth_recording(limit):
            self.recorder(
                request, "login_failed", username=username, locked=True, retry_after=seconds
            )
        return too_many(request, seconds)

    def autocomplete_view(self, request: HttpRequest) -> HttpResponse:
        """Not served: no form has such a field, and Django would search any model for it."""
        raise Http404

    def admin_view(self, view: View, cacheable: bool = False) -> View:
        """Record a refusal to a logged-in user, after the rollback."""
        inner = super().admin_view(view, cacheable)

        @wraps(inner)
        def recorded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            try:
                response: HttpResponseBase = inner(request, *args, **kwargs)
            except (PermissionDenied, Http404) as refusal:
                self._note_refusal(request, 403 if isinstance(refusal, PermissionDenied) else 404)
                raise
            if response.status_code in (403, 404):
                self._note_refusal(request, response.status_code)
            return response

        return recorded

    def _note_refusal(self, request: HttpRequest, status: int) -> None:
        if request.user.is_authenticated:
            self.recorder(
                request,
                "refuse",
                status=status,
                attempted=f"{request.method} {request.path}",
                asked=request.GET.dict(),
            )

    def get_app_list(
        self, request: HttpRequest, app_label: str | None = None
    ) -> list[dict[str, Any]]:
        """List the models lazily: every page asks, for a sidebar it does not have."""
        listed: Any = SimpleLazyObject(
            lambda: super(PagedSite, self).get_app_list(request, app_label)
        )
        return cast("list[dict[str, Any]]", listed)

    def get_sidebar_list(self, request: HttpRequest) -> list[dict[str, Any]]:
        """Mark the current page in its menu.

        Unfold would make a copy first, as of a menu in the settings.
        """
        menu = self._get_config("SIDEBAR", request)["navigation"]
        groups: list[dict[str, Any]] = self._get_value(menu, request)
        for group in groups:
            group["items"] = self._get_navigation_items(request, group["items"])
        return groups

    def extra_urls(self) -> list[URLPattern]:
        return self._page_urls

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """Return the addresses without Django's way from a row to its public page.

        Unfold's templates name the palette's address "search"; `search/` is a page of a site.
        """
        palette = path("palette/", self.admin_view(self.search), name="search")
        replaced = ("view_on_site", "search")
        urls = [url for url in super().get_urls() if getattr(url, "name", "") not in replaced]
        return [*password_urls(self), palette, *urls]

    def render(
        self, request: HttpRequest, template: str, *, title: Any, **context: Any
    ) -> TemplateResponse:
        """Answer with a page of the site."""
        request.current_app = self.name
        return TemplateResponse(
            request, template, {**self.each_context(request), "title": title, **context}
        )

    def search(self, request: HttpRequest, extra_context: ExtraContext = None) -> HttpResponse:
        """Find what the callback of the settings finds, and lists by their names.

        Unfold would keep what it finds in the cache, under the user's number: that of another
        person in every other tenant.
        """
        asked = request.GET.get("s", "").replace("\0", "").strip().lower()
        if not asked:
            return HttpResponse()
        found = self._search_apps(self.get_app_list(request), asked)
        extended = "extended" in request.GET
        if extended:
            callback = self._get_config("COMMAND", request)["search_callback"]
            found = [*self._get_value(callback, request, asked), *found]
        return TemplateResponse(
            request,
            f"unfold/helpers/{'command' if extended else 'search'}_results.html",
            {"page_obj": Paginator(found, 100), "results": found, "page_counter": 0},
            headers={"HX-Trigger": "search"},
        )


class OperatorSite(PagedSite):
    """Where operators manage tenants and domains, and see none of their content."""

    index_title = _("Tenants")

    def index(self, request: HttpRequest, extra_context: ExtraContext = None) -> HttpResponse:
        """Show what needs attention."""
        context = {**(extra_context or {}), "attention": attention(request)}
        return cast(HttpResponse, super().index(request, context))

    def has_permission(self, request: HttpRequest) -> bool:
        return _tenant_of(request) is None and super().has_permission(request)

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        context = super().each_context(request)
        return {**context, "site_subheader": gettext("Operators")}


class TenantSite(PagedSite):
    """Where a tenant's own users audit what its agents remember."""

    index_title = _("Memory")

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """With the page for the first admin, who has no login yet."""
        invited = path("first-admin/<str:token>/", partial(first_admin, site=self))
        return [invited, *super().get_urls()]

    def has_permission(self, request: HttpRequest) -> bool:
        return _tenant_of(request) is not None and super().has_permission(request)

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """Show the tenant's name on every page."""
        context = super().each_context(request)
        tenant = _tenant_of(request)
        return {**context, "site_subheader": tenant.name if tenant else ""}


def _is_wrong(response: HttpResponse, field: str) -> bool:
    """Whether a form is shown again for the sake of this field."""
    form = (getattr(response, "context_data", None) or {}).get("form")
    return form is not None and field in form.errors


def _tenant_of(request: HttpRequest) -> Tenant | None:
    """Return what the middleware found; None on a public host."""
    tenant: Tenant | None = getattr(request, "tenant", None)
    return tenant


# Both answer to "admin:…": each URL configuration has one of them.
operator_site = OperatorSite(name="admin")
tenant_site = TenantSite(name="admin")


class ReadOnly:
    """Rows to look at: adding, changing and deleting them is refused to everybody."""

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ReadOnlyModelAdmin(ReadOnly, ModelAdmin):
    """Pages of rows to look at."""

    actions: Any = None
