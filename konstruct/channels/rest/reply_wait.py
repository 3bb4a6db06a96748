"""Responses that wait until a message is settled: in the event loop if there is one, else here."""

import logging
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from rest_framework.response import Response

from konstruct.api.http.errors.problems import Problem
from konstruct.api.http.exceptions import problem_of
from konstruct.api.http.views import ApiView
from konstruct.channels.rest.events import MEDIA_TYPE
from konstruct.orchestrator.replies.reply_wait import Live, Waiting, wait_until
from konstruct.orchestrator.replies.status import Status, settled_among
from tenants.context import required_tenant_id, tenant_scope
from tenants.outages import is_outage, outage_reason

logger = logging.getLogger(__name__)

Respond = Callable[[], Any]


def has_settled(response: Response) -> bool:
    """Whether a response of the REST channel says that nobody needs to wait for the message."""
    return bool(response.data["status"] != Status.QUEUED)


def when_settled(
    view: ApiView,
    message_id: UUID,
    seconds: float,
    respond: Respond,
    *,
    is_settled: Callable[[Any], bool] = has_settled,
    late: Respond | None = None,
) -> Any:
    """Return the view's response about a message, once it is settled or after so many seconds.

    `respond` makes it of the message as it is then. It is called again after the wait, and checks
    again what the caller may see. `is_settled` reads from it that the message is settled. `late`
    makes what is answered if it is not, after the wait; else that is what `respond` says.
    """
    response = respond()
    if is_settled(response) or not (seconds or late):
        return response
    tenant_id = required_tenant_id()

    def respond_now() -> Any:
        now = respond()
        return now if late is None or is_settled(now) else late()

    if getattr(view.request._request, "waits_in_event_loop", False):
        finish = partial(copy_context().run, _finish, view, response, tenant_id, respond_now)
        waiting = Waiting(tenant_id, message_id, seconds, finish)
        response.waiting = waiting  # the web process looks for it
        return response

    def look() -> Any:
        found = respond()
        return found if is_settled(found) else None

    settled = wait_until(look, tenant_id=tenant_id, message_id=message_id, seconds=seconds)
    return settled or respond_now()


def live(
    view: ApiView,
    message_id: UUID,
    seconds: float,
    *,
    opening: bytes,
    piece: Callable[[str], bytes],
    end: Callable[[str], bytes],
    fail: Callable[[Problem], bytes],
) -> HttpResponse:
    """Return a stream of server-sent events that ends when the message is settled.

    Without an event loop to send it as it comes, the response is whole.

    Args:
        end: makes the last events, given the text that `piece` was given before. It checks again
            what the caller may see.
        fail: makes the last events where there are no others.
    """
    tenant_id = required_tenant_id()

    def ended(sent: str) -> bytes:
        try:
            with tenant_scope(tenant_id, pinned=True):
                return end(sent)
        except Exception as error:
            problem = problem_of(error)
            if problem.status >= 500:
                logger.error(  # noqa: TRY400 (of an outage the reason is enough)
                    "A stream of %s could not be ended: %s",
                    *(message_id, outage_reason(error)),
                    exc_info=not is_outage(error),
                )
            return fail(problem)

    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    response = HttpResponse(content_type=MEDIA_TYPE, headers=headers)
    if getattr(view.request._request, "waits_in_event_loop", False):
        context = copy_context()

        def run(sent: str) -> bytes:
            return context.run(ended, sent)

        overloaded = fail(Problem.of_status(503))
        stream = Live(tenant_id, message_id, seconds, opening, piece, run, overloaded)
        response.live = stream  # type: ignore[attr-defined]  # the web process looks for it
        return response

    def look() -> bool | None:
        return bool(settled_among([message_id])) or None

    wait_until(look, tenant_id=tenant_id, message_id=message_id, seconds=seconds)
    response.content = opening + ended("")
    return response


def _finish(view: ApiView, response: Any, tenant_id: UUID, respond: Respond) -> None:
    """Put what there is to say now into the response that was made before the wait."""
    with tenant_scope(tenant_id, pinned=True):
        now: Any
        try:
            now = respond()
        except Exception as error:  # whatever it is, the caller is told as after any request
            now = view.handle_exception(error)
        now = view.finalize_response(view.request, now)
        if isinstance(now, Response):
            now.render()
    response.status_code = now.status_code
    # What the middleware has added stands already.
    for name in now.headers:
        if name != "Vary":
            response.headers[name] = now.headers[name]
    response.content = now.content
