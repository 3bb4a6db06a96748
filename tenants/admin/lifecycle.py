"""Operators delete a tenant after they type its name, and invite its admin."""

from collections.abc import Callable
from functools import partial
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext

from tenants.admin.passwords import first_admin_token
from tenants.admin.sites import operator_site
from tenants.audit.operator_log import change_tenant, record_person_action
from tenants.exceptions import InvalidTenant
from tenants.models import Tenant
from tenants.schemas import provisioning

CHANGE, DELETE = "tenants.change_tenant", "tenants.delete_tenant"


@operator_site.page("tenants/<uuid:tenant_id>/remove/", permission=DELETE)
def remove_tenant(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    """Ask for the tenant's name, then have it deleted after the grace period."""
    tenant = get_object_or_404(Tenant.objects.prefetch_related("domains"), pk=tenant_id)
    problem, days = "", provisioning.GRACE.days
    if request.method == "POST":
        if request.POST.get("typed") == tenant.slug:
            service = provisioning.request_deletion
            if try_change(request, tenant, service, action="request_deletion"):
                done = gettext("%(slug)s is suspended, and is deleted after %(days)s days.")
                messages.success(request, done % {"slug": tenant.slug, "days": days})
            return redirect("admin:tenants_tenant_change", tenant.pk)
        problem = gettext("Type %(slug)s to confirm.") % {"slug": tenant.slug}
    else:
        record_person_action(request, "view", tenant)
    return operator_site.render(
        request,
        "konstruct/confirm_tenant.html",
        title=gettext("Delete the tenant"),
        tenant=tenant,
        days=days,
        problem=problem,
    )


@operator_site.page("tenants/<uuid:tenant_id>/invite/", permission=CHANGE)
def invite_admin(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    """Show the link with which the first admin of a tenant chooses a name and a password."""
    tenant = get_object_or_404(Tenant.objects.prefetch_related("domains"), pk=tenant_id)
    if not request.user.has_perm("tenants.add_tenant"):
        raise PermissionDenied
    address, link = admin_address(request, tenant), ""
    email = request.POST.get("email", request.GET.get("email", "")).strip()[:254]
    if request.method == "POST" and address:
        link = address + f"first-admin/{first_admin_token(tenant, email)}/"
        record_person_action(request, "edit", tenant, invited="link")
    else:
        record_person_action(request, "view", tenant)
    return operator_site.render(
        request,
        "konstruct/invite_admin.html",
        title=gettext("Invite the first admin"),
        tenant=tenant,
        email=email,
        link=link,
    )


def admin_address(request: HttpRequest, tenant: Tenant) -> str:
    """Return the address of a tenant's admin, with the scheme and port of the request."""
    domains = sorted(tenant.domains.all(), key=lambda domain: not domain.is_primary)
    if not domains:
        return ""
    port = request.get_port() if ":" in request.get_host() else ""
    host = f"{domains[0].domain}:{port}" if port else domains[0].domain
    return f"{request.scheme}://{host}/admin/"


def try_change(
    request: HttpRequest, tenant: Tenant, change: Callable[[Tenant], None], *, action: str
) -> bool:
    """Change a tenant and log it. On InvalidTenant, show the error and return False."""
    try:
        change_tenant(tenant, change, partial(record_person_action, request, action))
    except InvalidTenant as error:
        messages.error(request, str(error))
        return False
    return True
