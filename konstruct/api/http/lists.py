"""Filters and pages of lists. Filters are those of django-filter, with the same fields as bodies.

A page begins after a row, not after a number of rows. So the last page is as fast as the first, and
new rows do not shift the pages.
"""

import copy
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Self

import django_filters
from django.core import signing, validators
from django.core.exceptions import ValidationError as FieldInvalid
from django.db.models import Q, QuerySet
from rest_framework import pagination, serializers
from rest_framework.filters import BaseFilterBackend
from rest_framework.request import Request
from rest_framework.utils.urls import replace_query_param

from konstruct.api.auth.authentication import Caller, caller_of
from konstruct.api.http import bodies, problems
from memory.conversations.transcript import filter_by_metadata
from tenants.context import current_tenant_id


class Filter(django_filters.Filter):
    """A filter with a field of REST framework: `Filter(ChannelIdField, "Only of this thread.")`.

    Args:
        field: the class of the field.
        help_text: for the OpenAPI description.
        lookup: the lookup of Django. Default: the filter's name.
        method: the method of the FilterSet that filters.
        required: whether the parameter must be given.
        options: further options of the field.
    """

    def __init__(
        self,
        field: type[serializers.Field],
        help_text: str,
        *,
        lookup: str = "",
        method: str | None = None,
        required: bool = False,
        **options: Any,
    ) -> None:
        name, _, expression = lookup.rpartition("__")
        super().__init__(name or None, expression or None, method=method)
        self.serializer_field = field(required=required, help_text=help_text, **options)

    def __deepcopy__(self, memo: Any) -> Self:
        """Return a shallow copy, since no request changes the field, with a method of its own."""
        duplicate = copy.copy(self)
        duplicate.method = self.method
        return duplicate


class FlagField(serializers.ChoiceField):
    """A filter with two words as its choices: the first means true, the second false."""

    def to_internal_value(self, data: Any) -> Any:
        """Return whether the first word was sent."""
        return bool(super().to_internal_value(data) == next(iter(self.choices)))


class ChoiceFilter(Filter):
    """A filter with a fixed set of values."""

    choice_field: type[serializers.Field] = serializers.ChoiceField

    def __init__(self, help_text: str, choices: Any, **options: Any) -> None:
        super().__init__(self.choice_field, help_text, choices=choices, **options)


class FlagFilter(ChoiceFilter):
    """A filter with two words as its choices: the first means true, the second false."""

    choice_field = FlagField


class FilterSet(django_filters.FilterSet):
    """The filters of a list. `data` has the values that the view has checked by `query()`."""

    @classmethod
    def query(cls) -> type[bodies.StrictSerializer]:
        """Return the serializer of the query parameters."""
        fields = {name: one.serializer_field for name, one in cls.base_filters.items()}
        return type(f"{cls.__name__}Query", (bodies.StrictSerializer,), fields)

    @property
    def caller(self) -> Caller:
        """The program or person of the request."""
        return caller_of(self.request)

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows that match all filters of the request."""
        for name, value in self.data.items():
            queryset = self.filters[name].filter(queryset, value)
        return queryset

    def of_agent(self, rows: QuerySet[Any], name: str, value: str) -> QuerySet[Any]:
        """Filter by the name or id of an agent, in the column of the filter's name."""
        column = "agent_id" if name == "agent" else f"{name}_id"
        return rows.filter(**{column: self.caller.agent(value).id})

    def of_user(self, rows: QuerySet[Any], name: str, value: str) -> QuerySet[Any]:
        """Filter by a user within the binding of the key."""
        return rows.filter(user_id=self.caller.user(value))


class AgentUserFilter(FilterSet):
    """Filters by agent and user."""

    agent = Filter(bodies.ChannelIdField, "Only of this agent (name or id).", method="of_agent")
    user_id = Filter(bodies.ChannelIdField, "Only of this user.", method="of_user")


class ThreadFilter(AgentUserFilter):
    """Filters by agent, user and conversation."""

    thread_id = Filter(bodies.ChannelIdField, "Only of this conversation.")


class MemoryOwnerFilter(FilterSet):
    """Filters by agent and user, both required."""

    agent = Filter(bodies.ChannelIdField, "Agent (name or id).", method="of_agent", required=True)
    user_id = Filter(bodies.ChannelIdField, "The user.", method="of_user", required=True)


