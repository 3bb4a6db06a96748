"""Agents: who they are, which model speaks for them, how they remember."""

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
    BoundedListField,
    ChannelIdField,
    NoParametersSerializer,
    StrictBooleanField,
    StrictCharField,
    StrictFloatField,
    StrictIntegerField,
    StrictSerializer,
    checked_query,
)
from konstruct.api.http.idempotency import IDEMPOTENCY_KEY, create_once
from konstruct.api.http.lists import (
    KeysetPagination,
    PageQuerySerializer,
    ordering_field,
    page_of,
)
from konstruct.api.http.schema import problems, response_header
from konstruct.api.http.views import IF_MATCH, ApiView, etag_of, require_match, tagged
from konstruct.api.models import KeyScope
from konstruct.orchestrator.agents import create_agent, find_agent, update_agent
from konstruct.orchestrator.exceptions import AgentNotFound
from konstruct.orchestrator.models import Agent, ModelTier, RecallMode
from konstruct.orchestrator.tool_catalog import TOOLS
from memory.recall.policy import HEAVIEST, MAX_NEIGHBOURS, MAX_TOP_K, WEIGHT_NAMES
from tenants import transaction
from tenants.audit.changes import row_state
from tenants.audit.models import Action
from tenants.context import required_tenant_id

LONGEST_PROMPT = 100_000
MOST_RULES = 100
MAX_COMPLETION_TOKENS = 2**31 - 1

EXAMPLE = {
    "id": "0b6ef0bd-51a8-4c92-9f1e-7d0f5a3b6c21",
    "url": "http://localhost:8000/api/v1/agents/0b6ef0bd-51a8-4c92-9f1e-7d0f5a3b6c21/",
    "name": "ada",
    "system_prompt": "Help the readers of the city library.",
    "identity": "You are Ada, the librarian.",
    "persona": "Warm and brief.",
    "model": "",
    "model_tier": "fast",
    "accepts_client_instructions": True,
    "max_completion_tokens": None,
    "is_active": True,
    "recall_mode": "hybrid",
    "recall_top_k": None,
    "recall_gate": True,
    "recall_open_at": None,
    "recall_keep_at": None,
    "recall_neighbours": None,
    "recall_weights": {},
    "tools": ["remember_fact"],
    "escalate_on": ["complaint"],
    "escalate_after_failures": None,
    "hands_to": ["5a0ae9d2-8bfb-43f9-8a4e-3c9a1a6f8a77"],
    "hand_over_on": {"invoice": "5a0ae9d2-8bfb-43f9-8a4e-3c9a1a6f8a77"},
    "hand_back_on": [],
    "created_at": "2026-03-14T09:30:00Z",
}
ASKED = {name: EXAMPLE[name] for name in ("name", "system_prompt", "identity", "persona")}
ETAG = response_header("ETag", "The agent's state, for If-Match and If-None-Match.", 200, 201)


def _help(name: str) -> str:
    return str(Agent._meta.get_field(name).help_text)  # type: ignore[union-attr]  # none is a relation


class RecallWeightsSerializer(StrictSerializer):
    """Weights of the ranking that differ from the measured ones."""

    def get_fields(self) -> dict[str, serializers.Field]:
        """One for each weight that there is."""
        return {
            name: StrictFloatField(required=False, min_value=0, max_value=HEAVIEST)
            for name in WEIGHT_NAMES
        }


def _agent_id(name_or_id: str) -> UUID:
    try:
        return find_agent(name_or_id).id
    except AgentNotFound as error:
        raise serializers.ValidationError(str(error)) from error


