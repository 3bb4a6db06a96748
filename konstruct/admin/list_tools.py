"""Tools of all lists: a range of dates, and export of the filtered rows."""

import csv
import json
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from datetime import time as clock
from typing import Any, ClassVar, Final

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import flatten
from django.core.exceptions import PermissionDenied
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import DateTimeField, GeneratedField, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.dateparse import parse_date
from django.utils.http import content_disposition_header
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from pgvector.django import BitField, VectorField

from konstruct.admin.lists import model_page
from konstruct.api.http.lists import keyset_condition
from tenants.admin.recorded_admin import RecordedAdmin
from tenants.admin.sites import ExtraContext
from tenants.audit.changes import is_secret

EXPORT: Final = "audit.export_list"
EXPORT_ROUTE: Final = "export/<str:kind>/"
# Rows of one statement of an export.
BATCH_ROWS: Final = 1_000
# A cell that begins so, after characters that spreadsheets skip, is a formula to them.
FORMULA_PREFIXES: Final = tuple("=+-@\t\r\n＝＋－＠")
_SKIPPED_CATEGORIES: Final = ("C", "Z", "M")
FIRST_YEAR: Final = 1970


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
        label = " to ".join(self.chosen.values())[:40]
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


def list_tools(
    request: HttpRequest, *, has_time: bool = True, paging: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the values of list_tools.html for the list at the request's address.

    Args:
        request: the request of the list.
        has_time: whether the list has a range of dates.
        paging: the parameters of a place in the list, which another range begins without.
    """
    dates_and_paging = {"from", "to", *paging}
    kinds = EXPORT_FORMATS if request.user.has_perm(EXPORT) else ()
    return {
        "has_time": has_time,
        "from": request.GET.get("from", "")[:10],
        "to": request.GET.get("to", "")[:10],
        "others": [item for item in request.GET.items() if item[0] not in dates_and_paging],
        "query": request.GET.urlencode(),
        "kinds": [(kind.upper(), f"{request.path}export/{kind}/") for kind in kinds],
    }


def check_export(request: HttpRequest, kind: str) -> None:
    """Check that the user may export lists, and that there is such a format.

    Raises:
        Http404: there is no such format.
        PermissionDenied: the user may not export lists.
    """
    if kind not in EXPORT_FORMATS:
        raise Http404("Lists are exported as csv or json.")
    if not request.user.has_perm(EXPORT):
        raise PermissionDenied


def export_response(
    kind: str, name: str, columns: list[str], rows: Iterable[tuple[Any, ...]]
) -> StreamingHttpResponse:
    """Return a file of rows as CSV or JSON, which is sent in pieces.

    Args:
        kind: a key of EXPORT_FORMATS.
        name: the beginning of the file's name.
        columns: the names of the columns.
        rows: the values of each row.
    """
    content_type, write = EXPORT_FORMATS[kind]
    name = f"{name}-{timezone.localtime():%Y-%m-%d}.{kind}"
    return StreamingHttpResponse(
        write(columns, rows),
        content_type=content_type,
        headers={"Content-Disposition": content_disposition_header(True, name) or ""},
    )


class ListToolsAdmin(RecordedAdmin):
    """The list of a model with a range of dates and export."""

    list_before_template = "konstruct/list_tools.html"
    time_column: ClassVar[str] = "created_at"
    """Column of the range of dates, and of the order of an export."""

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
        paging = {"p"} if self.get_search_fields(request) else {"p", "q"}
        tools = list_tools(request, has_time=self.has_date_range(), paging=paging)
        return super().changelist_view(request, {**(extra_context or {}), "list_tools": tools})

    def export_view(self, request: HttpRequest, kind: str) -> HttpResponseBase:
        """Send the filtered rows as a file."""
        check_export(request, kind)
        if not self.has_view_permission(request):
            raise PermissionDenied
        try:
            rows = self.get_changelist_instance(request).queryset
        except IncorrectLookupParameters:
            return redirect(model_page(self.model, "changelist"))
        columns = self.export_columns(request)
        order = [self.time_column, "pk"] if self.has_date_range() else ["pk"]
        self.record(request, "export", asked=request.GET.dict(), format=kind)
        return export_response(
            kind, self.opts.model_name or "", columns, in_batches(rows, columns, order)
        )

    def export_columns(self, request: HttpRequest) -> list[str]:
        """Return the columns of an export: those that the list and the page of a row show."""
        columns = (getattr(column, "__name__", column) for column in self.get_list_display(request))
        shown_names = {*flatten(self.get_fields(request)), *columns}
        excluded_types = (VectorField, BitField, GeneratedField)
        return [
            column.attname
            for column in self.opts.concrete_fields
            if (column.name in shown_names or column.attname in shown_names or column.primary_key)
            and not (is_secret(column.name) or isinstance(column, excluded_types))
        ]


def in_batches(
    rows: QuerySet[Any], columns: list[str], order: list[str]
) -> Iterator[tuple[Any, ...]]:
    """Yield the values of rows, newest first, in batches.

    Each batch is one statement, so that a slow reader holds no transaction open.
    """
    pk = rows.model._meta.pk.attname
    names = [pk if name == "pk" else name for name in order]
    selected = list(dict.fromkeys([*columns, *names]))
    rows = rows.order_by(*(f"-{name}" for name in names)).values_list(*selected)
    position: list[Any] = []
    # Ends: each batch begins after the one before, and one that is not full is the last.
    while True:
        following = (
            rows.filter(keyset_condition(rows, names, position, descending=True))
            if position
            else rows
        )
        batch = list(following[:BATCH_ROWS])
        for row in batch:
            yield row[: len(columns)]
        if len(batch) < BATCH_ROWS:
            return
        position = [batch[-1][selected.index(name)] for name in names]


class _Echo:
    """A file for csv.writer: `write` returns its argument."""

    def write(self, text: str) -> str:
        return text


def as_csv(columns: list[str], rows: Iterable[tuple[Any, ...]]) -> Iterator[str]:
    """Yield lines of CSV. A text that a spreadsheet would calculate gets an apostrophe."""
    writer = csv.writer(_Echo())
    yield writer.writerow(columns)
    for row in rows:
        yield writer.writerow([_csv_cell(value) for value in row])


def _csv_cell(value: Any) -> Any:
    if isinstance(value, dict | list):
        value = json.dumps(value, cls=DjangoJSONEncoder, ensure_ascii=False)
    elif isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str):
        begins = next(
            (sign for sign in value if unicodedata.category(sign)[0] not in _SKIPPED_CATEGORIES), ""
        )
        if value.startswith(FORMULA_PREFIXES) or begins in FORMULA_PREFIXES:
            return f"'{value}"
    return value


def as_json(columns: list[str], rows: Iterable[tuple[Any, ...]]) -> Iterator[str]:
    """Yield an array of objects, an object a line."""
    separator = "[\n"
    for row in rows:
        document = dict(zip(columns, row, strict=True))
        yield separator + json.dumps(document, cls=_Encoder, ensure_ascii=False)
        separator = ",\n"
    yield "\n]\n" if separator != "[\n" else "[]\n"


class _Encoder(DjangoJSONEncoder):
    """Moments with all of their digits."""

    def default(self, o: Any) -> Any:
        return o.isoformat() if isinstance(o, datetime) else super().default(o)


WriteRows = Callable[[list[str], Iterable[tuple[Any, ...]]], Iterator[str]]
EXPORT_FORMATS: Final[dict[str, tuple[str, WriteRows]]] = {
    "csv": ("text/csv; charset=utf-8", as_csv),
    "json": ("application/json", as_json),
}
