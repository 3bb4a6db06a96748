"""Agents: identity, language model and memory settings."""

from typing import Any
from uuid import UUID

from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from konstruct.api.http import lists
from konstruct.api.http.bodies import (
    NOT_BLANK,
    BoundedListField,
    ChannelIdField,
    StrictBooleanField,
    StrictCharField,
    StrictFloatField,
    StrictIntegerField,
    StrictSerializer,
)
from konstruct.api.http.idempotency import IDEMPOTENCY_KEY, create_once
from konstruct.api.http.routes import route
from konstruct.api.http.schema import response_header
from konstruct.api.http.views import (
    IF_MATCH,
    ApiView,
    etag_of,
    etag_response,
    operation,
    require_match,
)
from konstruct.api.models import KeyScope
from konstruct.orchestrator.agents import create_agent, find_agent, update_agent
from konstruct.orchestrator.exceptions import AgentNotFound
from konstruct.orchestrator.models import Agent, ModelTier, RecallMode, RecallPreset
from konstruct.orchestrator.models.agents import FactReview
from konstruct.orchestrator.tool_catalog import TOOLS
from memory.recall.policy import MAX_NEIGHBOURS, MAX_TOP_K, MAX_WEIGHT, WEIGHT_NAMES
from tenants.audit.changes import row_state
from tenants.audit.models import Action
from tenants.context import required_tenant_id

MAX_PROMPT_CHARACTERS = 100_000
MAX_RULES = 100
MAX_INTEGER = 2**31 - 1
MAX_IDLE_SECONDS = 7 * 24 * 3600
MAX_PAUSE_HOURS = 365 * 24
MAX_BATCH_SIZE = 200

ETAG = response_header("ETag", "The ETag of the agent, for If-Match and If-None-Match.", 200, 201)


def _help(name: str) -> str:
    return str(Agent._meta.get_field(name).help_text)  # type: ignore[union-attr]  # none is a relation


class RecallWeightsSerializer(StrictSerializer):
    """Weights of the ranking that differ from the measured ones."""

    def get_fields(self) -> dict[str, serializers.Field]:
        """One for each weight that there is."""
        return {
            name: StrictFloatField(required=False, min_value=0, max_value=MAX_WEIGHT)
            for name in WEIGHT_NAMES
        }


def _agent_id(name_or_id: str) -> UUID:
    try:
        return find_agent(name_or_id).id
    except AgentNotFound as error:
        raise serializers.ValidationError(str(error)) from error


def _optional(field: type[serializers.Field], name: str, note: str = "", **options: Any) -> Any:
    """Return an optional field with the help text of the model's field of that name."""
    return field(required=False, help_text=f"{_help(name)}{note}", **options)


def _prompt(name: str) -> Any:
    return _optional(StrictCharField, name, allow_blank=True, max_length=MAX_PROMPT_CHARACTERS)


def _number(field: type[serializers.Field], name: str, lowest: int, highest: int) -> Any:
    return _optional(field, name, allow_null=True, min_value=lowest, max_value=highest)


def _whole_number(name: str, lowest: int, highest: int) -> Any:
    return _optional(StrictIntegerField, name, min_value=lowest, max_value=highest)


def _phrases(field: type[serializers.Field], name: str) -> Any:
    phrase = StrictCharField(max_length=200, validators=[NOT_BLANK])
    return _optional(field, name, child=phrase, max_length=MAX_RULES)


class AgentFields(StrictSerializer):
    """The fields of a new agent."""

    name = ChannelIdField(max_length=120, help_text=_help("name"))
    system_prompt = _prompt("system_prompt")
    identity = _prompt("identity")
    persona = _prompt("persona")
    model = _optional(StrictCharField, "model", allow_blank=True, max_length=200)
    model_tier = _optional(serializers.ChoiceField, "model_tier", choices=ModelTier.choices)
    accepts_client_instructions = _optional(StrictBooleanField, "accepts_client_instructions")
    max_completion_tokens = _number(StrictIntegerField, "max_completion_tokens", 1, MAX_INTEGER)
    is_active = _optional(StrictBooleanField, "is_active")
    conversation_pause_hours = _whole_number("conversation_pause_hours", 1, MAX_PAUSE_HOURS)
    recall_mode = _optional(serializers.ChoiceField, "recall_mode", choices=RecallMode.choices)
    recall_top_k = _number(StrictIntegerField, "recall_top_k", 1, MAX_TOP_K)
    recall_gate = _optional(StrictBooleanField, "recall_gate")
    recall_preset = _optional(
        serializers.ChoiceField, "recall_preset", choices=RecallPreset.choices
    )
    recall_open_at = _number(StrictFloatField, "recall_open_at", 0, 1)
    recall_keep_at = _number(StrictFloatField, "recall_keep_at", 0, 1)
    recall_neighbours = _number(StrictIntegerField, "recall_neighbours", 0, MAX_NEIGHBOURS)
    recall_weights = _optional(RecallWeightsSerializer, "recall_weights")
    tools = _optional(
        BoundedListField,
        "tools",
        child=serializers.ChoiceField(choices=sorted(TOOLS)),
        max_length=MAX_RULES,
    )
    escalate_on = _phrases(BoundedListField, "escalate_on")
    escalate_after_failures = _number(StrictIntegerField, "escalate_after_failures", 1, MAX_RULES)
    hands_to = _optional(
        serializers.ListField,
        "hands_to",
        " Names or ids.",
        child=ChannelIdField(),
        max_length=MAX_RULES,
    )
    hand_over_on = _optional(
        serializers.DictField, "hand_over_on", " A name is accepted too.", child=ChannelIdField()
    )
    hand_back_on = _phrases(serializers.ListField, "hand_back_on")
    extracts_facts = _optional(StrictBooleanField, "extracts_facts")
    extraction_model = _optional(
        StrictCharField, "extraction_model", allow_blank=True, max_length=200
    )
    extraction_idle_seconds = _whole_number("extraction_idle_seconds", 0, MAX_IDLE_SECONDS)
    extraction_batch_size = _whole_number("extraction_batch_size", 1, MAX_BATCH_SIZE)
    extraction_max_tokens_per_day = _number(
        StrictIntegerField, "extraction_max_tokens_per_day", 0, MAX_INTEGER
    )
    fact_review = _optional(serializers.ChoiceField, "fact_review", choices=FactReview.choices)
    fact_review_by_slot = _optional(
        serializers.DictField,
        "fact_review_by_slot",
        child=serializers.ChoiceField(choices=FactReview.choices),
    )

    def validate_hands_to(self, names: list[str]) -> list[UUID]:
        """The ids of agents that are named."""
        return [_agent_id(name) for name in names]

    def validate_hand_over_on(self, names: dict[str, str]) -> dict[str, str]:
        """The same phrases with the ids of agents that are named."""
        return {phrase: str(_agent_id(name)) for phrase, name in names.items()}


