"""Escalations: threads in which a person or another agent answers, and not the agent."""

from typing import Any
from uuid import UUID

from django.http import Http404
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from konstruct.api.http.bodies import (
    NOT_BLANK,
    ChannelIdField,
    NoParametersSerializer,
    StrictBooleanField,
    StrictCharField,
    StrictSerializer,
    checked_query,
)
from konstruct.api.http.lists import (
    KeysetPagination,
    OfAgentAndUser,
    PageQuerySerializer,
    narrowed,
    ordering_field,
    page_of,
)
from konstruct.api.http.schema import problems, response_header
from konstruct.api.http.views import ApiView, agent_names
from konstruct.api.models import KeyScope
from konstruct.orchestrator.handoff.escalations import Thread, open_escalation, resolve
from konstruct.orchestrator.handoff.handovers import hand_over
from konstruct.orchestrator.models import Escalation
from tenants.audit.changes import row_state
from tenants.audit.models import Action

LONGEST_NOTE = 2000
LOCATION = response_header("Location", "The escalation's own address.", 200, 201)
ASKED = OpenApiExample(
    "call a person",
    request_only=True,
    value={
        "agent": "ada",
        "user_id": "U024BE7LH",
        "thread_id": "support-17",
        "reason": "The order is lost.",
    },
)
HANDED = OpenApiExample(
    "hand it to another agent",
    request_only=True,
    value={**ASKED.value, "to_agent": "billing", "reason": "It is about an invoice."},
)


class NewEscalationSerializer(StrictSerializer):
    """The thread in which a person, or another agent, is to answer."""

    agent = ChannelIdField(
        help_text="Name or id of the agent that the thread's messages are sent to."
    )
    user_id = ChannelIdField(help_text="The user.")
    thread_id = ChannelIdField(
        help_text="The conversation; the user must have said something there."
    )
    reason = StrictCharField(
        max_length=LONGEST_NOTE, validators=[NOT_BLANK], help_text="Why, for the record."
    )
    to_agent = ChannelIdField(
        required=False,
        help_text="Name or id of the active agent that is to answer instead. Default: a person.",
    )


class ResolutionSerializer(StrictSerializer):
    """How an escalation ends."""

    let_agent_answer = StrictBooleanField(
        help_text="true: the agent answers what waits. false: it is closed, as taken care of by a "
        "person."
    )
    note = StrictCharField(
        required=False, allow_blank=True, max_length=LONGEST_NOTE, help_text="What came of it."
    )


class EscalationSerializer(serializers.ModelSerializer):
    """A thread in which a person or another agent answers, or has answered."""

    url = serializers.URLField()
    agent = serializers.CharField(help_text="The agent's name.")
    state = serializers.ChoiceField(
        choices=["open", "resolved"],
        help_text="open: a person or `to_agent` answers, and not the thread's own agent.",
    )
    to_agent = serializers.CharField(
        help_text="The name of the agent that answers instead; empty where a person does."
    )
    outcome = serializers.ChoiceField(
        choices=Escalation.Outcome.choices, help_text="How it ended; empty while it is open."
    )
    opened_by = serializers.ChoiceField(
        choices=Escalation.OpenedBy.choices, help_text="On whose account."
    )

    class Meta:
        model = Escalation
        fields = [
            *("id", "url", "state", "agent", "agent_id", "user_id", "thread_id", "channel"),
            *("message_id", "to_agent", "to_agent_id", "from_agent_id"),
            *("opened_by", "opened_by_name", "reason", "opened_at"),
            *("resolved_at", "resolved_by", "note", "outcome"),
        ]


class EscalationPages(KeysetPagination):
    """Escalations by their age."""

    orderings = {"-opened_at": ("-opened_at", "-id"), "opened_at": ("opened_at", "id")}


class EscalationQuery(OfAgentAndUser, PageQuerySerializer):
    """Query parameters of the list."""

    thread_id = ChannelIdField(required=False, help_text="Only in this conversation.")
    state = serializers.ChoiceField(
        choices=["open", "resolved"], required=False, help_text="Only those that are so."
    )
    to = serializers.ChoiceField(
        choices=["person", "agent"],
        required=False,
        help_text="Only those in which a person, or in which another agent, answers.",
    )
    to_agent = ChannelIdField(
        required=False, help_text="Only those that were handed to this agent (name or id)."
    )
    ordering = ordering_field(EscalationPages)


