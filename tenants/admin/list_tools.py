"""Tools of all lists: a range of dates, and export of the filtered rows."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, time as clock, timedelta
from html import unescape
from typing import Any, ClassVar, Final

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import lookup_field
from django.core.exceptions import PermissionDenied
from django.db.models import DateTimeField, GeneratedField, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.dateparse import parse_date
from django.utils.html import strip_tags
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _
from pgvector.django import BitField, VectorField

from tenants.admin.exports import export_response, list_url, may_export, request_export
from tenants.admin.recorded_admin import RecordedAdmin
from tenants.admin.sites import ExtraContext
from tenants.audit.changes import is_secret

EXPORT_ROUTE: Final = "export/"
# Rows of one statement of an export. The prompt of a row can have 100 kB.
BATCH_ROWS: Final = 200
FIRST_YEAR: Final = 1970
UNREADABLE_FIELDS: Final = (VectorField, BitField, GeneratedField)


def is_readable(field: Any) -> bool:
    """Return whether pages and exports show a column: not secrets, vectors and the tenant."""
    is_hidden = is_secret(field.name) or isinstance(field, UNREADABLE_FIELDS)
    return not is_hidden and field.name != "tenant_id"


class DateRangeFilter(admin.ListFilter):
    """Rows of a range of days, in the time zone of the user who looks."""

    title = _("date")
    model_admin: "ListToolsAdmin"

    def __init__(
        self, request: HttpRequest, params: dict[str, Any], model: Any, model_admin: Any
    ) -> None:
        super().__init__(request, params, model, model_admin)
        self.column = model_admin.time_column
        raw_values = {name: params.pop(name, None) for name in ("from", "to")}
        self.chosen: dict[str, str] = {
            name: values[-1] for name, values in raw_values.items() if values
        }

    def has_output(self) -> bool:
        return bool(self.chosen)

    def expected_parameters(self) -> list[str | None]:
        return ["from", "to"]

    def choices(self, changelist: Any) -> Iterator[Any]:
        every = changelist.get_query_string(remove=self.expected_parameters())
        yield {"selected": False, "query_string": every, "display": gettext("All")}
        label = " – ".join(self.chosen.values())[:40]
        yield {"selected": True, "query_string": "?", "display": label}

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        since, until = date_range(self.chosen)
        if since:
            queryset = queryset.filter(**{f"{self.column}__gte": since})
        if until:
            queryset = queryset.filter(**{f"{self.column}__lt": until})
        return queryset


def date_range(days: Mapping[str, str]) -> tuple[datetime | None, datetime | None]:
    """Return the beginning of the day `from` and the end of the day `to`; None without a day."""
    last = parse_day(days.get("to", ""))
    return parse_day(days.get("from", "")), last and last + timedelta(days=1)


def parse_day(text: str) -> datetime | None:
    """Return the beginning of a day in the current time zone; None for any other text."""
    try:
        day = parse_date(text)
    except ValueError:
        return None
    if day is None or not FIRST_YEAR <= day.year < 9999:
        return None
    return datetime.combine(day, clock.min, timezone.get_current_timezone())


class ListToolsAdmin(RecordedAdmin):
    """The list of a model with a range of dates and export."""

    list_before_template = "konstruct/list_tools.html"
    time_column: ClassVar[str] = "created_at"
    """Column of the range of dates, and of the order of an export."""
    list_name: ClassVar[str] = ""
    """The page of the list; empty: the model's own list."""

    def has_date_range(self) -> bool:
        """Return whether the model has the column."""
        return any(
            isinstance(field, DateTimeField) and field.name == self.time_column
            for field in self.opts.concrete_fields
        )

    def get_list_filter(self, request: HttpRequest) -> Any:
        filters = super().get_list_filter(request)
        return (*filters, DateRangeFilter) if self.has_date_range() else filters

    def get_urls(self) -> list[URLPattern]:
        name = f"{self.opts.app_label}_{self.opts.model_name}_export"
        export = path(EXPORT_ROUTE, self.admin_site.admin_view(self.export_view), name=name)
        return [export, *super().get_urls()]

    def changelist_view(
        self, request: HttpRequest, extra_context: ExtraContext = None
    ) -> HttpResponse:
        """Show the list with the tools."""
        # Another range of dates begins at the first page.
        left = {"from", "to", "p"} if self.get_search_fields(request) else {"from", "to", "p", "q"}
        exported = self.export_columns(request)
        left_out = [
            str(field.verbose_name)
            for field in self.opts.concrete_fields
            if field.attname not in exported and field.name != "tenant_id"
        ]
        export = f"{request.path}{EXPORT_ROUTE}?{request.GET.urlencode()}"
        tools = {
            "has_time": self.has_date_range(),
            "from": request.GET.get("from", "")[:10],
            "to": request.GET.get("to", "")[:10],
            "others": [item for item in request.GET.items() if item[0] not in left],
            "export": export if may_export(request) else "",
            "left_out": ", ".join(left_out),
        }
        return super().changelist_view(request, {**(extra_context or {}), "list_tools": tools})

    def export_view(self, request: HttpRequest) -> HttpResponseBase:
        """Enqueue the export of the filtered rows. Operators get the file immediately."""
        if request.method != "POST" or not self.has_view_permission(request):
            raise PermissionDenied
        try:
            if getattr(request, "tenant", None) is not None:
                self.get_changelist_instance(request)
                return request_export(request, self.list_name or self.opts.label_lower)
            columns, rows = self.exported(request)
        except IncorrectLookupParameters:
            return redirect(list_url(self.list_name or self.opts.label_lower))
        self.record(request, "export", asked=request.GET.dict(), format="csv")
        return export_response(self.opts.model_name or "", columns, rows)

    def exported(self, request: HttpRequest) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
        """Return the names of the columns, and the filtered rows, newest first."""
        rows = self.get_changelist_instance(request).queryset
        columns = self.export_columns(request)
        return list(columns), self._exported_rows(request, rows, columns.values())

    def export_columns(self, request: HttpRequest) -> dict[str, Any]:
        """Return the columns of an export: the stored ones, and those that the list computes.

        Returns:
            For each name, the name of the field, or the column of the list.
        """
        stored = {
            column.attname: column.attname
            for column in self.opts.concrete_fields
            if is_readable(column)
        }
        fields = {field.name for field in self.opts.concrete_fields}
        computed = {
            getattr(column, "__name__", column): column for column in self.get_list_display(request)
        }
        if "__str__" in computed:
            computed[self.opts.model_name or ""] = computed.pop("__str__")
        return stored | {
            name: computed[name] for name in computed if name not in {*fields, *stored}
        }

    def _exported_rows(
        self, request: HttpRequest, rows: QuerySet[Any], columns: Iterable[Any]
    ) -> Iterator[tuple[Any, ...]]:
        order = self.time_column if self.has_date_range() else "pk"
        unreadable = [
            field.name
            for field in self.opts.concrete_fields
            if isinstance(field, UNREADABLE_FIELDS)
        ]
        for batch in in_batches(rows.defer(None).defer(*unreadable), order):
            self.prepare_rows(request, batch)
            for row in batch:
                yield tuple(self._exported_value(row, column) for column in columns)

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        """Read what the columns of the list need of these rows."""

    def _exported_value(self, row: Any, column: Any) -> Any:
        if isinstance(column, str) and column in row.__dict__:
            return row.__dict__[column]
        value = lookup_field(column, row, self)[2]
        # A label with a colour is a pair, the colour first.
        text = value[1] if isinstance(value, tuple) else value
        return unescape(strip_tags(text)) if isinstance(text, SafeString) else text


def in_batches(
    rows: QuerySet[Any], first: str, last: str = "pk", *, is_ascending: bool = False
) -> Iterator[list[Any]]:
    """Yield rows, by default the newest first, in lists of at most BATCH_ROWS.

    Each list is one statement, so that a slow reader holds no transaction open.

    Args:
        rows: the rows.
        first: the column of the order.
        last: a unique column, which orders rows that are equal in the first one.
        is_ascending: whether the oldest are first.
    """
    sign, after = ("", "gt") if is_ascending else ("-", "lt")
    rows = following = rows.order_by(f"{sign}{first}", f"{sign}{last}")
    # Ends: each batch begins after the one before, and one that is not full is the last.
    while batch := list(following[:BATCH_ROWS]):
        yield batch
        if len(batch) < BATCH_ROWS:
            return
        end = {name: getattr(batch[-1], name) for name in (first, last)}
        # An index scan starts at the bound of the first column; the rest filters its rows.
        following = rows.filter(
            Q(**{f"{first}__{after}": end[first]}) | Q(**{f"{last}__{after}": end[last]}),
            **{f"{first}__{after}e": end[first]},
        )
