"""Usage of a tenant; for operators the usage of all tenants, and the processes."""

import logging
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.contrib import admin
from django.core.paginator import Paginator
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from konstruct.admin.access import AuditedReadOnlyAdmin
from konstruct.api.health import readiness
from konstruct.orchestrator import usage
from konstruct.orchestrator.models import DailyUsage
from tenants.admin.exports import export_response
from tenants.admin.quotas import reached_text
from tenants.admin.sites import ExtraContext, operator_site, tenant_site
from tenants.audit.operator_log import record_person_action
from tenants.context import tenant_scope
from tenants.exceptions import KonstructError
from tenants.limits.quotas import UNLIMITED, Quota, limits_of
from tenants.models import Tenant
from tenants.outages import OUTAGES

logger = logging.getLogger(__name__)

PER_PAGE: Final = 100
# Days of the operators' CSV.
CSV_DAYS: Final = 366


@admin.register(DailyUsage, site=tenant_site)
class DailyUsageAdmin(AuditedReadOnlyAdmin):
    """Counts of days, below the quotas with their use."""

    list_before_template = "konstruct/usage.html"
    list_display = ("day", *usage.COUNTS)
    date_hierarchy = "day"
    ordering = ("-day",)
    fields = ("day", *usage.COUNTS)

    def changelist_view(
        self, request: HttpRequest, extra_context: ExtraContext = None
    ) -> HttpResponse:
        """Show the quotas and the days."""
        tenant = usage.tenant_row()
        used = usage.usage_of(tenant, Quota)
        quotas = {
            "quotas": _quotas(tenant.quotas, used),
            "measured_at": _measured_at(tenant),
        }
        return super().changelist_view(request, {**(extra_context or {}), **quotas})


@operator_site.page("usage/", name="usage", permission="tenants.view_tenant")
def show(request: HttpRequest) -> HttpResponseBase:
    """Show the last measurement of tenants. With `?csv=1` the days of all tenants as CSV."""
    tenants = Tenant.objects.provisioned()
    if "csv" in request.GET:
        record_person_action(request, "export", "usage")
        columns = ["tenant", "day", *usage.COUNTS]
        return export_response("usage", columns, _days(list(tenants)))
    record_person_action(request, "list", "usage")
    page = Paginator(tenants, PER_PAGE).get_page(request.GET.get("p"))
    rows = [
        {
            **tenant.usage,
            "tenant": tenant,
            "measured": _measured_at(tenant),
            "reached": reached_text(tenant),
        }
        for tenant in page
    ]
    return operator_site.render(
        request,
        "konstruct/usage_of_tenants.html",
        title=_("Usage"),
        page=page,
        rows=rows,
        is_fullwidth=1,
    )


def _measured_at(tenant: Tenant) -> datetime | None:
    return parse_datetime(tenant.usage.get("measured_at", ""))


def _days(tenants: Iterable[Tenant]) -> Iterator[tuple[Any, ...]]:
    """Yield the days of tenants. A tenant that cannot be read has one line, "unknown"."""
    since = timezone.now().astimezone(UTC).date() - timedelta(days=CSV_DAYS)
    for tenant in tenants:
        rows: list[tuple[Any, ...]]
        try:
            with tenant_scope(tenant.pk):
                days = DailyUsage.objects.filter(day__gte=since).order_by("day")
                rows = list(days.values_list("day", *usage.COUNTS))
        except (*OUTAGES, DatabaseError, KonstructError) as error:
            logger.warning("The usage of tenant %s cannot be read: %s", tenant.slug, error)
            rows = [("unknown",)]
        yield from ((tenant.slug, *row) for row in rows)


def _quotas(quotas: dict[str, Any], used: dict[Quota, Any]) -> list[dict[str, Any]]:
    limits = limits_of(quotas)
    rows = []
    for quota in Quota:
        limit, used_amount = limits.get(quota, UNLIMITED), used[quota]
        most = limit.hard or limit.soft
        rows.append(
            {
                "label": quota.label,
                "used": used_amount,
                "soft": limit.soft,
                "hard": limit.hard,
                "share": min(100, int(100 * used_amount / most))
                if most and used_amount is not None
                else None,
                "level": limit.level(used_amount),
            }
        )
    return rows


@operator_site.page("processes/", name="processes", permission="tenants.view_tenant")
def processes(request: HttpRequest) -> HttpResponseBase:
    """List the services and worker processes with their states, as `/health/ready` does."""
    record_person_action(request, "list", "processes")
    return operator_site.render(
        request,
        "konstruct/processes.html",
        title=gettext("Processes"),
        checks=readiness().items(),
    )
