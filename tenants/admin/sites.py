"""The two admin sites: the operators' on the public hosts, a tenant's on its own hosts.

Each package's admin.py registers its models on one of them. They are two, because one site would
offer tenants and domains inside a tenant's admin, and tables of tenants on hosts without a tenant.

Without a login, links set a password: a reset that a person asks for, and an invitation. Both are
links of Django's password reset: signed, used once, and valid for PASSWORD_RESET_TIMEOUT. The
holder of an operator's link becomes the first admin of a tenant.
"""

import logging
import math
from collections.abc import Callable
from functools import partial, partialmethod, wraps
from typing import Any, cast

from celery import current_app
from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import tokens, views
from django.contrib.auth.forms import PasswordResetForm, SetPasswordForm
from django.contrib.auth.models import Group, User
from django.core import paginator, signing
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path, reverse, reverse_lazy
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from django.utils.translation import get_language, gettext, gettext_lazy as _
from django.views.decorators.cache import never_cache
from kombu.exceptions import OperationalError
from unfold import widgets
from unfold.forms import UserCreationForm
from unfold.sites import UnfoldAdminSite

from tenants import http, transaction
from tenants.audit.roles import admins
from tenants.context import current_tenant_id
from tenants.limits.rate_limit import LoginAttempt, count_mail_request
from tenants.models import Tenant

logger = logging.getLogger(__name__)

# The task that finds the people, by name: its module is in a layer above this one.
SEND_TASK = "tenants.tasks.send_password_links"
TEMPLATE = "konstruct/password.html"
SENT_TEXT = _(
    "If an account has this address, a mail with a link is sent to it. The link is valid "
    "for {} hours and can be used once."
)


def too_many_attempts(request: HttpRequest, seconds: int, **context: Any) -> TemplateResponse:
    """Refuse a login or a mail. The page names the time of the next attempt."""
    return TemplateResponse(
        request,
        "konstruct/too_many_logins.html",
        {"minutes": math.ceil(seconds / 60), **context},
        status=429,
        headers={"Retry-After": str(seconds), "Cache-Control": "no-store"},
    )


class ResetForm(PasswordResetForm):
    """Asks for the address of a mail."""

    email = forms.EmailField(
        label=_("Mail address"),
        max_length=254,
        widget=widgets.UnfoldAdminEmailInputWidget({"autocomplete": "email"}),
    )


