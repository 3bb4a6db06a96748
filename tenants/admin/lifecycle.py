"""Operators suspend and delete a tenant after they type its name, and invite its admin."""

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.validators import validate_email
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext, gettext_lazy as _

from tenants.admin.figures import add_figures
from tenants.admin.passwords import first_admin_token, mail_invitation
from tenants.admin.sites import operator_site
from tenants.audit.operator_log import change_tenant, record_person_action
from tenants.exceptions import InvalidTenant
from tenants.models import Tenant
from tenants.schemas import provisioning

CHANGE, DELETE = "tenants.change_tenant", "tenants.delete_tenant"
MAIL = _("""You are invited to be the first admin of {tenant}.

To choose a name and a password, open this link. It can be used once:

{link}
""")


@operator_site.page("tenants/<uuid:tenant_id>/suspend/", permission=CHANGE)
def suspend_tenant(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    """Ask for the tenant's name, then stop serving it."""
    return _confirm_page(
        request,
        tenant_id,
        provisioning.suspend_tenant,
        action="suspend",
        title=gettext("Suspend the tenant"),
        explained=gettext(
            "Its requests will be refused, and its jobs will wait. Nothing is removed: Resume"
            " serves it again."
        ),
        done=gettext("{} is suspended."),
    )


@operator_site.page("tenants/<uuid:tenant_id>/remove/", permission=DELETE)
def remove_tenant(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    """Ask for the tenant's name, then have it deleted after the grace period."""
    days = provisioning.GRACE_DAYS
    return _confirm_page(
        request,
        tenant_id,
        provisioning.request_deletion,
        action="request_deletion",
        title=gettext("Delete the tenant"),
        explained=gettext(
            "It will be suspended at once, and deleted with all its data after %(days)s days. "
            "Until then it can be restored, afterwards only from a backup."
        )
        % {"days": days},
        done=gettext("{} is suspended, and is deleted after %(days)s days.") % {"days": days},
    )


@operator_site.page("tenants/<uuid:tenant_id>/invite/", permission=CHANGE)
def invite_admin(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    """Mail the invitation of the tenant's first admin, or show its link."""
    tenant = get_object_or_404(Tenant.objects.prefetch_related("domains"), pk=tenant_id)
    if not request.user.has_perm("tenants.add_tenant"):
        raise PermissionDenied
    address = admin_address(request, tenant)
    email = request.POST.get("email", request.GET.get("email", "")).strip()[:254]
    context: dict[str, Any] = {
        "tenant": tenant,
        "email": email,
        "title": gettext("Invite the first admin"),
    }
    template = "konstruct/invite_admin.html"
    if request.method != "POST" or not address:
        record_person_action(request, "view", tenant)
        return operator_site.render(request, template, **context)
    link = address + f"first-admin/{first_admin_token(tenant, email)}/"
    by_mail = request.POST.get("by") == "mail"
    problem = ""
    if by_mail:
        try:
            validate_email(email)
        except ValidationError:
            return operator_site.render(
                request, template, problem=gettext("This is not a mail address."), **context
            )
    record_person_action(request, "edit", tenant, invited="mail" if by_mail else "link")
    if by_mail:
        problem = mail_invitation(request, email, MAIL.format(tenant=tenant.name, link=link))
        if not problem:
            return redirect("admin:tenants_tenant_change", tenant.pk)
    return operator_site.render(request, template, link=link, problem=problem, **context)


def admin_address(request: HttpRequest, tenant: Tenant) -> str:
    """Return the address of a tenant's admin, with the scheme and port of the request."""
    domains = sorted(tenant.domains.all(), key=lambda domain: not domain.is_primary)
    if not domains:
        return ""
    port = request.get_port() if ":" in request.get_host() else ""
    host = f"{domains[0].domain}:{port}" if port else domains[0].domain
    return f"{request.scheme}://{host}/admin/"


def _confirm_page(
    request: HttpRequest,
    tenant_id: UUID,
    change: Callable[[Tenant], None],
    *,
    action: str,
    title: str,
    explained: str,
    done: str,
) -> HttpResponse:
    tenant: Any = get_object_or_404(Tenant.objects.prefetch_related("domains"), pk=tenant_id)
    problem = ""
    if request.method == "POST":
        if request.POST.get("typed") == tenant.slug:
            if try_change(request, tenant, change, action=action):
                messages.success(request, done.format(tenant.slug))
            return redirect("admin:tenants_tenant_change", tenant.pk)
        problem = gettext("Type %(slug)s to confirm.") % {"slug": tenant.slug}
    else:
        record_person_action(request, "view", tenant)
    add_figures([tenant])
    return operator_site.render(
        request,
        "konstruct/confirm_tenant.html",
        title=title,
        tenant=tenant,
        explained=explained,
        problem=problem,
    )


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
