"""Tools of lists for pages that are no list of a model: conversations, people and memories."""

from collections.abc import Callable, Iterable
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode

from konstruct.admin.access import log_list_access
from konstruct.admin.list_tools import EXPORT_ROUTE, ListTools
from tenants.admin.sites import tenant_site

Rows = Iterable[tuple[Any, ...]]


class PageTools(ListTools):
    """Tools of one page.

    Args:
        name: the name of the page, which is its address, too.
        permission: the permission of the page.
        columns: the columns of an export.
        rows: returns the filtered rows of a request.
        paging: the parameters of a place in the list.
    """

    def __init__(
        self,
        name: str,
        *,
        permission: str,
        columns: list[str],
        rows: Callable[[HttpRequest], Rows],
        paging: Iterable[str] = (),
    ) -> None:
        self.name, self.permission = name, permission
        self.columns, self.rows = columns, rows
        self.paging = {*paging}
        page = tenant_site.page(
            f"{name}/{EXPORT_ROUTE}", name=f"{name}_export", permission=permission
        )
        page(self.export_view)

    def list_name(self) -> str:
        return self.name

    def url_of(self, page: str, *arguments: Any) -> str:
        name = self.name if page == "changelist" else f"{self.name}_{page}"
        return reverse(f"admin:{name}", args=arguments)

    def has_date_range(self) -> bool:
        return True

    def paging_parameters(self, request: HttpRequest) -> set[str]:
        return self.paging

    def export_data(self, request: HttpRequest) -> tuple[list[str], Rows]:
        return self.columns, self.rows(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm(self.permission)

    def record(self, request: HttpRequest, action: str, **detail: Any) -> None:
        log_list_access(request, action, None, self.name, **detail)


def date_range_query(request: HttpRequest) -> dict[str, str]:
    """Return the days of the range as parameters of an address."""
    return {name: request.GET[name][:10] for name in ("from", "to") if request.GET.get(name)}


def with_date_range(request: HttpRequest, query: str) -> str:
    """Return parameters of an address with the days of the range."""
    return "&".join(filter(None, (query, urlencode(date_range_query(request)))))
