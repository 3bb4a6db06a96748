"""The context of one prompt, the recent turns of an agent and a user, and sessions of graphs."""

from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.http import Http404
from drf_spectacular.utils import extend_schema_field
from rest_framework import decorators, serializers
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http import bodies, lists, schema, views
from konstruct.orchestrator import builder, runner
from konstruct.orchestrator.models import Agent, ModelTier
from memory import arguments, exceptions, models
from memory.conf import FACT_FLOOR, NEAR_FACT_FLOOR, WINDOW
from memory.context import ContextManager, SessionStore, tokens
from memory.context.prompt import PromptItem
from memory.context.session import Session
from memory.conversations.short_term import clear_window, get_recent_messages
from tenants import transaction
from tenants.audit.models import Action
from tenants.context import required_tenant_id

MAX_TURNS = 1000
MAX_WINDOW_TURNS = 200


class GivenTurnSerializer(bodies.StrictSerializer):
    """A turn of a conversation."""

    role = serializers.ChoiceField(choices=["user", "assistant"])
    content = bodies.StrictCharField(
        allow_blank=True, max_length=settings.MAX_MESSAGE_CHARACTERS, help_text="The text."
    )


@extend_schema_field(
    {
        "oneOf": [
            {"type": "string"},
            {
                "type": "object",
                "properties": {"description": {"type": "string"}},
                "additionalProperties": True,
            },
        ]
    }
)
class TaskField(serializers.Field):
    """Text, or an object with a description and further data."""

    default_error_messages = {
        "invalid": "Give text, or an object with a description and further data.",
        "max_length": "The task has {length} characters; the most is {limit}.",
    }

    def to_internal_value(self, data: Any) -> tokens.Task:
        """Refuse a value that is neither, or too long for any prompt."""
        if not isinstance(data, str | dict):
            self.fail("invalid")
        try:
            task = tokens.Task.of(data)
            length = len(arguments.text_argument("task", task.text))
        except exceptions.InvalidArgument as error:
            raise ValidationError(str(error)) from error
        if length > settings.MAX_MESSAGE_CHARACTERS:
            self.fail("max_length", length=length, limit=settings.MAX_MESSAGE_CHARACTERS)
        return task


class CompileSerializer(bodies.StrictSerializer):
    """A task, and the agent and user of its memories."""

    agent = bodies.ChannelIdField(
        help_text="Name or id of the agent: its prompt, recall and facts are used."
    )
    task = TaskField(
        help_text="The current question: text, or an object with a `description` and further "
        "fields. Facts and conversations are searched with the text or the description; without "
        "one nothing is searched. Each further field becomes a line of the task in the prompt.",
    )
    user_id = bodies.ChannelIdField(
        required=False,
        help_text="The user. Without it, no user's facts and messages are included.",
    )
    thread_id = bodies.ChannelIdField(
        required=False,
        help_text="A LangGraph thread: its turns are the session. Default, also for a thread "
        "without a history: the user's recent turns with the agent.",
    )
    messages = bodies.BoundedListField(
        child=GivenTurnSerializer(),
        required=False,
        max_length=MAX_TURNS,
        help_text="The turns before the task, oldest first, if the client has them.",
    )
    system_prompt = bodies.OptionalTextField(
        max_length=settings.MAX_MESSAGE_CHARACTERS,
        help_text="Replaces the agent's system prompt.",
    )
    model_tier = serializers.ChoiceField(
        choices=ModelTier.choices,
        required=False,
        help_text="fast: 8,000 tokens, reasoning: 32,000. Default: the agent's.",
    )


class TokenUsageSerializer(serializers.Serializer):
    """Tokens of each section, by cl100k_base."""

    total = serializers.IntegerField()
    system = serializers.IntegerField()
    session = serializers.IntegerField()
    memory = serializers.IntegerField()
    task = serializers.IntegerField()


