"""What waits for people: escalations of conversations, and tool calls that need a consent."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Q
from rest_framework import decorators, mixins, serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http import bodies, lists, operations, schema, views
from konstruct.orchestrator import exceptions, models, tool_calls
from konstruct.orchestrator.handoff import escalations, handovers
from konstruct.orchestrator.models.replies import ToolCallState
from memory.models import Message
from tenants import context, transaction
from tenants.audit.models import Action


class NewEscalationSerializer(bodies.ConversationName):
    """The thread that a person or another agent takes over."""

    thread_id = bodies.ChannelIdField(help_text="The conversation, with a message of the user.")
    reason = bodies.TextField(max_length=2000, help_text="The reason, for the record.")
    to_agent = bodies.ChannelIdField(
        required=False,
        help_text="Name or id of the active agent that answers instead. Default: a person.",
    )


class ResolutionSerializer(bodies.StrictSerializer):
    """How an escalation ends."""

    let_agent_answer = bodies.StrictBooleanField(
        help_text="true: the agent answers the held messages. false: they are closed, because a "
        "person has handled them."
    )
    note = bodies.OptionalTextField(help_text="The result, for the record.")


class AnswerSerializer(bodies.StrictSerializer):
    """The answer of a person."""

    content = bodies.StrictCharField(
        max_length=settings.MAX_MESSAGE_CHARACTERS,
        validators=[bodies.NOT_BLANK],
        help_text="The answer, which is sent to the user as it is.",
    )
    name = bodies.ChannelIdField(
        required=False,
        max_length=120,
        help_text="Name of the person who answers. Default: that of the key.",
    )


class AnswerMessageSerializer(serializers.ModelSerializer):
    """The message with a person's answer."""

    in_reply_to = serializers.UUIDField(
        source="in_reply_to_id",
        allow_null=True,
        help_text="The user's message that it replies to; empty if none waited.",
    )

    class Meta:
        model = Message
        fields = ["id", "content", "name", "in_reply_to", "created_at"]


class AssignmentSerializer(bodies.StrictSerializer):
    """The member of the team to whom an escalation is assigned."""

    assigned_to = bodies.StrictCharField(
        allow_blank=True,
        max_length=150,
        help_text="Username of a member of the team who may answer. Empty: unassigned.",
    )


class StateField(serializers.ChoiceField):
    """Whether an escalation is open."""

    def get_attribute(self, instance: models.Escalation) -> str:
        """Return the word for the state."""
        return "open" if instance.resolved_at is None else "resolved"


class EscalationSerializer(serializers.ModelSerializer):
    """A thread in which a person or another agent answers, or has answered."""

    url = views.UrlField("escalation-detail")
    agent = views.AgentNameField(help_text="The agent's name.")
    state = StateField(
        choices=["open", "resolved"],
        help_text="open: a person or `to_agent` answers instead of the thread's own agent.",
    )
    to_agent = views.AgentNameField(
        "to_agent_id",
        help_text="The name of the agent that answers instead; empty if a person answers.",
    )
    outcome = serializers.ChoiceField(
        choices=models.Escalation.Outcome.choices, help_text="How it ended; empty while it is open."
    )
    opened_by = serializers.ChoiceField(
        choices=models.Escalation.OpenedBy.choices,
        help_text="The cause of the escalation.",
    )

    class Meta:
        model = models.Escalation
        fields = [
            *("id", "url", "state", "agent", "agent_id", "user_id", "thread_id", "channel"),
            *("message_id", "to_agent", "to_agent_id", "from_agent_id"),
            *("opened_by", "opened_by_name", "reason", "opened_at", "assigned_to"),
            *("resolved_at", "resolved_by", "note", "outcome"),
        ]


class EscalationFilter(lists.ThreadFilter):
    """Filters of the list."""

    state = lists.FlagFilter(
        "Only escalations in this state.", ["open", "resolved"], lookup="resolved_at__isnull"
    )
    to = lists.FlagFilter(
        "Only escalations to a person, or only those to another agent.",
        ["person", "agent"],
        lookup="to_agent_id__isnull",
    )
    to_agent = lists.Filter(
        bodies.ChannelIdField, "Only escalations to this agent (name or id).", method="of_agent"
    )


class EscalationViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, views.ApiViewSet):
    """Threads in which a person or another agent answers, newest first."""

    queryset = models.Escalation.objects.all()
    serializer_class = EscalationSerializer
    filterset_class = EscalationFilter
    ordering = ("-opened_at", "-id")
    ordering_fields = ("opened_at",)
    subject = "escalation"
    allows_bound_keys = True

    @views.operation(
        Action.ESCALATE,
        "conversation",
        permission="orchestrator.add_escalation",
        body=NewEscalationSerializer,
        id="open_escalation",
        returns={200: EscalationSerializer, 201: EscalationSerializer},
        headers=[schema.LOCATION],
    )
    def create(self, request: Request) -> Response:
        """Escalate a conversation to a person, or hand it to another agent.

        The agent stops answering in the conversation. Without `to_agent`, messages of the user are
        held with the status `with_person` until a person answers them in the admin. With
        `to_agent`, that agent answers the messages to the conversation's agent, under its own name
        and with its own memory. If a person or the same agent already answers the conversation,
        nothing changes (200). If another agent answers it, the conversation is handed on.
        """
        fields = self.fields
        thread = escalations.Thread(**self.caller.thread_in(fields))
        opening = {
            "opened_by": models.Escalation.OpenedBy.PROGRAM,
            "name": self.caller.name,
            "reason": fields["reason"],
        }
        if "to_agent" in fields:
            to_agent = self.caller.agent(fields["to_agent"], active=True)
            escalation, is_new = handovers.hand_over(thread, to_agent.id, **opening)
        else:
            escalation, is_new = escalations.open_escalation(thread, **opening)
        return self.created(escalation, is_new=is_new, status=201 if is_new else 200)

    @decorators.action(detail=True, methods=["put"], url_path="assignment")
    @views.operation(Action.EDIT, body=AssignmentSerializer, errors=(409,))
    def assign_escalation(self, request: Request, escalation_id: UUID) -> Response:
        """Assign an escalation to a member of the team.

        Assigns the escalation. Other members may still answer and resolve it.
        """
        to = self.fields["assigned_to"]
        return self.change(self.get_object(), lambda row: escalations.assign(row.pk, to=to))

    @decorators.action(detail=True, methods=["post"], url_path="answer")
    @views.operation(
        Action.ANSWER,
        "conversation",
        body=AnswerSerializer,
        own_transaction=True,
        returns={201: AnswerMessageSerializer, 200: AnswerMessageSerializer},
        errors=(403, 409, 422),
        headers=[schema.IDEMPOTENCY_KEY],
    )
    def answer_escalation(self, request: Request, escalation_id: UUID) -> Response:
        """Answer the user as a person.

        The answer replies to the user's last message, and closes the earlier ones that wait. It is
        sent to the user's channel. The escalation stays open until it is resolved. A key that is
        bound to a user cannot answer.
        """
        if self.caller.user_id:
            raise PermissionDenied("A key that is bound to a user cannot answer as a person.")
        escalation = self.get_object()
        sent, content = operations.Idempotency(request, escalation.pk), self.fields["content"]
        is_new = []

        def log(turn: Message) -> None:
            is_new.append(turn)
            self.write_log_entry()

        turn = escalations.answer_as_person(
            escalation.pk,
            content,
            name=self.fields.get("name", self.caller.name),
            idempotency_key=sent.key,
            on_change=log,
        )
        if turn.content != content:
            raise exceptions.IdempotencyKeyReused(
                f"You have sent Idempotency-Key {sent.sent!r} with another answer. Send a new key."
            )
        document = self.document(turn, AnswerMessageSerializer)
        return Response(document, status=201 if is_new else 200)

    @decorators.action(detail=True, methods=["post"], url_path="resolution")
    @views.operation(Action.RESOLVE, body=ResolutionSerializer, errors=(409,))
    def resolve_escalation(self, request: Request, escalation_id: UUID) -> Response:
        """Resolve an escalation.

        The conversation's own agent answers again.
        """
        options = {"by": self.caller.name, **self.fields}
        return self.change(self.get_object(), lambda row: escalations.resolve(row.pk, **options))


class DecisionSerializer(bodies.StrictSerializer):
    """The user's decision."""

    approve = bodies.StrictBooleanField(help_text="true executes the call, false denies it.")


class ToolCallSerializer(serializers.ModelSerializer):
    """A tool call that an agent requested while it answered a message."""

    url = views.UrlField("tool-call-detail")
    agent = views.AgentNameField(help_text="The agent's name.")
    message_id = serializers.UUIDField(help_text="The message that the agent answers.")
    arguments = serializers.JSONField(help_text="The arguments of the call.")
    state = serializers.ChoiceField(choices=ToolCallState.choices, help_text="State of the call.")

    class Meta:
        model = models.ToolCall
        fields = [
            *("id", "url", "state", "agent", "agent_id", "user_id", "thread_id", "message_id"),
            *("asked_by_id", "content", "name", "arguments", "question"),
            *("created_at", "expires_at", "decided_at", "decided_by", "done_at", "result"),
        ]


class ToolCallFilter(lists.AgentUserFilter, lists.TimeRangeFilter):
    """Filters of the list."""

    message_id = lists.Filter(serializers.UUIDField, "Only tool calls of this message.")
    state = lists.ChoiceFilter("Only calls in this state.", ToolCallState.choices)


class ToolCallViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, views.ApiViewSet):
    """The tool calls of agents.

    `state=waiting` lists the calls that need a user's consent. Each has the `question` to ask.
    """

    queryset = models.ToolCall.objects.all()
    serializer_class = ToolCallSerializer
    filterset_class = ToolCallFilter
    ordering_fields = ("created_at",)
    subject = "tool call"
    lookup_url_kwarg = "call_id"
    allows_bound_keys = True

    @decorators.action(detail=True, methods=["post"], url_path="decision")
    @views.operation(
        Action.DECIDE,
        body=DecisionSerializer,
        own_transaction=True,
        errors=(409,),
    )
    def decide_tool_call(self, request: Request, call_id: UUID) -> Response:
        """Approve or deny a tool call.

        Send the user's answer to the call's `question`. A worker executes an approved call once,
        and answers the message. Repeating the same decision changes nothing.
        """
        approve, late = self.fields["approve"], None
        bound_to: dict[str, Any] = {
            "agent_id": self.caller.agent_id,
            "user_id": self.caller.user_id,
        }
        visible = {name: value for name, value in bound_to.items() if value is not None}
        with transaction.atomic():
            try:
                decided = tool_calls.decide(
                    context.required_tenant_id(),
                    call_id,
                    approve,
                    by=f"{self.caller.name}, by the API",
                    visible=Q(**visible),
                )
            except exceptions.AlreadyDecided as error:
                late = error  # commits that the call has expired
            else:
                self.log(decided, approve=approve, state=decided.state)
                self.write_log_entry()
        if late is not None:
            raise late
        return Response(self.document(decided))
