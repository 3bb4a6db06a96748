"""Figures of tenants for operators: jobs, in one query for each server, and problems.

No row of a tenant is read: jobs are counted by a function that names no job.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Q
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from tenants.context import fetch_all, server_scope
from tenants.models import Tenant
from tenants.outages import ServerDown
from tenants.schemas.migration_state import is_fitting
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
