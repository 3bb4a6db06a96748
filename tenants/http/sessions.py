"""Sessions of requests: a cookie with characters that Postgres cannot store is dropped."""

from django.conf import settings
from django.contrib.sessions import middleware
from django.http import HttpRequest


class SessionMiddleware(middleware.SessionMiddleware):
    """Django's middleware, which takes no cookie with a NUL character for a session's.

    In quotes a cookie may have any character, by its number. Postgres refuses a text with NUL, and
    the error would be answered with 500.
    """

    def process_request(self, request: HttpRequest) -> None:
        """Give the request its session."""
        if "\0" in request.COOKIES.get(settings.SESSION_COOKIE_NAME, ""):
            del request.COOKIES[settings.SESSION_COOKIE_NAME]
        super().process_request(request)
