"""The base of a model's pages in both admins: records, a range of dates, export, and columns."""

import json
from collections.abc import Iterable, Iterator
from datetime import datetime, time as clock, timedelta
from decimal import Decimal
from html import unescape
from typing import Any, ClassVar, Final

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import lookup_field
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Permission
from django.core.exceptions import PermissionDenied
from django.db import DataError
from django.db.models import DateTimeField, GeneratedField, Model, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils import dateparse, formats, html, timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _
from pgvector.django import BitField, VectorField
from unfold.admin import ModelAdmin

from tenants import error_texts, transaction
from tenants.admin import exports, sites
from tenants.audit.changes import NO_STATE, RowState, is_secret, row_state
from tenants.context import execute

# Permissions that Django creates for each model.
_OF_A_MODEL: Final = {
    "add": _("Can add %(models)s"),
    "change": _("Can change %(models)s"),
    "delete": _("Can delete %(models)s"),
    "view": _("Can view %(models)s"),
}


class PermissionsField(forms.ModelMultipleChoiceField):
    """Permissions of a person or of a role, in the language of the reader."""

    def label_from_instance(self, obj: Any) -> str:
        action, _separator, model_name = obj.codename.partition("_")
        model, name = obj.content_type.model_class(), gettext(obj.name)
        if model and model_name == model._meta.model_name and action in _OF_A_MODEL:
            name = _OF_A_MODEL[action] % {"models": model._meta.verbose_name_plural}
        return f"{obj.content_type} | {name}"


class DeclaredChangeList(ChangeList):
    """A list with the filters that it declares.

    Django takes any lookup of any column from the address, also of columns that no page shows.
    Other lookups and impossible values are not applied: Django shows the whole list, with a
    message.
    """

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        try:
            super().__init__(request, *args, **kwargs)
        except (IncorrectLookupParameters, DataError, OverflowError, ValueError) as error:
            text = gettext("This list has no such filter, or no such value of it: %(what)s")
            messages.warning(request, text % {"what": request.GET.urlencode()[:200]})
            raise IncorrectLookupParameters from error

    def get_filters(self, request: HttpRequest) -> Any:
        found = super().get_filters(request)
        if undeclared := found[2]:
            raise IncorrectLookupParameters(f"undeclared: {', '.join(undeclared)}")
        return found

    def url_for_result(self, result: Any) -> str:
        """Return the address of a row's page: `row_url` of the admin, or else the form."""
        row_url = getattr(self.model_admin, "row_url", super().url_for_result)
        return str(row_url(result))


READ_ONLY: Final = frozenset({"add", "change", "delete"})


class RecordedPeopleAdmin(UserAdmin):
    """Django's pages of users. List it before RecordedAdmin among the base classes."""

    record_view: Any

    def user_change_password(
        self, request: HttpRequest, id: str, form_url: str = ""
    ) -> HttpResponse:
        """Set a user's password, and log it in the same transaction."""
        with transaction.atomic():
            response: HttpResponse = super().user_change_password(request, id, form_url)
        return self.record_view(request, response)


def _reload(row: Model) -> Model:
    """Return the row read again, with values that services and the database have set."""
    return type(row)._default_manager.get(pk=row.pk)


class Colours(dict[str, str]):
    """Colours by the English word of a badge, found by the word in the reader's language too."""

    def __missing__(self, word: str) -> str:
        for key, colour in self.items():
            if gettext(key) == word:
                return colour
        raise KeyError(word)

    def __contains__(self, word: object) -> bool:
        return super().__contains__(word) or any(gettext(key) == word for key in self)


BADGES: Final = Colours(
    {
        **dict.fromkeys(("active", "current", "delivered", "done", "processed"), "success"),
        **dict.fromkeys(("resolved", "up to date", "valid"), "success"),
        **dict.fromkeys(("deactivated", "ended", "expired", "held", "open"), "warning"),
        **dict.fromkeys(("suspended", "to be migrated", "waits for the owner"), "warning"),
        **dict.fromkeys(("could not be set up", "failed"), "danger"),
        **dict.fromkeys(("failed, will be tried again", "rejected", "retracted"), "danger"),
        **dict.fromkeys(("revoked", "server is down", "to be deleted"), "danger"),
        **dict.fromkeys(("being done", "closed", "invited", "proposed", "queued"), "info"),
    }
)
"""The colours of states. Other words have a grey badge."""


def format_number(number: float | Decimal, decimals: int = 0) -> str:
    """Return a number with the separators of the reader's language, rounded to some decimals."""
    # Django's function cuts decimals off.
    return str(formats.number_format(f"{number:.{decimals}f}", decimals, force_grouping=True))


