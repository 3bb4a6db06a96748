"""Names each request: in its response, in each log line of it, in its problem document."""

import re
import uuid
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from structlog.contextvars import clear_contextvars, get_contextvars

from tenants.log_context import bind_request_ids

HEADER = "X-Request-ID"
# What goes back into a header and into log lines must not be able to make new ones.
_ACCEPTABLE = re.compile(r"[A-Za-z0-9._:-]{1,128}")


class RequestIdMiddleware:
    """Takes the caller's X-Request-ID, or makes one, and sends it back.

    From here on the log lines of the request name its ids. Under Konstruct's web server a request
    has its own context, so the lines that Django writes after all middleware name them too. Under
    other servers the next request has the same thread and context, so the ids are cleared.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get(HEADER, "")
        request_id = given if _ACCEPTABLE.fullmatch(given) else str(uuid.uuid4())
        clear_contextvars()
        bind_request_ids(request, request_id=request_id)
        try:
            response = self.get_response(request)
            response.headers[HEADER] = request_id
            return response
        finally:
            if not hasattr(request, "waits_in_event_loop"):
                clear_contextvars()


def current_request_id() -> str:
    """Return the id of the request that is being answered, `-` outside of requests."""
    request_id: str = get_contextvars().get("request_id", "-")
    return request_id
