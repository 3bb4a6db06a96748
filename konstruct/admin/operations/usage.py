"""Usage of the tenant: its quotas with their use, the days of a month, and its CSV."""

from collections.abc import Iterable
from datetime import date, timedelta
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.utils.translation import gettext_lazy as _

from konstruct.admin.access import note
from konstruct.orchestrator import usage
from konstruct.orchestrator.monthly import csv_lines, month_of, row_of
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action
from tenants.context import read_from_replica
from tenants.limits.quotas import UNLIMITED, Quota, limits_of

READ: Final = "orchestrator.view_modelcall"
# Months that a page links to, with this one.
MAX_MONTHS: Final = 12


@tenant_site.page("usage/", name="usage", permission=READ)
def show(request: HttpRequest) -> HttpResponseBase:
    """Show the quotas, and a month by day. With `?csv=1` the month as CSV."""
    first = month_asked(request)
    note(request, Action.VIEW, "usage", asked={"month": f"{first:%Y-%m}"})
    tenant = usage.tenant_row()
    if "csv" in request.GET:
        with read_from_replica():
            return csv_response([row_of(usage.full_tenant_row(), first)], first)
    with read_from_replica():
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


def month_asked(request: HttpRequest) -> date:
    """Return the month that the address names; this one for nonsense."""
    try:
        return month_of(request.GET.get("month", ""))
    except ValueError:
        return usage.first_of_month()


def months() -> list[str]:
    """Return this month and those before it, such as 2026-11."""
    found, first = [], usage.first_of_month()
    for _number in range(MAX_MONTHS):
        found.append(f"{first:%Y-%m}")
        first = (first - timedelta(days=1)).replace(day=1)
    return found


def csv_response(rows: Iterable[dict[str, Any]], first: date) -> StreamingHttpResponse:
    """Answer with a file of the usage in the month that begins on a day."""
    return StreamingHttpResponse(
        csv_lines(rows),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="usage-{first:%Y-%m}.csv"'},
    )


def _quotas(quotas: dict[str, Any], used: dict[Quota, Any]) -> list[dict[str, Any]]:
    limits = limits_of(quotas)
    rows = []
    for quota in Quota:
        limit, found = limits.get(quota, UNLIMITED), used[quota]
        most = limit.hard or limit.soft
        rows.append(
            {
                "label": quota.label,
                "used": found,
                "soft": limit.soft,
                "hard": limit.hard,
                "share": min(100, int(100 * found / most)) if most and found is not None else None,
                "level": limit.level(found),
            }
        )
    return rows