class AgentFields(StrictSerializer):
    """What can be said of an agent."""

    name = ChannelIdField(max_length=120, help_text=_help("name"))
    system_prompt = StrictCharField(
        required=False,
        allow_blank=True,
        max_length=LONGEST_PROMPT,
        help_text=_help("system_prompt"),
    )
    identity = StrictCharField(
        required=False, allow_blank=True, max_length=LONGEST_PROMPT, help_text=_help("identity")
    )
    persona = StrictCharField(
        required=False, allow_blank=True, max_length=LONGEST_PROMPT, help_text=_help("persona")
    )
    model = StrictCharField(
        required=False, allow_blank=True, max_length=200, help_text=_help("model")
    )
    model_tier = serializers.ChoiceField(
        choices=ModelTier.choices, required=False, help_text=_help("model_tier")
    )
    accepts_client_instructions = StrictBooleanField(
        required=False, help_text=_help("accepts_client_instructions")
    )
    max_completion_tokens = StrictIntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=MAX_COMPLETION_TOKENS,
        help_text=_help("max_completion_tokens"),
    )
    is_active = StrictBooleanField(required=False, help_text=_help("is_active"))
    recall_mode = serializers.ChoiceField(
        choices=RecallMode.choices, required=False, help_text=_help("recall_mode")
    )
    recall_top_k = StrictIntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=MAX_TOP_K,
        help_text=_help("recall_top_k"),
    )
    recall_gate = StrictBooleanField(required=False, help_text=_help("recall_gate"))
    recall_open_at = StrictFloatField(
        required=False,
        allow_null=True,
        min_value=0,
        max_value=1,
        help_text=_help("recall_open_at"),
    )
    recall_keep_at = StrictFloatField(
        required=False,
        allow_null=True,
        min_value=0,
        max_value=1,
        help_text=_help("recall_keep_at"),
    )
    recall_neighbours = StrictIntegerField(
        required=False,
        allow_null=True,
        min_value=0,
        max_value=MAX_NEIGHBOURS,
        help_text=_help("recall_neighbours"),
    )
    recall_weights = RecallWeightsSerializer(required=False, help_text=_help("recall_weights"))
    tools = BoundedListField(
        child=serializers.ChoiceField(choices=sorted(TOOLS)),
        required=False,
        max_length=MOST_RULES,
        help_text=_help("tools"),
    )
    escalate_on = BoundedListField(
        child=StrictCharField(max_length=200, validators=[NOT_BLANK]),
        required=False,
        max_length=MOST_RULES,
        help_text=_help("escalate_on"),
    )
    escalate_after_failures = StrictIntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=MOST_RULES,
        help_text=_help("escalate_after_failures"),
    )
    hands_to = serializers.ListField(
        child=ChannelIdField(),
        required=False,
        max_length=MOST_RULES,
        help_text=f"{_help('hands_to')} Names or ids.",
    )
    hand_over_on = serializers.DictField(
        child=ChannelIdField(),
        required=False,
        help_text=f"{_help('hand_over_on')} A name is taken too.",
    )
    hand_back_on = serializers.ListField(
        child=StrictCharField(max_length=200, validators=[NOT_BLANK]),
        required=False,
        max_length=MOST_RULES,
        help_text=_help("hand_back_on"),
    )

    def validate_hands_to(self, given: list[str]) -> list[UUID]:
        """The ids of agents that are named."""
        return [_agent_id(each) for each in given]

    def validate_hand_over_on(self, given: dict[str, str]) -> dict[str, str]:
        """The same phrases with the ids of agents that are named."""
        return {phrase: str(_agent_id(each)) for phrase, each in given.items()}


class AgentChanges(AgentFields):
    """The fields of an agent that change; the others stay."""

    least_fields = 1
    name = ChannelIdField(required=False, max_length=120, help_text=_help("name"))


class AgentSerializer(serializers.ModelSerializer):
    """An agent."""

    url = serializers.SerializerMethodField(help_text="Where it is.")
    recall_weights = serializers.DictField(
        child=serializers.FloatField(), help_text=_help("recall_weights")
    )
    hand_over_on = serializers.DictField(
        child=serializers.UUIDField(), help_text=_help("hand_over_on")
    )

    class Meta:
        model = Agent
        fields = list(EXAMPLE)

    def get_url(self, agent: Agent) -> str:
        """Return the agent's own address."""
        return str(reverse("agent", args=[agent.pk], request=self.context["request"]))


class AgentPages(KeysetPagination):
    """Agents by name, or by age."""

    orderings = {
        "name": ("name",),
        "-name": ("-name",),
        "-created_at": ("-created_at", "-id"),
        "created_at": ("created_at", "id"),
    }


class AgentQuery(PageQuerySerializer):
    """Query parameters of the list of agents."""

    ordering = ordering_field(AgentPages)
    is_active = serializers.ChoiceField(
        choices=["true", "false"], required=False, help_text="Only active, or only inactive ones."
    )


