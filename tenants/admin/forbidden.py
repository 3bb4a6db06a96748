"""The page for 403 in both admins: it names the permission, and the people who can give it."""

from typing import Any, Final

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from tenants.admin.recorded_admin import permission_name
from tenants.admin.sites import operator_site, tenant_site

# The permission that an address of a model's rows needs.
_NEEDED: Final = {
    "changelist": "view",
    "history": "view",
    "change": "view",
    "add": "add",
    "delete": "delete",
}
GIVES_PERMISSIONS: Final = "change_user"
MAX_NAMED: Final = 5


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 403. This is `handler403` of the URL configurations."""
    permission = _missing_permission(request)
    context: dict[str, Any] = {"permission": permission}
    if permission:
        app, _, codename = permission.partition(".")
        named = Permission.objects.filter(content_type__app_label=app, codename=codename)
        found = named.select_related("content_type").first()
        context["permission_name"] = permission if found is None else permission_name(found)
        context["givers"] = _team_managers()
    return render(request, "konstruct/forbidden.html", context, status=403)


def _missing_permission(request: HttpRequest) -> str:
    """Return the permission that the address needs and the person lacks; "" if there is none."""
    if request.resolver_match is None or not request.user.is_authenticated:
        return ""
    site = operator_site if getattr(request, "tenant", None) is None else tenant_site
    name = request.resolver_match.url_name or ""
    permission = site.pages.get(name, "")
    for model in site._registry:
        options = model._meta
        if name.startswith(f"{options.app_label}_{options.model_name}_"):
            action = _NEEDED.get(name.rpartition("_")[2])
            permission = f"{options.app_label}.{action}_{options.model_name}" if action else ""
    return "" if not permission or request.user.has_perm(permission) else permission


def _team_managers() -> list[str]:
    """Return the names of people who may change the permissions of others."""
    user_model = get_user_model()
    given = Q(codename=GIVES_PERMISSIONS, content_type__app_label="auth")
    permissions = Permission.objects.filter(given)
    people = user_model.objects.filter(
        Q(is_superuser=True)
        | Q(user_permissions__in=permissions)
        | Q(groups__permissions__in=permissions),
        is_active=True,
        is_staff=True,
    )
    return list(
        people.values_list("username", flat=True).distinct().order_by("username")[:MAX_NAMED]
    )
