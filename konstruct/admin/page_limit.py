"""A limit for the statements of a page in both admins."""

from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponseBase

from tenants.postgresql.base import statement_limit

# Pages read by index; a statement that takes longer is a mistake or an attack.
PAGE_STATEMENT_SECONDS: Final = 5


class PageLimitMiddleware:
    """Has Postgres cancel slow statements of pages, so that a reader holds no connection.

    Forms that are sent may take longer, and so may the rows of an export, which are read in
    batches while they are sent.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.method == "POST" or not request.path.startswith("/admin/"):
            return self.get_response(request)
        with statement_limit(PAGE_STATEMENT_SECONDS):
            return self.get_response(request)
