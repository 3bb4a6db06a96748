"""Exports and ranges of dates of pages that are no list of a model, such as conversations."""

from collections.abc import Callable, Iterable
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.utils.http import urlencode

from konstruct.admin.access import log_list_access
from tenants.admin.list_tools import EXPORT_ROUTE, check_export, export_response
from tenants.admin.sites import tenant_site

Rows = Iterable[tuple[Any, ...]]


def export_page(
    name: str, *, permission: str, columns: list[str], rows: Callable[[HttpRequest], Rows]
) -> None:
    """Serve the export of a list.

    Args:
        name: the name of the page of the list, which is its address, too.
        permission: the permission of the page.
        columns: the columns of an export.
        rows: returns the filtered rows of a request.
    """

    @tenant_site.page(f"{name}/{EXPORT_ROUTE}", name=f"{name}_export", permission=permission)
    def export(request: HttpRequest, kind: str) -> HttpResponseBase:
        check_export(request, kind)
        found = rows(request)
        log_list_access(request, "export", None, name, asked=request.GET.dict(), format=kind)
        return export_response(kind, name, columns, found)


def date_range_query(request: HttpRequest) -> dict[str, str]:
    """Return the days of the range as parameters of an address."""
    return {name: request.GET[name][:10] for name in ("from", "to") if request.GET.get(name)}


def with_date_range(request: HttpRequest, query: str) -> str:
    """Return parameters of an address with the days of the range."""
    return "&".join(filter(None, (query, urlencode(date_range_query(request)))))