class MetadataFilter(FilterSet):
    """Filters of messages by their metadata."""

    filters = Filter(bodies.FiltersTextField, bodies.FILTERS_AS_TEXT, method="of_metadata")

    def of_metadata(self, rows: QuerySet[Any], name: str, value: Any) -> QuerySet[Any]:
        """Filter by conditions on the metadata."""
        return filter_by_metadata(rows, value)


class TimeRangeFilter(FilterSet):
    """Filters by the time of creation."""

    since = Filter(
        bodies.AwareDateTimeField,
        "Only from this moment on.",
        lookup="created_at__gte",
    )
    until = Filter(
        bodies.AwareDateTimeField,
        "Only before this moment.",
        lookup="created_at__lt",
    )


class FilterBackend(BaseFilterBackend):
    """Applies the filters that the view's operation declares."""

    def filter_queryset(self, request: Request, queryset: Any, view: Any) -> Any:
        """Return the filtered rows of a list."""
        filterset_class = view.operation and view.operation.filters
        if filterset_class is None:
            return queryset
        return filterset_class(view.query, queryset, request=request).filter_queryset(queryset)


CURSOR = re.compile(r"^[A-Za-z0-9_.-]+\Z")
CURSOR_TEXT = validators.RegexValidator(CURSOR, "Use `next` or `previous` unchanged.")
Position = list[str]


