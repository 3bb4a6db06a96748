"""Cursor pagination, newest first."""

from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request


class NewestFirst(CursorPagination):
    """Pages that stay put while new rows come in: a cursor is a place in the order of insertion."""

    ordering = "-number"
    page_size = 50
    max_page_size = 200
    page_size_query_param = "limit"
    page_size_query_description = "Rows per page, 1 to 200."
    cursor_query_description = "A place in the list, from `next` or `previous`."

    def get_page_size(self, request: Request) -> int:
        """Return the page size that was asked for, or refuse it: a silent default misleads."""
        given = request.query_params.get(self.page_size_query_param)
        if given is None:
            return self.page_size
        if not (_is_number(given, digits=3) and 1 <= int(given) <= self.max_page_size):
            raise ValidationError(
                {"limit": f"{given[:20]!r} is not a whole number from 1 to {self.max_page_size}."}
            )
        return int(given)

    def decode_cursor(self, request: Request) -> Cursor | None:
        """Read the cursor; one that we did not make is the caller's error, not a missing page."""
        refusal = ValidationError(
            {"cursor": "This is not a cursor of this list. Take `next` or `previous` as they are."}
        )
        try:
            cursor = super().decode_cursor(request)
        except (NotFound, UnicodeError) as error:
            raise refusal from error
        # Positions are Message.number, a bigint: 18 digits always fit.
        position = None if cursor is None else cursor.position
        if position is not None and not _is_number(position, digits=18):
            raise refusal
        return cursor


def _is_number(text: str, *, digits: int) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= digits