class EscalationsView(ApiView):
    """Threads in which a person or another agent answers."""

    permissions = {
        "GET": ("orchestrator.view_escalation",),
        "POST": ("orchestrator.add_escalation",),
    }
    keeps_to_binding = True

    @extend_schema(
        operation_id="list_escalations",
        summary="List escalations",
        tags=["escalations"],
        parameters=[EscalationQuery],
        responses={200: page_of(EscalationSerializer, "A page of escalations."), **problems(422)},
    )
    def get(self, request: Request) -> Response:
        """List them, the newest first."""
        filters = checked_query(request, EscalationQuery)
        rows = narrowed(Escalation.objects.all(), filters, self.caller)
        if "thread_id" in filters:
            rows = rows.filter(thread_id=filters["thread_id"])
        if "state" in filters:
            rows = rows.filter(resolved_at__isnull=filters["state"] == "open")
        if "to" in filters:
            rows = rows.filter(to_agent_id__isnull=filters["to"] == "person")
        if "to_agent" in filters:
            rows = rows.filter(to_agent_id=self.caller.agent(filters["to_agent"]).id)
        pages = EscalationPages()
        page = pages.paginate_queryset(rows, request, view=self)
        return pages.get_paginated_response(_documents(page, request))

    @extend_schema(
        operation_id="open_escalation",
        summary="Call a person into a thread, or hand it to another agent",
        description="From now on the agent does not answer there. Without `to_agent`, what the "
        "user says is held with the status `with_person` until a person answers it in the admin. "
        "With `to_agent`, that agent answers, as itself and with its own memory, what is sent to "
        "the thread's agent. A thread that the same person or agent has already stays as it is "
        "(200); one that another has is handed on.",
        tags=["escalations"],
        request=NewEscalationSerializer,
        parameters=[LOCATION],
        examples=[ASKED, HANDED],
        responses={200: EscalationSerializer, 201: EscalationSerializer, **problems(422)},
    )
    def post(self, request: Request) -> Response:
        """Open one."""
        checked_query(request, NoParametersSerializer)
        body = NewEscalationSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        fields = body.validated_data
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
        if is_new:
            self.note(escalation, after=row_state(escalation))
        else:
            self.note(escalation, action=Action.VIEW)
        document = _documents([escalation], request)[0]
        return Response(
            document, status=201 if is_new else 200, headers={"Location": document["url"]}
        )


class EscalationView(ApiView):
    """One escalation."""

    permissions = {"GET": ("orchestrator.view_escalation",)}
    scopes = {"GET": (KeyScope.READ, KeyScope.WRITE)}
    keeps_to_binding = True

    @extend_schema(
        operation_id="get_escalation",
        summary="Get an escalation",
        tags=["escalations"],
        responses={200: EscalationSerializer},
    )
    def get(self, request: Request, escalation_id: UUID) -> Response:
        """Show it."""
        checked_query(request, NoParametersSerializer)
        found = _found(self, escalation_id)
        self.note(found)
        return Response(_documents([found], request)[0])


class ResolutionView(ApiView):
    """The end of an escalation."""

    permissions = {"POST": ("orchestrator.change_escalation",)}
    keeps_to_binding = True

    @extend_schema(
        operation_id="resolve_escalation",
        summary="Resolve an escalation",
        description="The thread's own agent answers there again, whoever had the thread.",
        tags=["escalations"],
        request=ResolutionSerializer,
        examples=[OpenApiExample("done", request_only=True, value={"let_agent_answer": False})],
        responses={200: EscalationSerializer, **problems(409)},
    )
    def post(self, request: Request, escalation_id: UUID) -> Response:
        """Resolve it."""
        checked_query(request, NoParametersSerializer)
        body = ResolutionSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        found = _found(self, escalation_id)
        was = row_state(found)
        resolved = resolve(found.pk, by=self.caller.name, **body.validated_data)
        self.note(resolved, before=was, after=row_state(resolved))
        return Response(_documents([resolved], request)[0])


def _found(view: ApiView, escalation_id: UUID) -> Escalation:
    found = view.caller.rows(Escalation.objects.filter(pk=escalation_id)).first()
    if found is None:
        raise Http404
    return found


def _documents(rows: list[Escalation], request: Request) -> list[dict[str, Any]]:
    names = agent_names(
        agent_id for row in rows for agent_id in (row.agent_id, row.to_agent_id) if agent_id
    )
    for row in rows:
        shown: Any = row
        shown.url = reverse("escalation", args=[row.pk], request=request)
        shown.agent = names.get(row.agent_id, "")
        shown.to_agent = names.get(row.to_agent_id, "") if row.to_agent_id else ""
        shown.state = "open" if row.resolved_at is None else "resolved"
    return list(EscalationSerializer(rows, many=True).data)