class LeftOutSerializer(serializers.Serializer):
    """The numbers of turns and memories that did not fit."""

    messages = serializers.IntegerField(source="messages_left_out", help_text="The oldest turns.")
    memories = serializers.IntegerField(source="memories_left_out", help_text="The least relevant.")
    task = serializers.ListField(
        source="task_cut",
        child=serializers.CharField(),
        help_text="Parts of the task that were cut or left out: `description`, and names of its "
        "fields.",
    )


class SourceSerializer(serializers.Serializer):
    """The source of an item of the context."""

    kind = serializers.ChoiceField(choices=["fact", "message"])
    id = serializers.UUIDField(help_text="memory_id of the fact, or id of the message.")

    def to_representation(self, item: PromptItem) -> dict[str, Any]:
        """Return the fact, or else the message, of the item."""
        if item.fact is not None:
            return {"kind": "fact", "id": item.fact.memory_id}
        return {"kind": "message", "id": item.message_id}


class ChatMessageSerializer(serializers.Serializer):
    """A message of a chat."""

    role = serializers.CharField()
    content = serializers.CharField()


class RerankerSerializer(serializers.Serializer):
    """The reranker that has sorted the memories."""

    model = serializers.CharField(help_text="Its name.")
    problem = serializers.CharField(
        help_text="Why it gave no scores, so that the order of recall stays; or empty."
    )


class CompiledSerializer(serializers.Serializer):
    """The sections that fit into one prompt, and the prompt."""

    system_prompt = serializers.CharField(source="fitted.system_prompt")
    messages = ChatMessageSerializer(
        source="fitted.messages", many=True, help_text="The newest turns of the session."
    )
    context = serializers.CharField(  # type: ignore[assignment]  # a field, not the property
        source="fitted.context", help_text="Facts and recalled turns, one per line."
    )
    task = serializers.CharField(source="fitted.task")
    token_usage = TokenUsageSerializer(source="fitted.token_usage")
    model_tier = serializers.CharField(source="fitted.model_tier")
    budget = serializers.IntegerField(source="fitted.budget", help_text="Token limit of a prompt.")
    left_out = LeftOutSerializer(source="fitted")
    sources = SourceSerializer(
        source="included", many=True, help_text="The source of each item of the context, in order."
    )
    prompt = ChatMessageSerializer(source="messages", many=True, help_text="For a chat model.")
    reranker = RerankerSerializer(
        source="gathered.reranking", allow_null=True, help_text="Null: the agent has none."
    )


class ContextViewSet(views.ApiViewSet):
    """Compiles an agent's context as the pipeline does."""

    subject = "context"
    # A prompt holds all of these.
    allows_bound_keys = True

    @decorators.action(detail=False, methods=["post"], url_path="compile")
    @views.operation(
        Action.SEARCH,
        permission=(
            "orchestrator.view_agent",
            "audit.recall_memories",
            "memory.view_message",
            "memory.view_memoryentry",
        ),
        body=CompileSerializer,
        own_transaction=True,
        returns=CompiledSerializer,
    )
    def compile_context(self, request: Request) -> Response:
        """Compile the context of a prompt.

        Returns the session, the facts and the recalled messages for the task, cut to the token
        budget of the model's tier: the oldest turns and the least relevant memories are dropped
        first. The agent's reranker sorts the memories, if it has one. Nothing is stored, and no
        other language model is called.
        """
        fields = self.fields
        self.caller.require_prompts()
        if self.caller.is_bound and "thread_id" in fields:
            raise PermissionDenied("Threads of graphs are the whole tenant's; send `messages`.")
        agent = self.caller.agent(fields["agent"])
        tenant_id, tier = required_tenant_id(), fields.get("model_tier", agent.model_tier)
        sessions = SessionStore(tenant_id) if "thread_id" in fields else None
        manager = ContextManager(sessions, fact_floor=FACT_FLOOR, near_fact_floor=NEAR_FACT_FLOOR)
        with transaction.atomic():
            gathered = manager.gather(
                tenant_id,
                fields.get("thread_id", ""),
                fields["task"],
                tier,
                agent_id=agent.id,
                user_id=fields.get("user_id"),
                session_messages=fields.get("messages"),
                policy=agent.recall_policy,
                time_zone=agent.time_zone,
            )
        gathered = runner.rerank(agent, gathered, {"agent_id": agent.id})
        agent_prompt = builder.system_prompt_with(agent, [builder.date_clause(zone=gathered.zone)])
        system_prompt = fields.get("system_prompt", agent_prompt)
        return Response(CompiledSerializer(manager.fit(gathered, system_prompt, tier)).data)