def time_text(moment: datetime) -> str:
    """Return a time as templates show it: `1 Jul 2026, 14:30:15 CEST`."""
    return formats.date_format(timezone.localtime(moment), "DATETIME_FORMAT")


class ChoiceFilter(admin.SimpleListFilter):
    """A filter with known values: a subclass declares `values` (or `lookups`) and `narrow`."""

    values: ClassVar[dict[str, Any]]
    """The label of each value of the parameter."""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return list(self.values.items())

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        value = self.value()
        return self.narrow(queryset, value) if value in dict(self.lookup_choices) else queryset

    def narrow(self, rows: Any, value: str) -> Any:
        """Return the rows that match a value."""
        raise NotImplementedError


MAX_CELL_CHARACTERS = 120


class EventColumns:
    """Columns and fields of an admin page of logged events."""

    ordering = ("-id",)
    sortable_by = ()

    @admin.display(description=_("Subject"))
    def subject_label(self, event: Any) -> str:
        """The kind of thing, which the log has in English."""
        return gettext(event.subject)

    @admin.display(description=_("Before → after, or parameters"))
    def changed(self, event: Any) -> str:
        """The changed fields or the parameters, abridged."""
        changes = [f"{name}: {old} → {new}" for name, old, new in _fields(event.detail)]
        others = [f"{name}: {_value_text(value)}" for name, value in event.detail.items() if value]
        text = "; ".join(changes or others)
        return text if len(text) <= MAX_CELL_CHARACTERS else f"{text[:MAX_CELL_CHARACTERS]}…"


