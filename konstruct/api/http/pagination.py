"""Cursor pagination: a page begins after a row, not after a number of rows.

So the last page is as fast as the first, and new rows do not shift the pages.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.core import signing
from django.core.exceptions import ValidationError as FieldInvalid
from django.core.validators import RegexValidator
from django.db.models import Q
from rest_framework import pagination
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.utils.urls import replace_query_param

from tenants.context import current_tenant_id

CURSOR = re.compile(r"^[A-Za-z0-9_.-]+\Z")
CURSOR_TEXT = RegexValidator(CURSOR, "Use `next` or `previous` unchanged.")
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
                raise ValidationError({self.cursor_query_param: CURSOR_TEXT.message})
            try:
                order, direction, *position = self.signer.unsign_object(cursor)
            except (signing.BadSignature, ValueError) as error:
                raise InvalidCursor from error
            if order != self.ordering[0]:
                raise InvalidCursor
            backwards = direction == "previous"
        try:
            rows = self.rows_after(queryset, position, backwards=backwards)
        except (ValueError, FieldInvalid) as error:
            raise InvalidCursor from error
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
        columns, descending = self._columns(), self.is_descending(backwards)
        if position is not None:
            fields = [queryset.model._meta.get_field(column) for column in columns]
            values = [f.to_python(text) for f, text in zip(fields, position, strict=True)]
            queryset = queryset.filter(_after(columns, values, "lt" if descending else "gt"))
        order = [f"-{column}" if descending else column for column in columns]
        return list(queryset.order_by(*order)[: self.page_size + 1])

    def is_descending(self, backwards: bool) -> bool:
        """Return whether the rows are read in descending order."""
        return self.ordering[0].startswith("-") != backwards

    def get_page_size(self, request: Request) -> int:
        """Return the size that the caller chose, or the default. Others are refused."""
        text = request.query_params.get(self.page_size_query_param, str(self.page_size))
        size = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
        if not 1 <= size <= self.max_page_size:
            hint = f"Give a whole number from 1 to {self.max_page_size}."
            raise ValidationError({self.page_size_query_param: hint})
        return size

    def get_ordering(self, request: Request, queryset: Any, view: Any) -> tuple[str, ...]:
        """Return the columns of the order that the caller chose, or of the default."""
        chosen = request.query_params.get(self.ordering_query_param, view.ordering[0])
        if chosen == view.ordering[0]:
            return tuple(view.ordering)
        if chosen not in self.choices(view):
            hint = f"Use one of: {', '.join(self.choices(view))}."
            raise ValidationError({self.ordering_query_param: hint})
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


class InvalidCursor(NotFound):
    """A cursor that this list of this tenant, in this order, did not create."""

    default_detail = (
        "This is not a cursor of this list in this order. Use `next` or `previous` unchanged."
    )
