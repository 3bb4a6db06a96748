"""The page of a tenant on which the holder of an operator's link becomes its first admin."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.forms import UserCreationForm
from django.contrib.auth.models import Group, User
from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextInputWidget

from tenants import transaction
from tenants.audit.roles import admins
from tenants.models import Tenant

SALT = "konstruct.first-admin"


class FirstAdminForm(UserCreationForm):
    """A name and a password."""

    class Meta:
        model = User
        fields = ("username",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].widget = UnfoldAdminTextInputWidget({"autocomplete": "username"})
        for name in ("password1", "password2"):
            self.fields[name].widget = UnfoldAdminPasswordWidget({"autocomplete": "new-password"})


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
