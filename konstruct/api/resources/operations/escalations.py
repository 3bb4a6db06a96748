"""Escalations: conversations in which a person or another agent answers instead of the agent."""

from uuid import UUID

from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http import lists
from konstruct.api.http.bodies import (
    ChannelIdField,
    OptionalTextField,
    StrictBooleanField,
    StrictCharField,
    StrictSerializer,
    TextField,
)
from konstruct.api.http.routes import route
from konstruct.api.http.schema import response_header
from konstruct.api.http.views import AgentNameField, ApiView, UrlField, operation
from konstruct.api.models import KeyScope
from konstruct.orchestrator.handoff.escalations import Thread, assign, open_escalation, resolve
from konstruct.orchestrator.handoff.handovers import hand_over
from konstruct.orchestrator.models import Escalation
from tenants.audit.changes import row_state
from tenants.audit.models import Action

LOCATION = response_header("Location", "The URL of the escalation.", 200, 201)


class NewEscalationSerializer(StrictSerializer):
    """The thread that a person or another agent takes over."""

    agent = ChannelIdField(
        help_text="Name or id of the agent that the thread's messages are sent to."
    )
    user_id = ChannelIdField(help_text="The user.")
    thread_id = ChannelIdField(help_text="The conversation; it must have a message of the user.")
    reason = TextField(max_length=2000, help_text="The reason, for the record.")
    to_agent = ChannelIdField(
        required=False,
        help_text="Name or id of the active agent that answers instead. Default: a person.",
    )


class ResolutionSerializer(StrictSerializer):
    """How an escalation ends."""

    let_agent_answer = StrictBooleanField(
        help_text="true: the agent answers the held messages. false: they are closed, because a "
        "person has handled them."
    )
    note = OptionalTextField(help_text="The result, for the record.")


class AssignmentSerializer(StrictSerializer):
    """The member of the team to whom an escalation is assigned."""

    assigned_to = StrictCharField(
        allow_blank=True,
        max_length=150,
        help_text="Username of a member of the team who may answer. Empty: unassigned.",
    )


class StateField(serializers.ChoiceField):
    """Whether an escalation is open."""

    def get_attribute(self, instance: Escalation) -> str:
        """Return the word for the state."""
        return "open" if instance.resolved_at is None else "resolved"


class EscalationSerializer(serializers.ModelSerializer):
    """A thread in which a person or another agent answers, or has answered."""

    url = UrlField("escalation")
    agent = AgentNameField(help_text="The agent's name.")
    state = StateField(
        choices=["open", "resolved"],
        help_text="open: a person or `to_agent` answers instead of the thread's own agent.",
    )
    to_agent = AgentNameField(
        "to_agent_id",
        help_text="The name of the agent that answers instead; empty if a person answers.",
    )
    outcome = serializers.ChoiceField(
        choices=Escalation.Outcome.choices, help_text="How it ended; empty while it is open."
    )
    opened_by = serializers.ChoiceField(
        choices=Escalation.OpenedBy.choices,
        help_text="The cause of the escalation.",
    )

    class Meta:
        model = Escalation
        fields = [
            *("id", "url", "state", "agent", "agent_id", "user_id", "thread_id", "channel"),
            *("message_id", "to_agent", "to_agent_id", "from_agent_id"),
            *("opened_by", "opened_by_name", "reason", "opened_at", "assigned_to"),
            *("resolved_at", "resolved_by", "note", "outcome"),
        ]


class EscalationPages(lists.KeysetPagination):
    """Escalations by their age."""

    orderings = {"-opened_at": ("-opened_at", "-id"), "opened_at": ("opened_at", "id")}


class EscalationQuery(lists.AgentUserQuery, lists.PageQuerySerializer):
    """Query parameters of the list."""

    thread_id = ChannelIdField(required=False, help_text="Only in this conversation.")
    state = lists.FlagField(
        source="resolved_at__isnull",
        choices=["open", "resolved"],
        required=False,
        help_text="Only escalations in this state.",
    )
    to = lists.FlagField(
        source="to_agent_id__isnull",
        choices=["person", "agent"],
        required=False,
        help_text="Only escalations to a person, or only those to another agent.",
    )
    to_agent = ChannelIdField(
        required=False, help_text="Only escalations to this agent (name or id)."
    )
    ordering = lists.ordering_field(EscalationPages)


class BaseEscalationsView(ApiView):
    """A view of escalations."""

    allows_bound_keys = True