class NewPasswordForm(SetPasswordForm):
    """Asks for the new password, twice."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget = widgets.UnfoldAdminPasswordWidget({"autocomplete": "new-password"})


class ResetView(views.PasswordResetView):
    """Mails a link to the owner of an address. The answer is the same for an unknown address."""

    form_class = ResetForm
    template_name = TEMPLATE
    site: Any = None

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = {**super().get_context_data(**kwargs), **self.site.each_context(self.request)}
        return {**context, "title": gettext("Reset the password"), "button": gettext("Send a link")}

    def form_valid(self, form: Any) -> HttpResponse:
        """Enqueue the mail: a worker finds the person, so each address takes the same time."""
        email = form.cleaned_data["email"]
        limit = count_mail_request(email, http.current_address())
        if not limit.allowed:
            return too_many_attempts(self.request, math.ceil(limit.retry_after), is_reset=True)
        tenant_id = current_tenant_id()
        try:
            current_app.send_task(
                SEND_TASK,
                [
                    tenant_id and str(tenant_id),
                    email,
                    _host_of_link(self.request),
                    self.request.is_secure(),
                    get_language(),
                ],
            )
        except OperationalError:
            logger.exception("No mail can be sent: the broker is down")
            messages.error(
                self.request, gettext("No mail can be sent at the moment. Try again later.")
            )
        else:
            messages.success(
                self.request, SENT_TEXT.format(settings.PASSWORD_RESET_TIMEOUT // 3600)
            )
        return TemplateResponse(self.request, TEMPLATE, {**self.get_context_data(), "form": None})


class NewPasswordView(views.PasswordResetConfirmView):
    """Sets the password of the person who received the link, and records it."""

    form_class = NewPasswordForm
    template_name = TEMPLATE
    success_url = reverse_lazy("admin:login")
    site: Any = None
    user: Any

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = {**super().get_context_data(**kwargs), **self.site.each_context(self.request)}
        if self.validlink:
            name = self.user.get_username()
            return {
                **context,
                "title": gettext("Choose a password for %(name)s") % {"name": name},
                "button": gettext("Save"),
            }
        return {**context, "title": gettext("This link was used already, or is too old")}

    def form_valid(self, form: Any) -> HttpResponse:
        with transaction.atomic():
            # Of two simultaneous requests, the second finds the password changed.
            user = User.objects.select_for_update().get(pk=self.user.pk)
            if user.password != self.user.password:
                self.validlink = False
                return self.render_to_response(self.get_context_data())
            response: HttpResponse = super().form_valid(form)
            self.site.recorder(self.request, "edit", user=self.user, withheld=["password"])
        messages.success(self.request, gettext("The password is saved: log in with it."))
        return response


def _host_of_link(request: HttpRequest) -> str:
    """Return the host of the request, with its port only if the server has this port.

    Anybody may ask for a link, and ALLOWED_HOSTS does not check the port of the Host header.
    """
    host, _, port = request.get_host().rpartition(":")
    return host if host and port.isdigit() and port != request.get_port() else request.get_host()


def password_link(request: HttpRequest, user: User) -> str:
    """Return a link on this host with which the user can set a password once."""
    key = urlsafe_base64_encode(force_bytes(user.pk))
    names = [key, tokens.default_token_generator.make_token(user)]
    return request.build_absolute_uri(reverse("admin:password_reset_confirm", args=names))


SALT = "konstruct.first-admin"


class FirstAdminForm(UserCreationForm):
    """A name and a password."""

    usable_password = None

    class Meta:
        model = User
        fields = ("username",)
        widgets = {"username": widgets.UnfoldAdminTextInputWidget({"autocomplete": "username"})}


def first_admin_token(tenant: Tenant, email: str) -> str:
    """Return a signed token that lets its holder add the tenant's first admin."""
    return signing.dumps([str(tenant.pk), email], salt=SALT)


def email_of(token: str, tenant: Tenant) -> str | None:
    """Return the mail address of a token; None if it is invalid for this tenant, or expired."""
    try:
        tenant_id, email = signing.loads(token, salt=SALT, max_age=settings.PASSWORD_RESET_TIMEOUT)
    except (signing.BadSignature, ValueError, TypeError):
        return None
    return str(email) if tenant_id == str(tenant.pk) else None


@never_cache
def first_admin(request: HttpRequest, token: str, *, site: Any) -> HttpResponse:
    """Show and process the form that creates the tenant's first admin."""
    email = email_of(token, request.tenant)  # type: ignore[attr-defined]
    context = {
        **site.each_context(request),
        "title": gettext("Become the first admin"),
        "button": gettext("Save"),
    }
    with transaction.atomic():
        # Of two simultaneous requests, the second finds an admin.
        list(Group.objects.select_for_update().filter(name="admin"))
        if email is None or admins().exists():
            context["title"] = gettext("This link was used already, or is too old")
            return TemplateResponse(request, TEMPLATE, context)
        form = FirstAdminForm(request.POST or None, initial={"username": email[:150]})
        if request.method != "POST" or not form.is_valid():
            return TemplateResponse(request, TEMPLATE, {**context, "form": form})
        user = form.save(commit=False)
        user.email, user.is_staff, user.is_superuser = email, True, True
        user.save()
        site.recorder(request, "create", user=user, first_admin=True)
    messages.success(request, gettext("You are the first admin: log in."))
    return redirect("admin:login")


# --- The sites -----------------------------------------------------------------------------------

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
        attempt = LoginAttempt(username, http.current_address())
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
        return [
            path("password-reset/", ResetView.as_view(site=self), name="admin_password_reset"),
            path(
                "password/<uidb64>/<token>/",
                NewPasswordView.as_view(site=self),
                name="password_reset_confirm",
            ),
            palette,
            *urls,
        ]

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
            {"page_obj": paginator.Paginator(found, 100), "results": found, "page_counter": 0},
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
