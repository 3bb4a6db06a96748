"""The two admin sites: the operators' on the public hosts, a tenant's on its own hosts.

Each package's admin.py registers its models on one of them. They are two, because one site would
offer tenants and domains inside a tenant's admin, and tables of tenants on hosts without a tenant.
"""

import math
from collections.abc import Callable
from functools import partial, partialmethod, wraps
from typing import Any, cast

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path
from django.utils.translation import gettext, gettext_lazy as _
from unfold.sites import UnfoldAdminSite

from tenants import transaction
from tenants.admin.passwords import first_admin, password_urls, too_many_attempts
from tenants.http import current_address
from tenants.limits.rate_limit import LoginAttempt
from tenants.models import Tenant

Content = HttpResponseBase | dict[str, Any]
"""The result of a page: a response, or the values of its template."""
View = Callable[..., HttpResponseBase]
# Extra context of a view of Django's admin.
ExtraContext = dict[str, Any] | None


class PagedSite(UnfoldAdminSite):
    """An admin site with pages besides those of its models.

    Logins are throttled. Logins, logouts, password changes and refused pages are recorded; a change
    and its record are in one transaction.
    """

    recorder: Callable[..., None]
    """Set by the package that has the site's log. It records actions on the site itself: login,
    logout, login_failed, edit, refuse.

    Its arguments are the request, the action, and details. `user` is the person if the request has
    it no longer, or not yet; `username` is the typed text.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.pages: dict[str, str] = {}
        self.titles: dict[str, Any] = {}
        self._page_urls: list[URLPattern] = []

    def page(
        self,
        route: str,
        *,
        permission: str,
        name: str = "",
        title: Any = "",
        is_post_only: bool = False,
    ) -> Callable[[Callable[..., Content]], View]:
        """Serve a view below /admin/ to users with the permission.

        The view returns a response, or the values of templates/konstruct/NAME.html.

        Args:
            route: the address below /admin/.
            permission: the required permission; "": the view checks permissions itself.
            name: the name of the page, which is admin:NAME in `reverse`; by default the name of
                the view.
            title: the title of the page, unless the view returns another.
            is_post_only: whether other methods than POST are refused.
        """

        def register(view: Callable[..., Content]) -> View:
            page = name or view.__name__

            @wraps(view)
            def guarded(request: HttpRequest, **arguments: Any) -> HttpResponseBase:
                if is_post_only and request.method != "POST":
                    raise PermissionDenied
                if permission and not request.user.has_perm(permission):
                    raise PermissionDenied(permission)
                content = view(request, **arguments)
                if isinstance(content, HttpResponseBase):
                    return content
                values = {"title": title, **content}
                return self.render(request, f"konstruct/{page}.html", **values)

            self.pages[page], self.titles[page] = permission, title
            self._page_urls.append(path(route, self.admin_view(guarded), name=page))
            return guarded

        return register

    post_page = partialmethod(page, is_post_only=True)

    def subheader(self, request: HttpRequest) -> str:
        """Return the name of the tenant, or "Operators", for the headings of pages."""
        raise NotImplementedError

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        return {**super().each_context(request), "site_subheader": self.subheader(request)}

    def login(self, request: HttpRequest, extra_context: ExtraContext = None) -> HttpResponse:
        """Log in; 429 after too many failures. The page names the site."""
        site_title = f"{self.subheader(request)} · {settings.UNFOLD['SITE_TITLE']}"
        extra_context = {"site_title": site_title, **(extra_context or {})}
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
        """Change the user's own password; 429 after too many wrong old passwords.

        They count as login attempts, so that a stolen session cannot be used to guess the password.
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
            # Refused without a check of the password.
            seconds = math.ceil(limit.retry_after)
            if attempt.should_record(limit):
                locked = {"locked": True, "retry_after": seconds}
                self.recorder(request, "login_failed", username=username, **locked)
            return too_many_attempts(request, seconds)
        with transaction.atomic():
            response = answer()
            succeeded = response.status_code == 302
            if succeeded:
                self.recorder(request, action, user=request.user, **detail)
        form = (getattr(response, "context_data", None) or {}).get("form")
        is_wrong = form is not None and field in form.errors
        if succeeded or (field and not is_wrong):
            attempt.record_success()
        elif attempt.should_record(limit):
            self.recorder(request, "login_failed", username=username)
        return response

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
            # Not the path, which can have the id of a person.
            route = request.resolver_match.route if request.resolver_match else ""
            self.recorder(request, "refuse", status=status, attempted=f"{request.method} {route}")

    def extra_urls(self) -> list[URLPattern]:
        return self._page_urls

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """Return the addresses, without Django's redirect from a row to its public page.

        In Unfold's templates "search" is the address of the palette; `search/` is a page of the
        site.
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
        """Return the results of the search callback in the settings, and lists with matching names.

        Unfold would cache results under the user's primary key, which in another tenant is another
        person's.
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
    """The site in which operators manage tenants and domains. It shows no content of tenants."""

    index_title = _("Tenants")

    def has_permission(self, request: HttpRequest) -> bool:
        return _tenant_of(request) is None and super().has_permission(request)

    def subheader(self, request: HttpRequest) -> str:
        return gettext("Operators")


class TenantSite(PagedSite):
    """The site in which a tenant's users audit the memory of its agents."""

    index_title = _("Memory")

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """Add the page of the first admin, who has no login yet."""
        invited = path("first-admin/<str:token>/", partial(first_admin, site=self))
        return [invited, *super().get_urls()]

    def has_permission(self, request: HttpRequest) -> bool:
        return _tenant_of(request) is not None and super().has_permission(request)

    def subheader(self, request: HttpRequest) -> str:
        tenant = _tenant_of(request)
        return tenant.name if tenant else ""


def _tenant_of(request: HttpRequest) -> Tenant | None:
    """Return the tenant that the middleware found; None on a public host."""
    return getattr(request, "tenant", None)


# Both have the namespace "admin": each URL configuration includes one of them.
operator_site = OperatorSite(name="admin")
tenant_site = TenantSite(name="admin")