@route("escalations/", name="escalations")
class EscalationsView(BaseEscalationsView):
    """Threads in which a person or another agent answers."""

    @operation(
        Action.LIST,
        "escalations",
        permission="orchestrator.view_escalation",
        query=EscalationQuery,
        id="list_escalations",
        page=EscalationSerializer,
    )
    def get(self, request: Request) -> Response:
        """List escalations, newest first."""
        rows = lists.apply_filters(
            Escalation.objects.all(), self.query, self.caller, without=("to_agent",)
        )
        if "to_agent" in self.query:
            rows = rows.filter(to_agent_id=self.caller.agent(self.query["to_agent"]).id)
        return self.page(rows, EscalationPages(), EscalationSerializer)

    @operation(
        Action.ESCALATE,
        "conversation",
        permission="orchestrator.add_escalation",
        body=NewEscalationSerializer,
        id="open_escalation",
        returns={200: EscalationSerializer, 201: EscalationSerializer},
        headers=[LOCATION],
    )
    def post(self, request: Request) -> Response:
        """Escalate a conversation to a person, or hand it to another agent.

        The agent stops answering in the conversation. Without `to_agent`, messages of the user are
        held with the status `with_person` until a person answers them in the admin. With
        `to_agent`, that agent answers the messages to the conversation's agent, under its own name
        and with its own memory. If a person or the same agent already answers the conversation,
        nothing changes (200). If another agent answers it, the conversation is handed on.
        """
        fields = self.fields
        thread = Thread(
            self.caller.agent(fields["agent"]).id,
            self.caller.user(fields["user_id"]),
            fields["thread_id"],
        )
        opening = {
            "opened_by": Escalation.OpenedBy.PROGRAM,
            "name": self.caller.name,
            "reason": fields["reason"],
        }
        if "to_agent" in fields:
            to_agent = self.caller.agent(fields["to_agent"], active=True)
            escalation, is_new = hand_over(thread, to_agent.id, **opening)
        else:
            escalation, is_new = open_escalation(thread, **opening)
        self.log_created(escalation, is_new=is_new)
        document = self.document(escalation, EscalationSerializer)
        status = 201 if is_new else 200
        return Response(document, status=status, headers={"Location": document["url"]})


@route("escalations/<uuid:escalation_id>/", name="escalation")
class EscalationView(BaseEscalationsView):
    """One escalation."""

    @operation(
        Action.VIEW,
        "escalation",
        scope=(KeyScope.READ, KeyScope.WRITE),
        permission="orchestrator.view_escalation",
        id="get_escalation",
        returns=EscalationSerializer,
    )
    def get(self, request: Request, escalation_id: UUID) -> Response:
        """Get an escalation."""
        return self.show(Escalation.objects.all(), EscalationSerializer, escalation_id)


@route("escalations/<uuid:escalation_id>/assignment/", name="assignment")
class AssignmentView(BaseEscalationsView):
    """The member of the team to whom an escalation is assigned."""

    @operation(
        Action.EDIT,
        "escalation",
        permission="orchestrator.change_escalation",
        body=AssignmentSerializer,
        id="assign_escalation",
        returns=EscalationSerializer,
        errors=(409,),
    )
    def put(self, request: Request, escalation_id: UUID) -> Response:
        """Assign an escalation to a member of the team.

        Assigns the escalation. Other members may still answer and resolve it.
        """
        escalation = get_object_or_404(self.caller.rows(Escalation.objects.all()), pk=escalation_id)
        before = row_state(escalation)
        assigned = assign(escalation.pk, to=self.fields["assigned_to"])
        return self.changed(assigned, before, EscalationSerializer)


@route("escalations/<uuid:escalation_id>/resolution/", name="resolution")
class ResolutionView(BaseEscalationsView):
    """The end of an escalation."""

    @operation(
        Action.RESOLVE,
        "escalation",
        permission="orchestrator.change_escalation",
        body=ResolutionSerializer,
        id="resolve_escalation",
        returns=EscalationSerializer,
        errors=(409,),
    )
    def post(self, request: Request, escalation_id: UUID) -> Response:
        """Resolve an escalation.

        The conversation's own agent answers again.
        """
        escalation = get_object_or_404(self.caller.rows(Escalation.objects.all()), pk=escalation_id)
        before = row_state(escalation)
        resolved = resolve(escalation.pk, by=self.caller.name, **self.fields)
        return self.changed(resolved, before, EscalationSerializer)
