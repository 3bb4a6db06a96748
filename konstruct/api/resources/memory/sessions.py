"""Sessions of LangGraph graphs by REST: listed, read, cleared."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from django.http import Http404
from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
)
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from konstruct.api.http.bodies import NoParametersSerializer, StrictSerializer, checked_query
from konstruct.api.http.lists import (
    PAGE_SIZE,
    KeysetPagination,
    PageQuerySerializer,
    Position,
    page_of,
)
from konstruct.api.http.schema import problems
from konstruct.api.http.views import ApiView
from konstruct.api.models import KeyScope
from memory.context import SessionStore
from memory.context.session import Session
from memory.exceptions import InvalidArgument
from tenants.context import required_tenant_id

MOST_MESSAGES = 1000

THREAD_ID = OpenApiParameter(
    "thread_id",
    str,
    OpenApiParameter.PATH,
    description="The graph's thread, percent-encoded; slashes may stand as they are.",
)
EXAMPLE = {
    "thread_id": "monday",
    "url": "http://localhost:8000/api/v1/sessions/monday/",
    "updated_at": "2026-03-14T09:30:20Z",
    "checkpoints": 3,
    "messages": [
        {"role": "user", "content": "My sister visits in May.", "name": "Maria"},
        {"role": "assistant", "content": "How nice, how long will she stay?"},
    ],
}


class MessagesQuerySerializer(StrictSerializer):
    """Query parameters of one session."""

    limit = serializers.IntegerField(
        required=False,
        default=PAGE_SIZE,
        min_value=1,
        max_value=MOST_MESSAGES,
        help_text=f"The newest messages, at most so many; {PAGE_SIZE} without it.",
    )


class SessionSerializer(serializers.Serializer):
    """A thread that has a history."""

    thread_id = serializers.CharField()
    url = serializers.URLField(help_text="Where its messages are.")
    updated_at = serializers.DateTimeField(help_text="When its newest state was saved.")
    checkpoints = serializers.IntegerField(help_text="How many states it has.")


class SessionMessageSerializer(serializers.Serializer):
    """One message of a graph's state."""

    role = serializers.CharField(help_text="user, assistant, system or tool.")
    content = serializers.CharField(help_text="Its text; images and tools' calls have none.")
    id = serializers.CharField(required=False)
    name = serializers.CharField(required=False)
    tool_call_id = serializers.CharField(required=False)


class SessionWithMessagesSerializer(SessionSerializer):
    """A session and its newest messages, oldest first."""

    messages = SessionMessageSerializer(many=True)


class LastUsedFirst(KeysetPagination):
    """Sessions by their newest state, whose id grows with time."""

    orderings = {"-checkpoint_id": ("-checkpoint_id", "-thread_id")}

    def rows_after(
        self, queryset: SessionStore, position: Position | None, *, backwards: bool
    ) -> list[Session]:
        """Return one session more than a page holds, beginning after the position."""
        if position is None:
            return queryset.list_sessions(self.limit + 1)
        checkpoint_id, thread_id = position
        place = Session(thread_id, datetime.min.replace(tzinfo=UTC), 0, checkpoint_id)
        if backwards:
            return queryset.list_sessions(self.limit + 1, after=place)
        return queryset.list_sessions(self.limit + 1, before=place)


class SessionsView(ApiView):
    """The tenant's sessions. A thread is nobody's in particular, so that no bound key sees them."""

    permissions = {"GET": ("memory.view_message",)}

    @extend_schema(
        operation_id="list_sessions",
        summary="List sessions, last used first",
        description="Threads of graphs that were compiled with Konstruct's checkpointer. What was "
        "said on channels are conversations.",
        tags=["sessions"],
        parameters=[PageQuerySerializer],
        responses={200: page_of(SessionSerializer, "A page of sessions.")},
    )
    def get(self, request: Request) -> Response:
        """List sessions."""
        checked_query(request, PageQuerySerializer)
        pages = LastUsedFirst()
        sessions = pages.paginate_queryset(_store(), request, view=self)
        documents = [_document(each, request) for each in sessions]
        return pages.get_paginated_response(SessionSerializer(documents, many=True).data)


class SessionView(ApiView):
    """One session."""

    permissions = {"GET": ("memory.view_message",), "DELETE": ("memory.delete_message",)}
    own_transactions = ("DELETE",)
    # Who may write may clear; a graph begins anew.
    scopes = {"DELETE": KeyScope.WRITE}

    @extend_schema(
        operation_id="get_session",
        summary="Get a session with its messages",
        tags=["sessions"],
        parameters=[THREAD_ID, MessagesQuerySerializer],
        examples=[OpenApiExample("a talk", response_only=True, value=EXAMPLE)],
        responses={200: SessionWithMessagesSerializer, **problems(422)},
    )
    def get(self, request: Request, thread_id: str) -> Response:
        """Show the session."""
        query = checked_query(request, MessagesQuerySerializer)
        document = _document(_session(thread_id), request)
        messages = _store().get_session_messages(thread_id, query["limit"])
        return Response(SessionWithMessagesSerializer({**document, "messages": messages}).data)

    @extend_schema(
        operation_id="clear_session",
        summary="Clear a session",
        description="Its whole history, for good. What was recorded in the transcript stays.",
        tags=["sessions"],
        parameters=[THREAD_ID],
        request=None,
        responses={204: OpenApiResponse(description="It is gone.")},
    )
    def delete(self, request: Request, thread_id: str) -> Response:
        """Clear."""
        checked_query(request, NoParametersSerializer)
        _session(thread_id)
        self.record()  # LangGraph's connection is another one, whose transaction this is no part of
        _store().clear_session(thread_id)
        return Response(status=204)


def _store() -> SessionStore:
    return SessionStore(required_tenant_id())


def _session(thread_id: str) -> Session:
    """The session, or a 404; also where no thread could be called so."""
    try:
        session = _store().get_session(thread_id)
    except InvalidArgument as error:
        raise Http404 from error
    if session is None:
        raise Http404
    return session


def _document(session: Session, request: Request) -> dict[str, Any]:
    return asdict(session) | {"url": reverse("session", args=[session.thread_id], request=request)}
