"""Requests that are refused before a view answers them, or because a server is down."""

import logging
import sys
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.translation import gettext
from django.views import defaults
from psycopg.errors import QueryCanceled

from tenants.exceptions import TenantPaused
from tenants.outages import is_outage, outage_reason
from tenants.postgresql.exceptions import ServerDown

logger = logging.getLogger(__name__)


def refuse(
    request: HttpRequest, status: HTTPStatus, sentence: str, remedy: str = ""
) -> HttpResponse:
    """Answer a request before a view does. The API turns the answer into a problem document.

    A browser gets a page with the remedy; other programs get the sentence alone.
    """
    if "text/html" in request.headers.get("Accept", ""):
        context = {"status": status.value, "title": sentence.rstrip("."), "sentence": remedy}
        return HttpResponse(render_to_string("konstruct/error.html", context), status=status)
    return HttpResponse(f"{sentence}\n", status=status, content_type="text/plain; charset=utf-8")


def refuse_later(request: HttpRequest, error: Exception) -> HttpResponse:
    """Answer 503 with Retry-After to a request that can be served again soon.

    Args:
        error: the tenant that is paused, or the outage (tenants/outages.py).
    """
    note_outage(request, error)
    known = error if isinstance(error, TenantPaused | ServerDown) else ServerDown
    response = refuse(request, HTTPStatus.SERVICE_UNAVAILABLE, known.public)
    response.headers["Retry-After"] = str(known.retry_after)
    leave_log_to_request(request, response)
    return response


def note_outage(request: HttpRequest, error: Exception) -> None:
    """Log one line for a request that is refused with 503, with the reason.

    The web process adds the reason to the line that it logs for each request
    (konstruct/web/handler.py). Other servers log no such line, so this function logs one for them.
    """
    reason = outage_reason(error)
    request.outage = reason  # type: ignore[attr-defined]  # HttpRequest is open for this
    if not getattr(request, "waits_in_event_loop", False):
        logger.error("%s %s 503: %s", request.method, request.path, reason)


def leave_log_to_request(request: HttpRequest, response: HttpResponse) -> None:
    """Keep Django from logging a response whose request `note_outage` has logged."""
    if hasattr(request, "outage"):
        response._has_been_logged = True  # type: ignore[attr-defined]  # Django looks at it


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer a request that failed: 503 for an outage or a slow statement, otherwise 500.

    This is `handler500` of the URL configurations: Django calls it for the errors of middleware
    and of views.
    """
    error = sys.exc_info()[1]
    if isinstance(getattr(error, "__cause__", None), QueryCanceled):
        return refuse(
            request,
            HTTPStatus.SERVICE_UNAVAILABLE,
            gettext("Reading this took too long, and was stopped."),
            gettext("Choose fewer rows, such as those of one user or of a few days."),
        )
    if isinstance(error, Exception) and is_outage(error):
        return refuse_later(request, error)
    return defaults.server_error(request)
