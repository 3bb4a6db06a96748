"""Sessions of LangGraph graphs by REST: listed, read, cleared."""

from datetime import UTC, datetime

from django.http import Http404
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http import bodies, pagination, views
from memory.context import SessionStore
from memory.context.session import Session
from memory.exceptions import InvalidArgument
from tenants.audit.models import Action
from tenants.context import required_tenant_id

MAX_MESSAGES = 1000

THREAD_ID = OpenApiParameter(
    "thread_id",
    str,
    OpenApiParameter.PATH,
    description="The graph's thread, percent-encoded; slashes need no encoding.",
)


class MessagesQuerySerializer(bodies.StrictSerializer):
    """Query parameters of one session."""

    limit = bodies.LimitField(
        default=pagination.CursorPagination.page_size,
        max_value=MAX_MESSAGES,
        help_text="Maximum number of messages; the newest are returned. Default: 50.",
    )


class SessionSerializer(serializers.Serializer):
    """A thread with a history."""

    thread_id = serializers.CharField()
    url = views.UrlField("session-detail", "thread_id", help_text="The URL of its messages.")
    updated_at = serializers.DateTimeField(help_text="When its newest state was saved.")
    checkpoints = serializers.IntegerField(help_text="Number of saved states.")


class SessionMessageSerializer(serializers.Serializer):
    """One message of a graph's state."""

    role = serializers.CharField(help_text="user, assistant, system or tool.")
    content = serializers.CharField(help_text="Its text; empty for images and tool calls.")
    id = serializers.CharField(required=False)
    name = serializers.CharField(required=False)
    tool_call_id = serializers.CharField(required=False)


class SessionWithMessagesSerializer(SessionSerializer):
    """A session and its newest messages, oldest first."""

    messages = SessionMessageSerializer(many=True)


class SessionPagination(pagination.CursorPagination):
    """Sessions by their newest state; its id grows with time."""

    def rows_after(
        self, queryset: SessionStore, position: pagination.Position | None, *, backwards: bool
    ) -> list[Session]:
        """Return one session more than a page holds, beginning after the position."""
        if position is None:
            return queryset.list_sessions(self.page_size + 1)
        checkpoint_id, thread_id = position
        start = Session(thread_id, datetime.min.replace(tzinfo=UTC), 0, checkpoint_id)
        if backwards:
            return queryset.list_sessions(self.page_size + 1, after=start)
        return queryset.list_sessions(self.page_size + 1, before=start)


class SessionViewSet(views.ApiViewSet):
    """The tenant's sessions. A session belongs to no user, so that bound keys do not see them."""

    serializer_class = SessionSerializer
    pagination_class = SessionPagination
    ordering = ("-checkpoint_id", "-thread_id")
    subject = "session"
    lookup_url_kwarg = "thread_id"
    lookup_value_converter = "path"
    permission = "memory.view_message"

    @views.operation(Action.LIST)
    def list(self, request: Request) -> Response:
        """List sessions, last used first.

        Sessions are threads of graphs that were compiled with Konstruct's checkpointer. Threads of
        channels are conversations.
        """
        return self.page(_store())

    @views.operation(
        Action.VIEW,
        query=MessagesQuerySerializer,
        returns=SessionWithMessagesSerializer,
        errors=(422,),
        headers=[THREAD_ID],
    )
    def retrieve(self, request: Request, thread_id: str) -> Response:
        """Get a session with its messages."""
        session = self.document(_session(thread_id))
        messages = _store().get_session_messages(thread_id, self.query["limit"])
        return Response(session | {"messages": SessionMessageSerializer(messages, many=True).data})

    @views.operation(
        Action.CLEAR,
        permission="audit.clear_session",
        own_transaction=True,
        id="clear_session",
        returns={204: None},
        headers=[THREAD_ID],
    )
    def destroy(self, request: Request, thread_id: str) -> Response:
        """Clear a session.

        Deletes the session's history permanently. Messages in the transcript are kept.
        """
        _session(thread_id)
        self.write_log_entry()  # LangGraph uses another connection, with its own transaction
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