class CursorPagination(pagination.CursorPagination):
    """REST framework's CursorPagination, with signed cursors by every column of the order.

    REST framework compares one column and counts rows with equal values, at most 1,000; an import
    can have more messages with one time. A cursor is of one tenant, list and order.

    A view declares `ordering`, the columns of the default order, of which the last one is unique,
    and `ordering_fields`, the columns that a caller may choose. All columns of an order are
    ascending, or all are descending (with a minus).
    """

    page_size = 50
    page_size_query_param = "limit"
    max_page_size = 200
    ordering_query_param = "ordering"
    ordering: Any
    next_position: Any = None
    previous_position: Any = None

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        """Return the rows of the page that the request asks for."""
        self.address = request.build_absolute_uri()
        return self.rows(
            queryset,
            list_name=request.path,
            ordering=self.get_ordering(request, queryset, view),
            limit=self.get_page_size(request),
            cursor=request.query_params.get(self.cursor_query_param),
        )

    def rows(
        self,
        queryset: Any,
        *,
        list_name: str,
        ordering: Sequence[str],
        limit: int,
        cursor: str | None = None,
    ) -> list[Any]:
        """Return the rows of a page. Cursors of a list with another `list_name` are refused."""
        self.ordering, self.page_size = ordering, limit
        salt = f"konstruct.api.cursor {current_tenant_id()} {list_name}"
        self.signer = signing.Signer(sep=".", salt=salt)
        position: Position | None = None
        backwards = False
        if cursor is not None:
            if not CURSOR.search(cursor):
                raise serializers.ValidationError({self.cursor_query_param: CURSOR_TEXT.message})
            try:
                order, direction, *position = self.signer.unsign_object(cursor)
            except (signing.BadSignature, ValueError) as error:
                raise problems.InvalidCursor from error
            if order != self.ordering[0]:
                raise problems.InvalidCursor
            backwards = direction == "previous"
        try:
            rows = self.rows_after(queryset, position, backwards=backwards)
        except (ValueError, FieldInvalid) as error:
            raise problems.InvalidCursor from error
        has_more, rows = len(rows) > self.page_size, rows[: self.page_size]
        if backwards:
            rows.reverse()
        if rows and (has_more or backwards):
            self.next_position = self._position_of(rows[-1])
        if rows and (has_more if backwards else position is not None):
            self.previous_position = self._position_of(rows[0])
        return rows

    def rows_after(self, queryset: Any, position: Position | None, *, backwards: bool) -> list[Any]:
        """Return one row more than a page holds, beginning after the position."""
        columns, descending = self._columns(), self.ordering[0].startswith("-") != backwards
        if position is not None:
            fields = [queryset.model._meta.get_field(column) for column in columns]
            values = [f.to_python(text) for f, text in zip(fields, position, strict=True)]
            queryset = queryset.filter(_after(columns, values, "lt" if descending else "gt"))
        order = [f"-{column}" if descending else column for column in columns]
        return list(queryset.order_by(*order)[: self.page_size + 1])

    def get_page_size(self, request: Request) -> int:
        """Return the size that the caller chose, or the default. Others are refused."""
        text = request.query_params.get(self.page_size_query_param, str(self.page_size))
        size = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
        if not 1 <= size <= self.max_page_size:
            hint = f"Give a whole number from 1 to {self.max_page_size}."
            raise serializers.ValidationError({self.page_size_query_param: hint})
        return size

    def get_ordering(self, request: Request, queryset: Any, view: Any) -> tuple[str, ...]:
        """Return the columns of the order that the caller chose, or of the default."""
        chosen = request.query_params.get(self.ordering_query_param, view.ordering[0])
        if chosen == view.ordering[0]:
            return tuple(view.ordering)
        if chosen not in self.choices(view):
            hint = f"Use one of: {', '.join(self.choices(view))}."
            raise serializers.ValidationError({self.ordering_query_param: hint})
        sign, unique = chosen[: chosen.startswith("-")], view.ordering[-1].lstrip("-")
        return tuple(dict.fromkeys([chosen, f"{sign}{unique}"]))

    def choices(self, view: Any) -> list[str]:
        """Return the orders of a view among which a caller may choose, the default first."""
        orders = [f"{sign}{name}" for name in view.ordering_fields for sign in ("-", "")]
        return sorted(orders, key=lambda order: order != view.ordering[0])

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """Return the query parameters for the OpenAPI description."""
        limit = {"type": "integer", "minimum": 1, "maximum": self.max_page_size}
        cursor = {"type": "string", "pattern": r"^[A-Za-z0-9_.-]+$", "minLength": 1}
        default = f"Default: `{view.ordering[0]}`."
        ordering = {"type": "string", "enum": self.choices(view), "minLength": 1}
        parameters = {
            "limit": (limit, f"Rows per page. Default: {self.page_size}."),
            "cursor": (cursor, "Pagination cursor: follow `next` and `previous`."),
            "ordering": (ordering, f"Sort order; a minus means descending. {default}"),
        }
        return [
            {"in": "query", "name": name, "schema": schema, "description": description}
            for name, (schema, description) in parameters.items()
            if name in self.parameters(view)
        ]

    def parameters(self, view: Any) -> tuple[str, ...]:
        """Return the names of the query parameters."""
        names = (self.page_size_query_param, self.cursor_query_param)
        return (*names, self.ordering_query_param) if view.ordering_fields else names

    def get_paginated_response_schema(self, schema: Any) -> dict[str, Any]:
        """Return the schema of a page."""
        link = {"type": ["string", "null"], "format": "uri"}
        return {
            "type": "object",
            "description": "A page of a list.",
            "properties": {
                "next": {**link, "description": "The page after this one."},
                "previous": {**link, "description": "The page before this one."},
                "results": schema,
            },
            "required": ["next", "previous", "results"],
        }

    def get_next_link(self) -> str | None:
        """Return the URL of the next page, or None."""
        return self._link(self.next_cursor())

    def get_previous_link(self) -> str | None:
        """Return the URL of the previous page, or None."""
        return self._link(self._cursor(self.previous_position, "previous"))

    def next_cursor(self) -> str | None:
        """Return the cursor of the page after this one, or None."""
        return self._cursor(self.next_position, "next")

    def _link(self, cursor: str | None) -> str | None:
        if cursor is None:
            return None
        return str(replace_query_param(self.address, self.cursor_query_param, cursor))

    def _cursor(self, position: Position | None, direction: str) -> str | None:
        if position is None:
            return None
        return str(self.signer.sign_object([self.ordering[0], direction, *position]))

    def _columns(self) -> list[str]:
        return [column.removeprefix("-") for column in self.ordering]

    def _position_of(self, row: Any) -> Position:
        values = [getattr(row, column) for column in self._columns()]
        return [
            value.isoformat() if isinstance(value, datetime) else str(value) for value in values
        ]


def _after(columns: Sequence[str], values: Sequence[Any], operator: str) -> Q:
    """Return the condition for rows after a position, by one or two columns."""
    first, value = columns[0], values[0]
    after_first = Q(**{f"{first}__{operator}": value})
    if len(columns) == 1:
        return after_first
    # An index scan starts at the bound of the first column; the rest filters its rows.
    from_first = Q(**{f"{first}__{operator}e": value})
    return from_first & (after_first | Q(**{f"{columns[1]}__{operator}": values[1]}))
