"""The REST channel: programs send messages and fetch the replies."""

from typing import Any
from uuid import UUID

from django.http import Http404
from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from konstruct.api.agent_names import agent_names
from konstruct.api.caller import Caller
from konstruct.api.fields import checked_query
from konstruct.api.filters import narrowed
from konstruct.api.idempotency import IDEMPOTENCY_KEY, idempotency_key
from konstruct.api.pagination import NewestFirst
from konstruct.api.schema import problems, response_header
from konstruct.api.views import ApiView
from konstruct.channels.rest_serializers import (
    ListSerializer,
    MessagePageSerializer,
    MessageSerializer,
    SendSerializer,
    WaitSerializer,
)
from konstruct.orchestrator.intake import Incoming, accept
from konstruct.orchestrator.status import Status, progress_of, sent_messages, with_status
from konstruct.orchestrator.waiting import wait_until
from memory.models import Message
from tenants.context import required_tenant_id

CHANNEL = "rest"

EXAMPLE = OpenApiExample(
    "a message",
    request_only=True,
    value={
        "agent": "ada",
        "user_id": "U024BE7LH",
        "name": "Maria",
        "content": "When did I say that my sister visits?",
    },
)
LOCATION = response_header("Location", "The message's own address.", 200, 202)


class MessagesView(ApiView):
    """Messages of end users to agents."""

    keeps_to_binding = True

    @extend_schema(
        operation_id="send_message",
        summary="Send a message to an agent",
        description="The message is accepted and answered by a worker. Ask at `url` for the reply, "
        "or pass `wait` to get it in this response if it comes in time.",
        tags=["messages"],
        request=SendSerializer,
        parameters=[WaitSerializer, IDEMPOTENCY_KEY, LOCATION],
        examples=[EXAMPLE],
        responses={
            200: OpenApiResponse(
                MessageSerializer, description="Answered, given up, or held for somebody, in time."
            ),
            202: OpenApiResponse(MessageSerializer, description="Accepted; the reply is to come."),
            **problems(422),
        },
    )
    def post(self, request: Request) -> Response:
        """Accept a message; wait for its reply if asked to."""
        wait = _seconds_to_wait(request)
        body = SendSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        fields = body.validated_data
        agent = self.caller.agent(fields["agent"], active=True)
        incoming = Incoming(
            agent_id=agent.id,
            user_id=self.caller.user(fields["user_id"]),
            thread_id=fields.get("thread_id", fields["user_id"]),
            channel=CHANNEL,
            content=fields["content"],
            name=fields.get("name", ""),
            idempotency_key=idempotency_key(request),
        )
        message, created = accept(incoming, tenant_id=required_tenant_id())
        if wait or not created:
            message = _message_when_settled(message.id, wait, self.caller)
        settled = progress_of(message).status is not Status.QUEUED
        url = reverse("message", args=[message.id], request=request)
        return Response(
            _document(message, agent.name, url),
            status=200 if wait and settled else 202,
            headers={"Location": url},
        )

    @extend_schema(
        operation_id="list_messages",
        summary="List messages, newest first",
        description="Every message that was sent, on any channel, with its reply.",
        tags=["messages"],
        parameters=[ListSerializer],
        responses={
            200: MessagePageSerializer,
            **problems(422),
        },
    )
    def get(self, request: Request) -> Response:
        """List what was sent, in pages."""
        filters = checked_query(request, ListSerializer)
        messages = narrowed(sent_messages(), filters, self.caller)
        if "thread_id" in filters:
            messages = messages.filter(thread_id=filters["thread_id"])
        if "status" in filters:
            messages = with_status(messages, Status(filters["status"]))
        paginator = NewestFirst()
        page = paginator.paginate_queryset(messages, request, view=self)
        return paginator.get_paginated_response(_documents(page, request))


class MessageView(ApiView):
    """One message."""

    keeps_to_binding = True

    @extend_schema(
        operation_id="get_message",
        summary="Get a message and its reply",
        description="How far the message is. With `wait`, the response comes with the reply, or "
        "after so many seconds.",
        tags=["messages"],
        parameters=[WaitSerializer],
        responses={200: MessageSerializer},
    )
    def get(self, request: Request, message_id: UUID) -> Response:
        """Tell how far the message is; wait for the reply if asked to."""
        message = _message_when_settled(message_id, _seconds_to_wait(request), self.caller)
        return Response(_documents([message], request)[0])


def _seconds_to_wait(request: Request) -> float:
    return float(checked_query(request, WaitSerializer).get("wait", 0))


def _message_when_settled(message_id: UUID, seconds: float, caller: Caller) -> Message:
    """Return the message once it is answered or given up, or as it is after so many seconds."""

    def look() -> Message | None:
        message = _message(message_id, caller)
        return message if progress_of(message).status is not Status.QUEUED else None

    if seconds:
        tenant_id = required_tenant_id()
        settled = wait_until(look, tenant_id=tenant_id, message_id=message_id, seconds=seconds)
        if settled is not None:
            return settled
    return _message(message_id, caller)


def _message(message_id: UUID, caller: Caller) -> Message:
    message = caller.rows(sent_messages()).filter(pk=message_id).first()
    if message is None:
        raise Http404
    return message


def _documents(messages: list[Message], request: Request) -> list[dict[str, Any]]:
    """Return the JSON of messages; one query for the names of all their agents."""
    names = agent_names(message.agent_id for message in messages)
    address = reverse("messages", request=request)
    return [
        _document(message, names.get(message.agent_id, ""), f"{address}{message.id}/")
        for message in messages
    ]


def _document(message: Message, agent_name: str, url: str) -> dict[str, Any]:
    """What MessageSerializer describes, as the renderer writes it.

    The serializer itself would take a fifth of the time of a page of messages.
    """
    progress = progress_of(message)
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
        "created_at": message.created_at,
        "reply": reply
        and {"id": reply.id, "content": reply.content, "created_at": reply.created_at},
        "error": {
            "detail": progress.last_error,
            "attempts": progress.attempts,
            "next_attempt_at": progress.next_attempt_at,
        }
        if progress.attempts or progress.status is Status.FAILED
        else None,
    }
