"""Responses that wait for a reply, and streams of server-sent events.

The web process waits in its event loop, see replies/reply_wait.py. Other servers hold a thread.
"""

import json
import logging
from collections.abc import Callable, Mapping
from contextvars import copy_context
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.http import HttpResponse
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.response import Response
from rest_framework.utils.encoders import JSONEncoder

from konstruct.api.http.exceptions import problem_of
from konstruct.api.http.problems import Problem
from konstruct.api.http.views import ApiView
from konstruct.orchestrator.replies.reply_wait import (
    DeferredResponse,
    StreamingResponse,
    wait_until,
)
from konstruct.orchestrator.replies.status import Status, settled_messages
from tenants.context import required_tenant_id, tenant_scope
from tenants.outages import is_outage, outage_reason

logger = logging.getLogger(__name__)

MEDIA_TYPE: Final = "text/event-stream"
Respond = Callable[[], Any]


def event(document: Mapping[str, Any], name: str = "") -> bytes:
    """Return a server-sent event, of the type `message` by default."""
    type_line = f"event: {name}\n" if name else ""
    return f"{type_line}data: {json.dumps(document, cls=JSONEncoder)}\n\n".encode()


def wants_events(request: Any) -> bool:
    """Return whether the client prefers events to JSON."""
    preferred = request._request.get_preferred_type(["application/json", MEDIA_TYPE])
    return bool(request.method == "POST" and preferred == MEDIA_TYPE)


class JsonOrEvents(DefaultContentNegotiation):
    """Accepts a client that asks for events; responses that are no streams are JSON."""

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> Any:
        """Return the renderer of responses that are no streams."""
        if wants_events(request):
            return renderers[0], renderers[0].media_type
        return super().select_renderer(request, renderers, format_suffix)


def has_settled(response: Response) -> bool:
    """Return whether a response of the REST channel is final."""
    return bool(response.data["status"] != Status.QUEUED)


def respond_when_settled(
    view: ApiView,
    message_id: UUID,
    seconds: float,
    respond: Respond,
    *,
    is_settled: Callable[[Any], bool] = has_settled,
    late: Respond | None = None,
) -> Any:
    """Return the view's response about a message, once it is settled or after `seconds`.

    Args:
        view: the view.
        message_id: the message.
        seconds: the longest wait.
        respond: makes the response from the message's current state. It is called before and after
            the wait, and checks the caller's access each time.
        is_settled: returns whether a response says that the message is settled.
        late: makes the response if the message is not settled after the wait. Default: `respond`.
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
        response.deferred = DeferredResponse(tenant_id, message_id, seconds, finish)
        return response

    def settled_response() -> Any:
        response = respond()
        return response if is_settled(response) else None

    settled = wait_until(
        settled_response, tenant_id=tenant_id, message_id=message_id, seconds=seconds
    )
    return settled or respond_now()


def stream_events(
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

    Without an event loop the response is sent as a whole.

    Args:
        view: the view.
        message_id: the message.
        seconds: the longest duration of the stream.
        opening: the first events.
        piece: makes the event of some text.
        end: makes the last events, from the text that was sent. It checks the caller's access.
        fail: makes the last events after an error.
    """
    tenant_id = required_tenant_id()

    def ended(sent: str) -> bytes:
        try:
            with tenant_scope(tenant_id, pinned=True):
                return end(sent)
        except Exception as error:
            problem = problem_of(error)
            if problem.status >= 500:
                logger.error(  # noqa: TRY400 (an outage is logged by its reason)
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

        overloaded, refused = fail(Problem.of_status(503)), fail(Problem.of_status(401))
        response.stream = StreamingResponse(  # type: ignore[attr-defined]  # for the web process
            tenant_id, message_id, seconds, opening, piece, run, overloaded, refused
        )
        return response

    def is_settled() -> bool | None:
        return bool(settled_messages([message_id])) or None

    wait_until(is_settled, tenant_id=tenant_id, message_id=message_id, seconds=seconds)
    response.content = opening + ended("")
    return response


def _finish(view: ApiView, response: Any, tenant_id: UUID, respond: Respond) -> None:
    """Update the response from before the wait with the current state."""
    with tenant_scope(tenant_id, pinned=True):
        new_response: Any
        try:
            new_response = respond()
        except Exception as error:  # the response is the error's
            new_response = view.handle_exception(error)
        new_response = view.finalize_response(view.request, new_response)
        if isinstance(new_response, Response):
            new_response.render()
    response.status_code = new_response.status_code
    # Middleware has added Vary before the wait.
    for name in new_response.headers:
        if name != "Vary":
            response.headers[name] = new_response.headers[name]
    response.content = new_response.content
