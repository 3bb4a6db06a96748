"""The middleware of both admins: the time zone of pages, and a limit for their statements."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Final
from urllib.parse import unquote
from zoneinfo import ZoneInfo

from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

from memory.arguments import time_zones
from tenants.context import statement_timeout

# A script sets it to the time zone of the browser.
COOKIE: Final = "time_zone"
# Pages read by index; a statement that takes longer is a mistake or an attack.
PAGE_STATEMENT_SECONDS: Final = 5


class AdminMiddleware:
    """Shows times in the browser's time zone, and has Postgres cancel slow statements of pages.

    Forms that are sent may take longer.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path.startswith("/admin/"):
            return self.get_response(request)
        name = unquote(request.COOKIES.get(COOKIE, ""))
        zone = ZoneInfo(name) if name in time_zones() else None
        is_form = request.method == "POST"
        limit = nullcontext() if is_form else statement_timeout(PAGE_STATEMENT_SECONDS)
        with timezone.override(zone), limit:
            return self.get_response(request)
