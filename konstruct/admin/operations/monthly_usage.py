"""The operators' page of tenants' usage: the last measurement, and the CSV of a month."""

from typing import Final

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponseBase
from django.utils.translation import gettext_lazy as _

from konstruct.admin.operations.usage import csv_response, months, requested_month
from konstruct.orchestrator.monthly import rows_of
from tenants.admin.quotas import reached_text
from tenants.admin.sites import operator_site
from tenants.audit.operator_log import record_person_action
from tenants.models import Tenant

PER_PAGE: Final = 100


@operator_site.page("usage/", name="usage", permission="tenants.view_tenant")
def show(request: HttpRequest) -> HttpResponseBase:
    """Show the last measurement of tenants. With `?csv=1` a month of all tenants as CSV."""
    tenants = Tenant.objects.provisioned()
    if "csv" in request.GET:
        first = requested_month(request)
        record_person_action(request, "view", "usage", asked={"month": f"{first:%Y-%m}"})
        return csv_response(rows_of(list(tenants), first), first)
    record_person_action(request, "list", "usage")
    page = Paginator(tenants, PER_PAGE).get_page(request.GET.get("p"))
    rows = [{"tenant": tenant, **tenant.usage, "reached": reached_text(tenant)} for tenant in page]
    return operator_site.render(
        request,
        "konstruct/monthly_usage.html",
        title=_("Usage"),
        months=months(),
        page=page,
        rows=rows,
        is_fullwidth=1,
    )