class AgentChanges(AgentFields):
    """The fields of an agent to change. Omitted fields are unchanged."""

    min_fields = 1
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
    fact_review_by_slot = serializers.DictField(
        child=serializers.ChoiceField(choices=FactReview.choices),
        help_text=_help("fact_review_by_slot"),
    )

    class Meta:
        model = Agent
        fields = [
            *("id", "url", "name", "system_prompt", "identity", "persona", "model", "model_tier"),
            *("accepts_client_instructions", "max_completion_tokens", "is_active"),
            "conversation_pause_hours",
            *("recall_mode", "recall_top_k", "recall_gate", "recall_preset", "recall_open_at"),
            *("recall_keep_at", "recall_neighbours", "recall_weights", "tools", "escalate_on"),
            *("escalate_after_failures", "hands_to", "hand_over_on", "hand_back_on"),
            *("extracts_facts", "extraction_model", "extraction_idle_seconds"),
            *("extraction_batch_size", "extraction_max_tokens_per_day"),
            *("fact_review", "fact_review_by_slot", "created_at"),
        ]

    def get_url(self, agent: Agent) -> str:
        """Return the URL of the agent."""
        return str(reverse("agent", args=[agent.pk], request=self.context["request"]))


class AgentPages(lists.KeysetPagination):
    """Agents by name, or by age."""

    orderings = {"name": ("name",), "-name": ("-name",), **lists.ByCreation.orderings}


class AgentQuery(lists.PageQuerySerializer):
    """Query parameters of the list of agents."""

    ordering = lists.ordering_field(AgentPages)
    is_active = lists.FlagField(
        choices=["true", "false"], required=False, help_text="Only active, or only inactive ones."
    )


@route("agents/", name="agents")
class AgentsView(ApiView):
    """The tenant's agents. Bound keys have no access: an end user's must not read the prompts."""

    @operation(
        Action.LIST,
        "agents",
        permission="orchestrator.view_agent",
        query=AgentQuery,
        id="list_agents",
        page=AgentSerializer,
    )
    def get(self, request: Request) -> Response:
        """List agents."""
        agents = lists.apply_filters(Agent.objects.all(), self.query, self.caller)
        return self.page(agents, AgentPages(), AgentSerializer)

    @operation(
        Action.CREATE,
        "agent",
        permission="orchestrator.add_agent",
        body=AgentFields,
        id="create_agent",
        returns={201: AgentSerializer},
        errors=(402, 409, 422),
        headers=[
            IDEMPOTENCY_KEY,
            ETAG,
            response_header("Location", "The URL of the agent.", 201),
        ],
    )
    def post(self, request: Request) -> Response:
        """Create an agent."""

        def create() -> UUID:
            author = self.caller.author
            return create_agent(tenant_id=required_tenant_id(), author=author, **self.fields).id

        agent_id, is_new = create_once(request, create)
        agent = Agent.objects.get(pk=agent_id)
        self.log_created(agent, is_new=is_new)
        document = self.document(agent, AgentSerializer)
        headers = {"Location": document["url"], "ETag": etag_of(document)}
        return Response(document, status=201, headers=headers)


@route("agents/<uuid:agent_id>/", name="agent")
class AgentView(ApiView):
    """One agent. Bound keys have no access."""

    @operation(
        Action.VIEW,
        "agent",
        scope=(KeyScope.READ, KeyScope.WRITE),
        permission="orchestrator.view_agent",
        id="get_agent",
        returns=AgentSerializer,
        headers=[ETAG],
    )
    def get(self, request: Request, agent_id: UUID) -> Response:
        """Get an agent."""
        agent = get_object_or_404(Agent, pk=agent_id)
        self.log(agent)
        return etag_response(request, self.document(agent, AgentSerializer))

    @operation(
        Action.EDIT,
        "agent",
        permission="orchestrator.change_agent",
        body=AgentChanges,
        id="update_agent",
        returns=AgentSerializer,
        errors=(402, 409, 422),
        headers=[IF_MATCH, ETAG],
    )
    def patch(self, request: Request, agent_id: UUID) -> Response:
        """Change an agent.

        Changes only the given fields. An agent cannot be deleted, because its memory would have no
        owner. Deactivate it with `is_active: false`.
        """
        agent = get_object_or_404(Agent.objects.select_for_update(), pk=agent_id)
        require_match(request, self.document(agent, AgentSerializer))
        before = row_state(agent)
        update_agent(agent, author=self.caller.author, **self.fields)
        return self.changed(agent, before, AgentSerializer, with_etag=True)
