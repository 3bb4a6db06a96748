"""Figures of tenants for operators, the deletion of a tenant, and the invitation of its admin.

No row of a tenant is read: jobs are counted by a function that names no job.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Q
from django.http import HttpRequest
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext, gettext_lazy as _

from tenants.admin.sites import Content, first_admin_token, operator_site
from tenants.audit.operator_log import change_tenant, record_person_action
from tenants.context import fetch_all, server_scope
from tenants.error_texts import translate_error
from tenants.exceptions import InvalidTenant
from tenants.models import Tenant
from tenants.outages import ServerDown
from tenants.schemas import provisioning
from tenants.schemas.migrating import is_fitting
from tenants.servers import servers

_BACKLOGS = "SELECT tenant_id, waiting, failed, oldest FROM public.job_backlogs()"


@dataclass(frozen=True, slots=True)
class Backlog:
    """Jobs of a tenant: how many wait and have failed, and since when the oldest is due."""

    waiting: int = 0
    failed: int = 0
    oldest: datetime | None = None


def backlogs(of_servers: Iterable[str] = ()) -> tuple[dict[UUID, Backlog], list[str]]:
    """Return the jobs of all tenants that have some, with one query for each server.

    Returns:
        The jobs by tenant, and the servers that are down.
    """
    found: dict[UUID, Backlog] = {}
    down = []
    for server in set(of_servers) or servers():
        try:
            with server_scope(server):
                found |= {tenant_id: Backlog(*rest) for tenant_id, *rest in fetch_all(_BACKLOGS)}
        except ServerDown:
            down.append(server)
    return found, sorted(down)


def add_figures(tenants: list[Any]) -> None:
    """Set `backlog` and `is_down` (whether its server is down) of each tenant."""
    waiting, down = backlogs({tenant.server for tenant in tenants}) if tenants else ({}, [])
    for tenant in tenants:
        tenant.backlog = waiting.get(tenant.pk, Backlog())
        tenant.is_down = tenant.server in down


def attention_context(request: HttpRequest) -> dict[str, Any]:
    """Return the problems that tenants have, each with its list, for users who may see tenants."""
    if not request.user.has_perm("tenants.view_tenant"):
        return {}
    tenants = Tenant.objects.all()
    jobs, down = backlogs()
    problems = (
        (_("To be migrated"), tenants.provisioned().exclude(is_fitting()).count(), "schema=behind"),
        (
            _("Could not be set up or migrated"),
            tenants.exclude(provisioning_error="").count(),
            "schema=failed",
        ),
        (_("Jobs that wait"), sum(of.waiting for of in jobs.values()), "jobs=waiting"),
        (_("Jobs that were given up"), sum(of.failed for of in jobs.values()), "jobs=failed"),
        (
            _("At a limit of a quota"),
            tenants.serving().with_reached_quotas().count(),
            "quota=reached",
        ),
        (
            _("To be deleted"),
            tenants.filter(deletion_asked_at__isnull=False).count(),
            "state__exact=suspended",
        ),
    )
    states = tenants.aggregate(
        all=Count("pk"), active=Count("pk", filter=Q(state=Tenant.State.ACTIVE))
    )
    found = [problem for problem in problems if problem[1]]
    return {"problems": found, "down": down, "tenants": states}


CHANGE, DELETE = "tenants.change_tenant", "tenants.delete_tenant"


@operator_site.page(
    "tenants/<uuid:tenant_id>/remove/", permission=DELETE, title=_("Delete the tenant")
)
def remove_tenant(request: HttpRequest, tenant_id: UUID) -> Content:
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
    return {"tenant": tenant, "days": days, "problem": problem}


@operator_site.page(
    "tenants/<uuid:tenant_id>/invite/", permission=CHANGE, title=_("Invite the first admin")
)
def invite_admin(request: HttpRequest, tenant_id: UUID) -> dict[str, Any]:
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
    return {"tenant": tenant, "email": email, "link": link}


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
        messages.error(request, translate_error(str(error)))
        return False
    return True