def _fields(detail: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return each changed field with its values before and after, but not those of secrets."""
    before, after = detail.get("before") or {}, detail.get("after") or {}
    names = [*before, *(name for name in after if name not in before)]
    values = [(name, _value_text(before.get(name)), _value_text(after.get(name))) for name in names]
    secrets = detail.get("withheld", [])
    return [*values, *((name, gettext("not shown"), gettext("changed")) for name in secrets)]


def _value_text(value: Any) -> str:
    if value in (None, "", [], {}):
        return "–"
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    try:
        moment = datetime.fromisoformat(value)
        return time_text(moment) if moment.tzinfo else value
    except (ValueError, OverflowError):  # another text, or no time in the reader's time zone
        return value


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
    model_admin: "RecordedAdmin"

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

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        since, last = (parse_day(self.chosen.get(name, "")) for name in ("from", "to"))
        if since:
            queryset = queryset.filter(**{f"{self.column}__gte": since})
        if last:
            queryset = queryset.filter(**{f"{self.column}__lt": last + timedelta(days=1)})
        return queryset


def parse_day(text: str) -> datetime | None:
    """Return the beginning of a day in the current time zone; None for any other text."""
    try:
        day = dateparse.parse_date(text)
    except ValueError:
        return None
    if day is None or not FIRST_YEAR <= day.year < 9999:
        return None
    return datetime.combine(day, clock.min, timezone.get_current_timezone())


class RecordedAdmin(ModelAdmin):
    """A model's pages, and its list with a range of dates and export.

    Each row that they show and each change is logged.

    A view is recorded when the response is a page with status 200. A change is recorded in its
    transaction, with the values before and after.
    """

    form = error_texts.TranslatedModelForm
    refused: ClassVar[frozenset[str]] = frozenset()
    """Actions that are refused to every user: "add", "change", "delete"."""
    redirects_after_add = False
    """Whether saving a new row opens its page: then the form has one button to save it."""
    actions_by_row: tuple[str, ...] = ()
    """Actions that call other servers, and so have a transaction for each row."""
    log_list: str
    """The list of the log of the site."""
    list_before_template = "konstruct/list_tools.html"
    time_column: ClassVar[str] = "created_at"
    """Column of the range of dates, and of the order of an export."""
    list_name: ClassVar[str] = ""
    """The page of the list; empty: the model's own list."""

    def record(
        self, request: HttpRequest, action: str, row: Model | None = None, **detail: Any
    ) -> None:
        """Log an action on a row, or on the list."""
        raise NotImplementedError

    def record_list(
        self, request: HttpRequest, action: str, rows: Iterable[Any], **detail: Any
    ) -> None:
        """Log that rows were listed, searched or exported, with the filters."""
        self.record(request, action, asked=request.GET.dict(), **detail)

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return "add" not in self.refused and bool(super().has_add_permission(request, *args))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return "change" not in self.refused and bool(super().has_change_permission(request, obj))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return "delete" not in self.refused and bool(super().has_delete_permission(request, obj))

    def state_of(self, row: Model) -> RowState:
        """Return the values of a row for the log."""
        return row_state(row, many=True)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return DeclaredChangeList

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show the form, with the buttons that apply."""
        if kwargs.get("add") and self.redirects_after_add:
            context |= {"show_save_and_add_another": False, "show_save_and_continue": False}
        return super().render_change_form(request, context, *args, **kwargs)

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Show or change a row."""
        return self.record_view(request, super().changeform_view(request, *args, **kwargs))

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Ask for confirmation, or delete a row."""
        return self.record_view(request, super().delete_view(request, *args, **kwargs))

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: sites.ExtraContext = None
    ) -> HttpResponse:
        """Show the entries of the log about a row, in place of Django's second log."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        return redirect(reverse(f"admin:{self.log_list}_changelist", query={"q": object_id}))

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Name permissions in the language of the reader."""
        if db_field.related_model is Permission:
            kwargs["form_class"] = PermissionsField
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Model | None:
        """Return the row; of a POST request, with the values before the change as `was`.

        A second POST request for the row waits for the first one, and sees what that has saved.
        """
        if request.method == "POST":
            lock = f"form {self.opts.label_lower} {object_id}"
            execute("SELECT public.wait_for_tenant_lock(%s)", [lock])
        found: Any = super().get_object(request, object_id, from_field)
        if found is None and self.has_view_or_change_permission(request):
            raise Http404(f"There is no {self.opts.verbose_name_raw} {object_id!r}.")
        if found is not None and request.method == "POST":
            found.was = self.state_of(found)
        return found

    def response_action(self, request: HttpRequest, queryset: QuerySet[Any]) -> Any:
        """Do an action with the chosen rows, in one transaction."""
        if request.POST.get("action") in self.actions_by_row:
            return super().response_action(request, queryset)
        with transaction.atomic():
            return super().response_action(request, queryset)

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        """Log the addition, in the form's transaction after its relations are saved."""
        self.record(request, "create", obj, after=self.state_of(_reload(obj)))

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        """Log the change, in the form's transaction after its relations are saved."""
        was = getattr(obj, "was", NO_STATE)
        self.record(request, "edit", obj, before=was, after=self.state_of(_reload(obj)))

    def log_deletions(self, request: HttpRequest, queryset: QuerySet[Any]) -> Any:
        """Log each row, in the transaction of the form or of the action that deletes it."""
        for obj in queryset:
            self.record(request, "delete", obj, before=self.state_of(obj))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Name the selected rows only: those deleted with them need no further permission."""
        return [str(row) for row in objs], {}, set(), []

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Delete each row as its form does, which calls a service in some subclasses."""
        for obj in queryset:
            self.delete_model(request, obj)

    def record_view(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Record the row that the response is going to show."""
        context = getattr(response, "context_data", None) or {}
        shown = context.get("original") or context.get("object")
        if response.status_code == 200 and isinstance(shown, Model) and shown.pk is not None:
            self.record(request, "view", shown)
        return response

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
        self, request: HttpRequest, extra_context: sites.ExtraContext = None
    ) -> HttpResponse:
        """Show the list with its tools, or search it."""
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
            "export": export if exports.may_export(request) else "",
            "left_out": ", ".join(left_out),
        }
        extra_context = {**(extra_context or {}), "list_tools": tools}
        response: HttpResponse = super().changelist_view(request, extra_context)
        if response.status_code == 200:
            action = "search" if request.GET.get("q") else "list"
            shown = (getattr(response, "context_data", None) or {}).get("cl")
            self.record_list(request, action, [] if shown is None else [*shown.result_list])
        return response

    def export_view(self, request: HttpRequest) -> HttpResponseBase:
        """Enqueue the export of the filtered rows. Operators get the file immediately."""
        if request.method != "POST" or not self.has_view_permission(request):
            raise PermissionDenied
        try:
            if getattr(request, "tenant", None) is not None:
                self.get_changelist_instance(request)
                return exports.request_export(request, self.list_name or self.opts.label_lower)
            columns, rows = self.exported(request)
        except IncorrectLookupParameters:
            return redirect(exports.list_url(self.list_name or self.opts.label_lower))
        self.record(request, "export", asked=request.GET.dict(), format="csv")
        return exports.export_response(self.opts.model_name or "", columns, rows)

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
        return unescape(html.strip_tags(text)) if isinstance(text, SafeString) else text


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
