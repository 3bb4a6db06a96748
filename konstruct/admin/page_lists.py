"""Lists whose rows have a page instead of a form, and lists at the addresses of pages."""

from typing import Any, ClassVar

from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.utils.text import capfirst
from django.utils.translation import gettext
from unfold.decorators import display

from konstruct.admin.access import AgentRowsAdmin, log_list_access, log_row_access
from tenants.admin.exports import page_sources
from tenants.admin.list_tools import EXPORT_ROUTE
from tenants.admin.recorded_admin import DeclaredChangeList
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action


def column(name: str, description: Any) -> Any:
    """Return a column of a list for an annotation."""

    @display(description=description)
    def value(row: Any) -> Any:
        return getattr(row, name)

    value.__name__ = name
    return value


class RowPageAdmin(AgentRowsAdmin):
    """Rows that have a page instead of a form."""

    template: ClassVar[str]
    title: ClassVar[Any]

    def change_view(self, request: HttpRequest, object_id: str, *args: Any) -> HttpResponse:
        """Show the page of a row."""
        row = self.get_object(request, object_id)
        is_read = request.method in ("GET", "HEAD")
        if row is None or not is_read or not self.has_view_permission(request, row):
            raise PermissionDenied
        log_row_access(request, Action.VIEW, row)
        context = {"title": self.title, **self.page_context(request, row)}
        return tenant_site.render(request, self.template, **context)

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Return the values of the template."""
        raise NotImplementedError


class PageList(AgentRowsAdmin):
    """A list with search, filters and export, at the address of a page.

    `serve` registers the page; the model keeps its list of all rows, if it has one.
    """

    list_name: ClassVar[str]
    """The name of the page, which is its address, too."""
    permission: ClassVar[str]
    sortable_by: Any = ()

    @classmethod
    def serve(cls, model: type[Model]) -> None:
        """Serve the list of a model, and its export."""
        shown = page_sources[cls.list_name] = cls(model, tenant_site)
        at, name, export = f"{cls.list_name}/", cls.list_name, f"{cls.list_name}_export"
        tenant_site.page(at, name=name, permission=cls.permission)(shown.changelist_view)
        serve_export = tenant_site.post_page(
            f"{at}{EXPORT_ROUTE}", name=export, permission=cls.permission
        )
        serve_export(shown.export_view)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list with the title of the page instead of the model's."""
        title = capfirst(gettext(self.list_name))
        request.list_title = title  # type: ignore[attr-defined]  # for header_title.html
        return super().changelist_view(request, {**(extra_context or {}), "title": title})

    def row_url(self, row: Any) -> str:
        """Return the address of the page of a row."""
        raise NotImplementedError

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[DeclaredChangeList]:
        url_for_result = staticmethod(self.row_url)
        return type("PageChangeList", (DeclaredChangeList,), {"url_for_result": url_for_result})

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm(self.permission)

    def record(
        self, request: HttpRequest, action: str, row: Model | None = None, **detail: Any
    ) -> None:
        """Log an action on the list."""
        log_list_access(request, action, None, self.list_name, **detail)
