"""Responses that wait for a reply, and streams of server-sent events.

The web process waits in its event loop, see orchestrator/replies.py. Django's own server and test
client do not wait.
"""

import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.http import HttpResponse
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.utils.encoders import JSONEncoder

from konstruct.api.http.problems import Problem, current_request_id, problem_of
from konstruct.api.http.views import ApiViewSet, agent_names
from konstruct.channels.rest import serializers
from konstruct.orchestrator import replies
from konstruct.orchestrator.models import Escalation, ToolCall
from memory.models import Message, PendingEmbedding
from tenants import outages, serving
from tenants.context import required_tenant_id, tenant_scope

logger = logging.getLogger(__name__)

MEDIA_TYPE: Final = "text/event-stream"
STREAM_HEADERS: Final = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
Respond = Callable[[], Any]


def event(document: Mapping[str, Any], name: str = "", place: int | None = None) -> bytes:
    """Return a server-sent event.

    Args:
        document: its data.
        name: its type; by default `message`.
        place: its id, which a client that connects again sends as `Last-Event-ID`.
    """
    lines = [f"id: {place}\n"] if place is not None else []
    lines += [f"event: {name}\n"] if name else []
    return f"{''.join(lines)}data: {json.dumps(document, cls=JSONEncoder)}\n\n".encode()


def wants_events(request: Any) -> bool:
    """Return whether the client prefers events to JSON."""
    preferred = request._request.get_preferred_type(["application/json", MEDIA_TYPE])
    return bool(preferred == MEDIA_TYPE)


class JsonOrEvents(DefaultContentNegotiation):
    """Accepts a client that asks for events; responses that are no streams are JSON."""

    method = "POST"
    """The method that can answer with events."""

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> Any:
        """Return the renderer of responses that are no streams."""
        if request.method == self.method and wants_events(request):
            return renderers[0], renderers[0].media_type
        return super().select_renderer(request, renderers, format_suffix)


def has_settled(response: Response) -> bool:
    """Return whether a request does not wait for more: it waits for an agent or a person."""
    return response.data["status"] not in (replies.Status.QUEUED, replies.Status.WITH_PERSON)