class AgentsView(ApiView):
    """The tenant's agents. Closed to bound keys: an end user's must not read the prompts."""

    permissions = {"GET": ("orchestrator.view_agent",), "POST": ("orchestrator.add_agent",)}

    @extend_schema(
        operation_id="list_agents",
        summary="List agents",
        tags=["agents"],
        parameters=[AgentQuery],
        responses={200: page_of(AgentSerializer, "A page of agents.")},
    )
    def get(self, request: Request) -> Response:
        """List agents."""
        filters = checked_query(request, AgentQuery)
        agents = Agent.objects.all()
        if "is_active" in filters:
            agents = agents.filter(is_active=filters["is_active"] == "true")
        pages = AgentPages()
        page = pages.paginate_queryset(agents, request, view=self)
        return pages.get_paginated_response([_document(agent, request) for agent in page])

    @extend_schema(
        operation_id="create_agent",
        summary="Make an agent",
        tags=["agents"],
        request=AgentFields,
        parameters=[
            IDEMPOTENCY_KEY,
            ETAG,
            response_header("Location", "The agent's own address.", 201),
        ],
        examples=[
            OpenApiExample("a librarian", request_only=True, value=ASKED),
            OpenApiExample(
                "the librarian", response_only=True, status_codes=["201"], value=EXAMPLE
            ),
        ],
        responses={201: AgentSerializer, **problems(409, 422)},
    )
    def post(self, request: Request) -> Response:
        """Make an agent."""
        checked_query(request, NoParametersSerializer)
        body = AgentFields(data=request.data)
        body.is_valid(raise_exception=True)
        made: list[Agent] = []

        def make() -> UUID:
            made.append(create_agent(tenant_id=required_tenant_id(), **body.validated_data))
            return made[0].id

        agent_id = create_once(request, make)
        agent = Agent.objects.get(pk=agent_id)
        if made:
            self.note(agent, after=row_state(agent))
        else:
            self.note(agent, action=Action.VIEW)
        document = _document(agent, request)
        headers = {"Location": document["url"], "ETag": etag_of(document)}
        return Response(document, status=201, headers=headers)


class AgentView(ApiView):
    """One agent. Closed to bound keys."""

    permissions = {"GET": ("orchestrator.view_agent",), "PATCH": ("orchestrator.change_agent",)}
    scopes = {"GET": (KeyScope.READ, KeyScope.WRITE)}

    @extend_schema(
        operation_id="get_agent",
        summary="Get an agent",
        tags=["agents"],
        parameters=[ETAG],
        examples=[OpenApiExample("the librarian", response_only=True, value=EXAMPLE)],
        responses={200: AgentSerializer},
    )
    def get(self, request: Request, agent_id: UUID) -> Response:
        """Show the agent."""
        checked_query(request, NoParametersSerializer)
        agent = Agent.objects.filter(pk=agent_id).first()
        if agent is None:
            raise Http404
        self.note(agent)
        return tagged(request, _document(agent, request))

    @extend_schema(
        operation_id="update_agent",
        summary="Change an agent",
        description="Only the fields that are given change. An agent cannot be deleted, for its "
        "memory would be nobody's: `is_active: false` closes it.",
        tags=["agents"],
        request=AgentChanges,
        parameters=[IF_MATCH, ETAG],
        examples=[
            OpenApiExample("speak otherwise", request_only=True, value={"persona": "Formal."})
        ],
        responses={200: AgentSerializer, **problems(409, 412, 422)},
    )
    def patch(self, request: Request, agent_id: UUID) -> Response:
        """Change what is given."""
        checked_query(request, NoParametersSerializer)
        body = AgentChanges(data=request.data)
        body.is_valid(raise_exception=True)
        with transaction.atomic():
            agent = Agent.objects.select_for_update().filter(pk=agent_id).first()
            if agent is None:
                raise Http404
            require_match(request, _document(agent, request))
            was = row_state(agent)
            update_agent(agent, **body.validated_data)
            self.note(agent, before=was, after=row_state(agent))
        document = _document(agent, request)
        return Response(document, headers={"ETag": etag_of(document)})


def _document(agent: Agent, request: Request) -> dict[str, Any]:
    return dict(AgentSerializer(agent, context={"request": request}).data)
