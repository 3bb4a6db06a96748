"""Names each request: in its response, in each log line of it, in its problem document."""

import logging
import re
import uuid
from collections.abc import Callable
from contextvars import ContextVar

from django.http import HttpRequest, HttpResponse

HEADER = "X-Request-ID"
# What goes back into a header and into log lines must not be able to make new ones.
_ACCEPTABLE = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_current: ContextVar[str] = ContextVar("request_id", default="-")


class RequestIdMiddleware:
    """Takes the caller's X-Request-ID, or makes one, and sends it back."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get(HEADER, "")
        token = _current.set(given if _ACCEPTABLE.fullmatch(given) else str(uuid.uuid4()))
        try:
            response = self.get_response(request)
            response.headers[HEADER] = _current.get()
            return response
        finally:
            _current.reset(token)


class RequestIdFilter(logging.Filter):
    """Gives every log record its request's id, `-` outside of requests."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the id, unless the record has one; keep every record."""
        if not hasattr(record, "request_id"):
            record.request_id = _current.get()
        return True


def current_request_id() -> str:
    """Return the id of the request that is being answered, `-` outside of requests."""
    return _current.get()
