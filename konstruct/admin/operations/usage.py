"""Usage of the tenant: its quotas with their use, the days of a month, and its CSV."""

from collections.abc import Iterable
from datetime import date, timedelta
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.utils.translation import gettext_lazy as _

from konstruct.admin.access import log_access
from konstruct.orchestrator import usage
from konstruct.orchestrator.monthly import csv_lines, month_of, row_of
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action
from tenants.limits.quotas import UNLIMITED, Quota, limits_of

READ: Final = "orchestrator.view_modelcall"
# Months that a page links to, with this one.
MAX_MONTHS: Final = 12


@tenant_site.page("usage/", name="usage", permission=READ)
def show(request: HttpRequest) -> HttpResponseBase:
    """Show the quotas, and a month by day. With `?csv=1` the month as CSV."""
    first = requested_month(request)
    log_access(request, Action.VIEW, "usage", asked={"month": f"{first:%Y-%m}"})
    tenant = usage.tenant_row()
    if "csv" in request.GET:
        return csv_response([row_of(usage.full_tenant_row(), first)], first)
    days = usage.counts_by("day", first, usage.last_of_month(first))
    used = usage.usage_of(tenant, Quota)
    response: HttpResponse = tenant_site.render(
        request,
        "konstruct/usage.html",
        title=str(_("Usage")),
        month=f"{first:%Y-%m}",
        months=months(),
        days=sorted(days.items(), reverse=True),
        quotas=_quotas(tenant.quotas, used),
        measured_at=tenant.usage.get("measured_at", "")[:16].replace("T", " "),
        is_fullwidth=1,
    )
    return response


def requested_month(request: HttpRequest) -> date:
    """Return the month of the address; the current month for an invalid one."""
    try:
        return month_of(request.GET.get("month", ""))
    except ValueError:
        return usage.first_of_month()


def months() -> list[str]:
    """Return this month and those before it, such as 2026-11."""
    names, first = [], usage.first_of_month()
    for _number in range(MAX_MONTHS):
        names.append(f"{first:%Y-%m}")
        first = (first - timedelta(days=1)).replace(day=1)
    return names


def csv_response(rows: Iterable[dict[str, Any]], first: date) -> StreamingHttpResponse:
    """Return the usage of a month as a CSV file, streamed.

    Args:
        rows: the usage of tenants.
        first: the first day of the month, for the name of the file.
    """
    return StreamingHttpResponse(
        csv_lines(rows),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="usage-{first:%Y-%m}.csv"'},
    )


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