def respond_when_settled(
    view: ApiViewSet,
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

    if not hasattr(view.request._request, "waits_in_event_loop"):
        return respond_now()
    finish = partial(copy_context().run, _finish, view, response, tenant_id, respond_now)
    response.deferred = replies.DeferredResponse(tenant_id, message_id, seconds, finish)
    return response


def respond_when_indexed(
    view: ApiViewSet, message_ids: Collection[UUID], seconds: float, respond: Respond
) -> Any:
    """Return the view's response once recall can find these messages, or after `seconds`.

    Args:
        view: the view.
        message_ids: the messages, at least one.
        seconds: the longest wait.
        respond: makes the response, before and after the wait.
    """
    response, tenant_id = respond(), required_tenant_id()

    def are_indexed() -> bool:
        with tenant_scope(tenant_id):
            return not PendingEmbedding.objects.filter(pk__in=message_ids).exists()

    if hasattr(view.request._request, "waits_in_event_loop"):
        finish = partial(copy_context().run, _finish, view, response, tenant_id, respond)
        response.deferred = replies.DeferredResponse(
            tenant_id, next(iter(message_ids)), seconds, finish, are_indexed
        )
    return response


def stream_events(
    view: ApiViewSet,
    message_id: UUID,
    seconds: float,
    *,
    opening: bytes,
    piece: Callable[[str], bytes],
    end: Callable[[str], bytes],
    fail: Callable[[Problem], bytes],
) -> HttpResponse:
    """Return a stream of server-sent events that ends when the message is settled.

    Django's own server and test client send it as a whole, with the message's current state.

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
            with tenant_scope(tenant_id):
                return end(sent)
        except Exception as error:
            problem = problem_of(error)
            if problem.status >= 500:
                logger.error(  # noqa: TRY400 (an outage is logged by its reason)
                    "A stream of %s could not be ended: %s",
                    *(message_id, outages.outage_reason(error)),
                    exc_info=not outages.is_outage(error),
                )
            return fail(problem)

    response = HttpResponse(content_type=MEDIA_TYPE, headers=STREAM_HEADERS)
    if not hasattr(view.request._request, "waits_in_event_loop"):
        response.content = opening + ended("")
        return response
    context = copy_context()

    def run(sent: str) -> bytes:
        return context.run(ended, sent)

    overloaded, refused = fail(Problem.of_status(503)), fail(Problem.of_status(401))
    response.stream = replies.StreamingResponse(  # type: ignore[attr-defined]  # for the web process
        tenant_id, message_id, seconds, opening, piece, run, overloaded, refused
    )
    return response


def _finish(view: ApiViewSet, response: Any, tenant_id: UUID, respond: Respond) -> None:
    """Update the response from before the wait with the current state."""
    with tenant_scope(tenant_id):
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


def repeat_events(view: ApiViewSet, read: Callable[[], bytes], seconds: float) -> HttpResponse:
    """Return a stream of server-sent events that gets new events while it is open.

    Django's own server and test client send only the first ones.

    Args:
        view: the view.
        read: returns the events that are new since the last call. It writes the access log.
        seconds: the longest duration of the stream.
    """
    tenant_id, context = required_tenant_id(), copy_context()

    def read_in_tenant() -> bytes:
        with tenant_scope(tenant_id):
            serving.require_serving(tenant_id)
            return read()

    response = HttpResponse(read(), content_type=MEDIA_TYPE, headers=STREAM_HEADERS)
    refused = Problem.of_status(401).as_json(
        path=view.request.path, request_id=current_request_id()
    )
    response.repeated = replies.RepeatedResponse(  # type: ignore[attr-defined]  # for the web process
        seconds, lambda: context.run(read_in_tenant), event(refused, "error")
    )
    return response


DETAILS = {
    replies.Status.AWAITING_CONSENT: "The agent wants to use a tool and needs the user's consent. "
    "Ask the user each call's question and send the answer to its decision_url.",
    replies.Status.WITH_PERSON: "A person answers in this conversation instead of the agent.",
    replies.Status.WITH_PROGRAM: "The program that sent it has to send the results of its tools: "
    "all in one request.",
}
_WAITS_FOR = {
    replies.Status.AWAITING_CONSENT: "user",
    replies.Status.WITH_PERSON: "person",
    replies.Status.WITH_PROGRAM: "program",
}


def message_documents(messages: list[Message], request: Request) -> list[dict[str, Any]]:
    """Return the documents of messages, with one query for the names of their agents."""
    names = agent_names(message.agent_id for message in messages)
    address = reverse("message-list", request=request)
    waiting = wait_conditions(messages, request)
    return [
        message_document(
            message, names.get(message.agent_id, ""), f"{address}{message.id}/", waiting
        )
        for message in messages
    ]


def message_document(
    message: Message, agent_name: str, url: str, waiting: Mapping[UUID, dict[str, Any]]
) -> dict[str, Any]:
    """Return the document that MessageSerializer describes.

    The serializer itself would take a fifth of the time of a page of messages.
    """
    progress = replies.progress_of(message)
    reply = progress.reply
    return {
        "id": message.id,
        "status": progress.status.value,
        "url": url,
        "agent": agent_name,
        "agent_id": message.agent_id,
        "user_id": message.user_id,
        "thread_id": message.thread_id,
        "channel": message.channel,
        "name": message.name,
        "content": message.content,
        "metadata": message.metadata or {},
        "created_at": message.created_at,
        # A message that was accepted just now is not read again.
        "indexed": getattr(message, "is_indexed", False),
        "reply": reply
        and {
            name: getattr(reply, name) for name in ("id", "content", "created_at", "finish_reason")
        },
        "waits_for": waiting.get(message.id),
        "answered_by": reply.name if reply else "",
        "answered_by_id": reply and reply.answered_by_id,
        "error": {
            "code": progress.error_code,
            "detail": progress.last_error,
            "attempts": progress.attempts,
            "next_attempt_at": progress.next_attempt_at,
        }
        if progress.last_error or progress.status in (replies.Status.FAILED, replies.Status.CLOSED)
        else None,
    }


def wait_conditions(messages: Sequence[Message], request: Request) -> dict[UUID, dict[str, Any]]:
    """Return the field `waits_for` of each held message, with one query for each kind."""
    held: dict[replies.Status, list[Message]] = {status: [] for status in DETAILS}
    for message in messages:
        held.get(replies.progress_of(message).status, []).append(message)
    if not any(held.values()):
        return {}  # Django would compile two queries without rows
    context = {"request": request}
    calls: dict[UUID, list[Any]] = {}
    waiting = ToolCall.objects.waiting().filter(message__in=held[replies.Status.AWAITING_CONSENT])
    with_program = held[replies.Status.WITH_PROGRAM]
    waiting |= ToolCall.objects.with_program().filter(message__in=with_program)
    for call in waiting.order_by("round", "position"):
        document = serializers.WaitingCallSerializer(call, context=context).data
        calls.setdefault(call.message_id, []).append(document)
    with_person = held[replies.Status.WITH_PERSON]
    columns = ("agent_id", "user_id", "thread_id")
    opened = (
        Escalation.objects.open()
        .to_people()
        .filter(
            **{
                f"{name}__in": {getattr(message, name) for message in with_person}
                for name in columns
            }
        )
    )
    escalations = {
        _thread(one): serializers.OpenEscalationSerializer(one, context=context).data
        for one in opened
    }
    return {
        message.id: {
            "who": _WAITS_FOR[status],
            "detail": DETAILS[status],
            "tool_calls": calls.get(message.id, []),
            "results_url": reverse("message-send-tool-results", args=[message.id], request=request)
            if status is replies.Status.WITH_PROGRAM
            else None,
            "escalation": escalations.get(_thread(message)),
        }
        for status, waiting_messages in held.items()
        for message in waiting_messages
    }


def _thread(row: Message | Escalation) -> tuple[UUID, str, str]:
    return row.agent_id, row.user_id, row.thread_id
