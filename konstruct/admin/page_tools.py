"""Exports and ranges of dates of pages that are no list of a model, such as conversations."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.utils.http import urlencode

from konstruct.admin.access import log_list_access
from tenants.admin.exports import page_sources, request_export
from tenants.admin.list_tools import EXPORT_ROUTE
from tenants.admin.sites import tenant_site

Rows = Iterable[tuple[Any, ...]]


@dataclass(frozen=True)
class PageSource:
    """The list of a page, for exports."""

    name: str
    permission: str
    columns: list[str]
    rows: Callable[[HttpRequest], Rows]

    def has_view_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may see the page."""
        return request.user.has_perm(self.permission)

    def exported(self, request: HttpRequest) -> tuple[list[str], Rows]:
        """Return the columns, and the rows that the parameters of the request ask for."""
        return self.columns, self.rows(request)

    def record(self, request: HttpRequest, action: str, **detail: Any) -> None:
        """Log an action on the list."""
        log_list_access(request, action, None, self.name, **detail)


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
    page_sources[name] = PageSource(name, permission, columns, rows)

    @tenant_site.post_page(f"{name}/{EXPORT_ROUTE}", name=f"{name}_export", permission=permission)
    def export(request: HttpRequest) -> HttpResponseBase:
        return request_export(request, name)


def date_range_query(request: HttpRequest) -> dict[str, str]:
    """Return the days of the range as parameters of an address."""
    return {name: request.GET[name][:10] for name in ("from", "to") if request.GET.get(name)}


def with_date_range(request: HttpRequest, query: str) -> str:
    """Return parameters of an address with the days of the range."""
    return "&".join(filter(None, (query, urlencode(date_range_query(request)))))
