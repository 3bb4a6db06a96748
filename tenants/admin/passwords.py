"""Links to set a password: a reset that a person asks for, and an invitation.

Both are links of Django's password reset: signed, used once, and valid for PASSWORD_RESET_TIMEOUT.
The holder of an operator's link becomes the first admin of a tenant.
"""

import logging
import math
from typing import Any

from celery import current_app
from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.admin import AdminSite
from django.contrib.auth.forms import PasswordResetForm, SetPasswordForm
from django.contrib.auth.models import Group, User
from django.contrib.auth.tokens import default_token_generator
from django.contrib.auth.views import PasswordResetConfirmView, PasswordResetView
from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse, reverse_lazy
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from django.utils.translation import get_language, gettext, gettext_lazy as _
from django.views.decorators.cache import never_cache
from kombu.exceptions import OperationalError
from unfold import widgets
from unfold.forms import UserCreationForm

from tenants import transaction
from tenants.audit.roles import admins
from tenants.context import current_tenant_id
from tenants.http import current_address
from tenants.limits.rate_limit import count_mail_request
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


class ResetView(PasswordResetView):
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
        limit = count_mail_request(email, current_address())
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


class NewPasswordView(PasswordResetConfirmView):
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


def password_urls(site: AdminSite) -> list[URLPattern]:
    """Return the pages of a site that set a password without a login."""
    return [
        path("password-reset/", ResetView.as_view(site=site), name="admin_password_reset"),
        path(
            "password/<uidb64>/<token>/",
            NewPasswordView.as_view(site=site),
            name="password_reset_confirm",
        ),
    ]


def _host_of_link(request: HttpRequest) -> str:
    """Return the host of the request, with its port only if the server has this port.

    Anybody may ask for a link, and ALLOWED_HOSTS does not check the port of the Host header.
    """
    host, _, port = request.get_host().rpartition(":")
    return host if host and port.isdigit() and port != request.get_port() else request.get_host()


def password_link(request: HttpRequest, user: User) -> str:
    """Return a link on this host with which the user can set a password once."""
    key = urlsafe_base64_encode(force_bytes(user.pk))
    names = [key, default_token_generator.make_token(user)]
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
            return TemplateResponse(request, "konstruct/password.html", context)
        form = FirstAdminForm(request.POST or None, initial={"username": email[:150]})
        if request.method != "POST" or not form.is_valid():
            return TemplateResponse(request, "konstruct/password.html", {**context, "form": form})
        user = form.save(commit=False)
        user.email, user.is_staff, user.is_superuser = email, True, True
        user.save()
        site.recorder(request, "create", user=user, first_admin=True)
    messages.success(request, gettext("You are the first admin: log in."))
    return redirect("admin:login")
