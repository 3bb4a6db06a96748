"""Responses that wait until a message is settled: in the event loop if there is one, else here."""

from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Any
from uuid import UUID

from rest_framework.response import Response

from konstruct.api.http.views import ApiView
from konstruct.orchestrator.replies.reply_wait import Waiting, wait_until
from konstruct.orchestrator.replies.status import Status
from tenants.context import required_tenant_id, tenant_scope

Respond = Callable[[], Response]


def when_settled(view: ApiView, message_id: UUID, seconds: float, respond: Respond) -> Response:
    """Return the view's response about a message, once it is settled or after so many seconds.

    `respond` makes it of the message as it is then. It is called again after the wait, and checks
    again what the caller may see.
    """
    response = respond()
    if not seconds or _is_settled(response):
        return response
    tenant_id = required_tenant_id()
    if getattr(view.request._request, "waits_in_event_loop", False):
        finish = partial(copy_context().run, _finish, view, response, tenant_id, respond)
        waiting = Waiting(tenant_id, message_id, seconds, finish)
        response.waiting = waiting  # type: ignore[attr-defined]  # the web process looks for it
        return response

    def look() -> Response | None:
        found = respond()
        return found if _is_settled(found) else None

    settled = wait_until(look, tenant_id=tenant_id, message_id=message_id, seconds=seconds)
    return settled or respond()


def _is_settled(response: Response) -> bool:
    return bool(response.data["status"] != Status.QUEUED)


def _finish(view: ApiView, response: Response, tenant_id: UUID, respond: Respond) -> None:
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
    response.headers["Content-Type"] = now.headers["Content-Type"]
    response.content = now.content
