"""Cursor pagination, newest first."""

from typing import cast

from rest_framework import serializers
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request

from konstruct.api.fields import StrictSerializer

PAGE_SIZE = 50
LARGEST_PAGE = 200


class PageQuerySerializer(StrictSerializer):
    """Query parameters of every list."""

    limit = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=LARGEST_PAGE,
        help_text=f"Rows per page; {PAGE_SIZE} without it.",
    )
    cursor = serializers.CharField(
        required=False, help_text="A place in the list: follow `next` and `previous`."
    )


class NewestFirst(CursorPagination):
    """Pages that stay put while new rows come in: a cursor is a place in the order of insertion."""

    ordering = "-number"
    page_size = PAGE_SIZE
    max_page_size = LARGEST_PAGE
    page_size_query_param = "limit"

    def decode_cursor(self, request: Request) -> Cursor | None:
        """Read the cursor; one that we did not make is the caller's error, not a missing page."""
        refusal = ValidationError(
            {"cursor": "This is not a cursor of this list. Take `next` or `previous` as they are."}
        )
        try:
            cursor = super().decode_cursor(request)
        except (NotFound, UnicodeError) as error:
            raise refusal from error
        # djangorestframework-stubs take the position, which is text, for a number.
        position = None if cursor is None else cast("str | None", cursor.position)
        if position is not None and not _is_bigint(position):
            raise refusal
        return cursor


def _is_bigint(text: str) -> bool:
    # 18 digits always fit.
    return text.isascii() and text.isdigit() and len(text) <= 18
