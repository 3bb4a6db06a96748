"""Lists: filters and cursor pagination.

A page begins after a row, not after a number of rows, so that the last page is as fast as the
first, and new rows do not shift the pages.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, ClassVar, TypeVar

from django.core import signing
from django.core.exceptions import ValidationError as FieldInvalid
from django.core.validators import RegexValidator
from django.db.models import Model, Q, QuerySet
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from konstruct.api.auth.permissions import Caller
from konstruct.api.http.bodies import (
    AwareDateTimeField,
    ChannelIdField,
    StrictCharField,
    StrictSerializer,
)
from tenants.context import current_tenant_id

M = TypeVar("M", bound=Model)


CURSOR_TEXT = RegexValidator(r"^[A-Za-z0-9_.-]+\Z", "Use `next` or `previous` unchanged.")
PAGE_SIZE = 50
MAX_PAGE_SIZE = 200

# Parameters of lists that are not lookups: those of the page, and filters by metadata.
NO_LOOKUPS = ("limit", "cursor", "ordering", "filters")

Position = list[str]


class AgentUserQuery(StrictSerializer):
    """Filters by agent and user."""

    agent = ChannelIdField(required=False, help_text="Only of this agent (name or id).")
    user_id = ChannelIdField(required=False, help_text="Only of this user.")


class MemoryOwner(StrictSerializer):
    """Names an agent and a user, both required."""

    agent = ChannelIdField(help_text="Name or id of the agent.")
    user_id = ChannelIdField(help_text="The user.")


class ConversationName(MemoryOwner):
    """Names a conversation."""

    thread_id = ChannelIdField(help_text="The conversation.")


class TimeRangeQuery(StrictSerializer):
    """Filters by the time of creation. The `source` of each field is a lookup of Django."""

    since = AwareDateTimeField(
        source="created_at__gte",
        required=False,
        help_text="Only from this moment on (with a time zone).",
    )
    until = AwareDateTimeField(
        source="created_at__lt",
        required=False,
        help_text="Only before this moment (with a time zone).",
    )


class FlagField(serializers.ChoiceField):
    """A filter with two words as its choices: the first means true, the second false."""

    def to_internal_value(self, data: Any) -> Any:
        """Return whether the first word was sent."""
        return bool(super().to_internal_value(data) == next(iter(self.choices)))


def apply_filters(
    rows: "QuerySet[M]",
    filters: Mapping[str, Any],
    caller: Caller,
    *,
    without: tuple[str, ...] = (),
) -> "QuerySet[M]":
    """Filter rows by the caller's binding and by the query parameters.

    Args:
        filters: validated query parameters. `agent` and `user_id` must be within the key's
            binding. Each other parameter is a lookup with the name of its field's `source`.
        without: parameters that the view applies itself.
    """
    rows = caller.rows(rows)
    for name, value in filters.items():
        if name == "agent":
            rows = rows.filter(agent_id=caller.agent(value).id)
        elif name == "user_id":
            rows = rows.filter(user_id=caller.user(value))
        elif name not in (*NO_LOOKUPS, *without):
            rows = rows.filter(**{name: value})
    return rows


class PageQuerySerializer(StrictSerializer):
    """Query parameters of every list."""

    limit = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_PAGE_SIZE,
        help_text=f"Rows per page. Default: {PAGE_SIZE}.",
    )
    cursor = StrictCharField(
        required=False,
        validators=[CURSOR_TEXT],
        help_text="Pagination cursor: follow `next` and `previous`.",
    )


class KeysetPagination(BasePagination):
    """Pages in an order that the caller may choose, by `ordering`.

    `orderings` has the columns of each order; the first order is the default. All columns of an
    order are ascending, or all are descending (with a minus), and the last one is unique.
    """

    orderings: ClassVar[Mapping[str, tuple[str, ...]]]
    request: Request
    list_name: str
    ordering: str
    limit: int
    next_position: Position | None = None
    previous_position: Position | None = None

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        """Return the rows of the page that the request asks for."""
        self.request = request
        query = request.query_params
        return self.page(
            queryset,
            list_name=request.path,
            ordering=query.get("ordering"),
            limit=int(query.get("limit", PAGE_SIZE)),
            cursor=query.get("cursor"),
        )

    def page(
        self,
        queryset: Any,
        *,
        list_name: str,
        limit: int,
        cursor: str | None = None,
        ordering: str | None = None,
    ) -> list[Any]:
        """Return the rows of a page. Cursors of a list with another `list_name` are refused."""
        self.list_name = list_name
        self.ordering = ordering or next(iter(self.orderings))
        self.limit = limit
        position, backwards = self._read_cursor(cursor)
        try:
            rows = self.rows_after(queryset, position, backwards=backwards)
        except (ValueError, FieldInvalid) as error:
            raise InvalidCursor() from error
        has_more, rows = len(rows) > self.limit, rows[: self.limit]
        if backwards:
            rows.reverse()
        if rows and (has_more or backwards):
            self.next_position = self.position_of(rows[-1])
        if rows and (has_more if backwards else position is not None):
            self.previous_position = self.position_of(rows[0])
        return rows

    def rows_after(self, queryset: Any, position: Position | None, *, backwards: bool) -> list[Any]:
        """Return one row more than a page holds, beginning after the position."""
        columns = self._columns()
        descending = self.is_descending() != backwards
        if position is not None:
            queryset = queryset.filter(
                keyset_condition(queryset, columns, position, descending=descending)
            )
        order = [f"-{column}" if descending else column for column in columns]
        return list(queryset.order_by(*order)[: self.limit + 1])

    def position_of(self, row: Any) -> Position:
        """Return the values of a row that determine its position."""
        values = [getattr(row, column) for column in self._columns()]
        return [
            value.isoformat() if isinstance(value, datetime) else str(value) for value in values
        ]

    def get_paginated_response(self, data: Any) -> Response:
        """Return the page with the URLs of the next and the previous page."""
        return Response(
            {
                "next": self._link(self.next_position, "next"),
                "previous": self._link(self.previous_position, "previous"),
                "results": data,
            }
        )

    def _columns(self) -> list[str]:
        return [column.removeprefix("-") for column in self.orderings[self.ordering]]

    def is_descending(self) -> bool:
        """Return whether the chosen order is descending."""
        return self.orderings[self.ordering][0].startswith("-")

    def _link(self, position: Position | None, direction: str) -> str | None:
        if position is None:
            return None
        cursor = self._cursor(position, direction)
        return str(replace_query_param(self.request.build_absolute_uri(), "cursor", cursor))

    def next_cursor(self) -> str | None:
        """Return the cursor of the page after this one."""
        return None if self.next_position is None else self._cursor(self.next_position, "next")

    def _cursor(self, position: Position, direction: str) -> str:
        return str(self._signer().sign_object([self.ordering, direction, *position]))

    def _read_cursor(self, cursor: str | None) -> tuple[Position | None, bool]:
        """Return the position of a cursor, and whether it leads to the previous page.

        Raises InvalidCursor for a cursor of another list, another tenant or another order.
        """
        if cursor is None:
            return None, False
        try:
            ordering, direction, *position = self._signer().unsign_object(cursor)
        except (signing.BadSignature, ValueError) as error:
            raise InvalidCursor() from error
        if ordering != self.ordering:
            raise InvalidCursor()
        return position, direction == "previous"

    def _signer(self) -> signing.Signer:
        return signing.Signer(
            sep=".", salt=f"konstruct.api.cursor {current_tenant_id()} {self.list_name}"
        )


class NewestFirst(KeysetPagination):
    """Messages by their time."""

    orderings = {
        "-created_at": ("-created_at", "-number"),
        "created_at": ("created_at", "number"),
    }


class ByCreation(KeysetPagination):
    """Rows by the time of their creation, newest first by default."""

    orderings = {"-created_at": ("-created_at", "-id"), "created_at": ("created_at", "id")}


class ByNumber(KeysetPagination):
    """Rows by their number, newest first."""

    orderings = {"-number": ("-number",)}


def ordering_field(pagination: type[KeysetPagination]) -> serializers.ChoiceField:
    """Return the query parameter by which the order of a list is chosen."""
    choices = list(pagination.orderings)
    return serializers.ChoiceField(
        choices=choices,
        required=False,
        help_text=f"Sort order; a minus means descending. Default: `{choices[0]}`.",
    )


@cache
def page_serializer(serializer: type[serializers.Serializer]) -> type[serializers.Serializer]:
    """Return the serializer of a page of rows of the given serializer."""
    fields: dict[str, Any] = {
        "__doc__": "A page of a list.",
        "next": serializers.URLField(allow_null=True, help_text="The page after this one."),
        "previous": serializers.URLField(allow_null=True, help_text="The page before this one."),
        "results": serializer(many=True),
    }
    name = serializer.__name__.replace("Serializer", "PageSerializer")
    return type(name, (serializers.Serializer,), fields)


def keyset_condition(
    queryset: Any, columns: Sequence[str], position: Sequence[Any], *, descending: bool
) -> Q:
    """Return the condition for rows after a position, by one or two columns."""
    fields = [queryset.model._meta.get_field(column) for column in columns]
    first, *rest = [
        (field.name, field.to_python(text)) for field, text in zip(fields, position, strict=True)
    ]
    operator = "lt" if descending else "gt"
    after_first = Q(**{f"{first[0]}__{operator}": first[1]})
    if not rest:
        return after_first
    ((last, value),) = rest
    # An index scan starts at the bound of the first column; the rest filters its rows.
    from_first = Q(**{f"{first[0]}__{operator}e": first[1]})
    return from_first & (after_first | Q(**{f"{last}__{operator}": value}))


class InvalidCursor(NotFound):
    """A cursor that this list of this tenant, in this order, did not create."""

    default_detail = (
        "This is not a cursor of this list in this order. Use `next` or `previous` unchanged."
    )