class WindowQuery(bodies.MemoryOwner):
    """Query parameters of reading a window."""

    limit = bodies.LimitField(
        max_value=MAX_WINDOW_TURNS, help_text=f"Number of newest turns. Default: {WINDOW}."
    )


class WindowTurnSerializer(serializers.Serializer):
    """A turn in the window."""

    message_id = serializers.UUIDField(allow_null=True, help_text="Null: not in the transcript.")
    role = serializers.ChoiceField(choices=models.Role.choices)
    name = serializers.CharField(help_text="The speaker's display name, or empty.")
    content = serializers.CharField()
    at = serializers.DateTimeField(allow_null=True, help_text="The time of the turn, if known.")


class WindowSerializer(serializers.Serializer):
    """The recent turns of an agent and a user, oldest first."""

    agent = serializers.CharField(help_text="The agent's name.")
    agent_id = serializers.UUIDField()
    user_id = serializers.CharField()
    turns = WindowTurnSerializer(many=True)


class WindowViewSet(views.ApiViewSet):
    """The window of one agent and one user."""

    subject = "window"
    allows_bound_keys = True

    @views.operation(
        Action.VIEW,
        permission="memory.view_windowclear",
        query=WindowQuery,
        returns=WindowSerializer,
    )
    def get_window(self, request: Request) -> Response:
        """Read a window.

        Returns the turns that the agent gets with the user's next message, oldest first.
        """
        limit = self.query.get("limit", WINDOW)
        agent, user_id = self._agent_and_user()
        turns = get_recent_messages(required_tenant_id(), agent.id, user_id, n=limit)
        for turn in turns:
            turn.setdefault("name", "")
            turn["at"] = turn.get("at") and datetime.fromisoformat(turn["at"])
        document = {"agent": agent.name, "agent_id": agent.id, "user_id": user_id, "turns": turns}
        return Response(WindowSerializer(document).data)

    @views.operation(
        Action.CLEAR,
        permission="memory.add_windowclear",
        query=bodies.MemoryOwner,
        own_transaction=True,
        returns={204: None},
    )
    def clear_window(self, request: Request) -> Response:
        """Clear a window.

        The agent's prompts no longer include earlier turns as recent turns. The transcript is kept,
        and earlier messages can still be recalled.
        """
        agent, user_id = self._agent_and_user()
        with transaction.atomic():
            self.write_log_entry()
            clear_window(required_tenant_id(), agent.id, user_id)
        return Response(status=204)

    def _agent_and_user(self) -> tuple[Agent, str]:
        return self.caller.agent(self.query["agent"]), self.caller.user(self.query["user_id"])


MAX_MESSAGES = 1000

THREAD_ID = schema.id_in_path("thread_id", "The graph's thread")


class MessagesQuerySerializer(bodies.StrictSerializer):
    """Query parameters of one session."""

    limit = bodies.LimitField(
        default=lists.CursorPagination.page_size,
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


class SessionPagination(lists.CursorPagination):
    """Sessions by their newest state; its id grows with time."""

    def rows_after(
        self, queryset: SessionStore, position: lists.Position | None, *, backwards: bool
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
    except exceptions.InvalidArgument as error:
        raise Http404 from error
    if session is None:
        raise Http404
    return session
