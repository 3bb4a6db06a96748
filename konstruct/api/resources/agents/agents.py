"""Agents with their versions, and the language models of the tenant."""

from typing import Any, ClassVar
from uuid import UUID

from django.http import HttpResponseBase
from django.shortcuts import get_object_or_404
from rest_framework import decorators, mixins, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http import bodies, lists, schema, views
from konstruct.api.models import KeyScope
from konstruct.orchestrator import dry_runs, exceptions, language_models, models, tool_catalog
from konstruct.orchestrator.agents import create_agent, find_agent, restore_agent, update_agent
from konstruct.orchestrator.models.agents import FactReview
from memory.recall.policy import MAX_NEIGHBOURS, MAX_TOP_K, MAX_WEIGHT, WEIGHT_NAMES
from tenants.audit.changes import row_state
from tenants.audit.models import Action
from tenants.context import required_tenant_id

MAX_PROMPT_CHARACTERS = 100_000
MAX_RULES = 100
MAX_INTEGER = 2**31 - 1
SETTINGS = [
    *("name", "system_prompt", "identity", "persona", "model", "model_tier", "language_models"),
    *("reranker", "accepts_client_instructions", "max_completion_tokens", "max_tokens_per_day"),
    *("is_active", "conversation_pause_hours", "language", "time_zone"),
    *("recall_mode", "recall_top_k", "recall_gate", "recall_preset"),
    *("recall_open_at", "recall_keep_at", "recall_neighbours", "recall_weights", "tools"),
    *("escalate_on", "escalate_after_failures", "hands_to", "hand_over_on", "hand_back_on"),
    *("extracts_facts", "extraction_model", "extraction_idle_seconds", "extraction_batch_size"),
    *("extraction_max_tokens_per_day", "fact_review", "fact_review_by_slot"),
]
LIMITS = {
    "max_completion_tokens": (1, MAX_INTEGER),
    "max_tokens_per_day": (0, MAX_INTEGER),
    "conversation_pause_hours": (1, 365 * 24),
    "recall_top_k": (1, MAX_TOP_K),
    "recall_open_at": (0, 1),
    "recall_keep_at": (0, 1),
    "recall_neighbours": (0, MAX_NEIGHBOURS),
    "escalate_after_failures": (1, MAX_RULES),
    "extraction_idle_seconds": (0, 7 * 24 * 3600),
    "extraction_batch_size": (1, 200),
    "extraction_max_tokens_per_day": (0, MAX_INTEGER),
}


def _help(name: str) -> str:
    return str(models.Agent._meta.get_field(name).help_text)  # type: ignore[union-attr]  # none is a relation


class RecallWeightsSerializer(bodies.StrictSerializer):
    """Weights of the ranking that differ from the measured ones."""

    def get_fields(self) -> dict[str, serializers.Field]:
        """One for each weight that there is."""
        return {
            name: bodies.StrictFloatField(required=False, min_value=0, max_value=MAX_WEIGHT)
            for name in WEIGHT_NAMES
        }


def _agent_id(name_or_id: str) -> UUID:
    try:
        return find_agent(name_or_id).id
    except exceptions.AgentNotFound as error:
        raise serializers.ValidationError(str(error)) from error


def _phrases(field: Any, name: str) -> Any:
    phrase = bodies.StrictCharField(max_length=200, validators=[bodies.NOT_BLANK])
    return field(required=False, help_text=_help(name), child=phrase, max_length=MAX_RULES)


class AgentFields(bodies.StrictModelSerializer):
    """The fields of a new agent."""

    name = bodies.ChannelIdField(max_length=120, help_text=_help("name"))
    recall_weights = RecallWeightsSerializer(required=False, help_text=_help("recall_weights"))
    tools = bodies.BoundedListField(
        child=serializers.ChoiceField(choices=sorted(tool_catalog.TOOLS)),
        required=False,
        max_length=MAX_RULES,
        help_text=_help("tools"),
    )
    language_models = bodies.BoundedListField(
        child=bodies.StrictCharField(max_length=120),
        required=False,
        max_length=MAX_RULES,
        help_text=_help("language_models"),
    )
    escalate_on = _phrases(bodies.BoundedListField, "escalate_on")
    hands_to = serializers.ListField(
        child=bodies.ChannelIdField(),
        required=False,
        max_length=MAX_RULES,
        help_text=f"{_help('hands_to')} Names or ids.",
    )
    hand_over_on = serializers.DictField(
        child=bodies.ChannelIdField(),
        required=False,
        help_text=f"{_help('hand_over_on')} A name is accepted too.",
    )
    hand_back_on = _phrases(serializers.ListField, "hand_back_on")
    fact_review_by_slot = serializers.DictField(
        child=serializers.ChoiceField(choices=FactReview.choices),
        required=False,
        help_text=_help("fact_review_by_slot"),
    )

    class Meta:
        model = models.Agent
        fields = SETTINGS
        validators: ClassVar[list[Any]] = []  # `update_agent` checks the constraints
        extra_kwargs: ClassVar = {
            **{
                name: {"max_length": MAX_PROMPT_CHARACTERS}
                for name in ("system_prompt", "identity", "persona")
            },
            **{
                name: {"min_value": lowest, "max_value": highest}
                for name, (lowest, highest) in LIMITS.items()
            },
        }

    def validate_hands_to(self, names: list[str]) -> list[UUID]:
        """The ids of agents that are named."""
        return [_agent_id(name) for name in names]

    def validate_hand_over_on(self, names: dict[str, str]) -> dict[str, str]:
        """The same phrases with the ids of agents that are named."""
        return {phrase: str(_agent_id(name)) for phrase, name in names.items()}


class AgentChanges(AgentFields):
    """The fields of an agent to change. Omitted fields are unchanged."""

    min_fields = 1
    name = bodies.ChannelIdField(required=False, max_length=120, help_text=_help("name"))


class AgentSerializer(serializers.ModelSerializer):
    """An agent."""

    url = views.UrlField("agent-detail", read_only=True, help_text="Where it is.")
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
        model = models.Agent
        fields = ["id", "url", *SETTINGS, "created_at"]


class AgentFilter(lists.FilterSet):
    """Filters of the list of agents."""

    is_active = lists.FlagFilter("Only active, or only inactive ones.", ["true", "false"])


class AgentViewSet(mixins.ListModelMixin, views.ApiViewSet):
    """The tenant's agents. Bound keys have no access: an end user's must not read the prompts."""

    queryset = models.Agent.objects.all()
    serializer_class = AgentSerializer
    filterset_class = AgentFilter
    ordering = ("name",)
    ordering_fields = ("name", "created_at")
    subject = "agent"

    @views.operation(
        Action.CREATE,
        body=AgentFields,
        errors=(402, 409, 422),
        headers=[schema.IDEMPOTENCY_KEY, schema.ETAG, schema.LOCATION],
    )
    def create(self, request: Request) -> Response:
        """Create an agent."""

        def create() -> UUID:
            author = self.caller.author
            return create_agent(tenant_id=required_tenant_id(), author=author, **self.fields).id

        return self.create_once(create, with_etag=True)

    @views.operation(Action.VIEW, scope=(KeyScope.READ, KeyScope.WRITE), headers=[schema.ETAG])
    def retrieve(self, request: Request, agent_id: UUID) -> HttpResponseBase:
        """Get an agent."""
        return views.etag_response(request, self.document(self.get_object()))

    @views.operation(
        Action.EDIT,
        body=AgentChanges,
        errors=(402, 409, 422),
        headers=[schema.IF_MATCH, schema.ETAG],
    )
    def partial_update(self, request: Request, agent_id: UUID) -> Response:
        """Change an agent.

        Changes only the given fields. An agent cannot be deleted, because its memory would have no
        owner. Deactivate it with `is_active: false`.
        """
        author = self.caller.author
        return self.change(
            self.locked(),
            lambda agent: update_agent(agent, author=author, **self.fields),
            with_etag=True,
        )


class AgentVersionSerializer(bodies.RowSerializer):
    """The settings of an agent after a change."""

    settings = bodies.ObjectField(help_text="All settings of the agent, by column.")

    class Meta:
        model = models.AgentVersion
        fields = [
            *("number", "settings", "changed", "restores", "note", "author", "author_name"),
            "created_at",
        ]


class RestorationSerializer(bodies.StrictSerializer):
    """The note on a restored version."""

    note = bodies.OptionalTextField(help_text="The author's note on the change.")


class AgentVersionViewSet(views.ApiViewSet):
    """The versions of an agent. Bound keys have no access."""

    queryset = models.AgentVersion.objects.all()
    serializer_class = AgentVersionSerializer
    ordering = ("-number",)
    subject = "agent version"
    lookup_url_kwarg = "number"
    lookup_value_converter = "int"

    @views.operation(
        Action.LIST,
        "versions of an agent",
        permission="orchestrator.view_agent",
    )
    def list(self, request: Request, agent_id: UUID) -> Response:
        """List the versions of an agent, the newest first.

        Each change of an agent by the API or the admin creates a version with all settings, the
        author and the changed fields. An agent without changes since versions were introduced has
        none.
        """
        agent = get_object_or_404(models.Agent.objects.only("pk"), pk=agent_id)
        return self.page(models.AgentVersion.objects.filter(agent_id=agent.pk))

    @decorators.action(detail=True, methods=["post"], url_path="restore")
    @views.operation(
        Action.EDIT,
        "agent",
        permission="orchestrator.change_agent",
        body=RestorationSerializer,
        returns=AgentSerializer,
        errors=(402, 409, 422),
        headers=[schema.ETAG],
    )
    def restore_agent(self, request: Request, agent_id: UUID, number: int) -> Response:
        """Restore a version of an agent.

        Applies the settings of the version to the agent, and creates a new version. Settings that
        did not exist at the time of the version are unchanged.
        """
        agent = get_object_or_404(models.Agent.objects.select_for_update(), pk=agent_id)
        before = row_state(agent)
        restore_agent(agent, number, author=self.caller.author, note=self.fields.get("note", ""))
        agent = models.Agent.objects.get(pk=agent_id)
        return self.changed(agent, before, AgentSerializer, with_etag=True, restored=number)


_SETTINGS = [
    *("name", "kind", "endpoint", "model", "prompt_price", "completion_price", "timeout_seconds"),
    *("max_tokens_per_day", "position", "min_score", "is_active"),
]


class LanguageModelFields(bodies.StrictModelSerializer):
    """The fields of a language model."""

    name = bodies.StrictCharField(
        max_length=120,
        validators=[bodies.ID_TEXT],
        help_text="The name by which agents refer to it.",
    )
    key = bodies.StrictCharField(
        required=False,
        allow_blank=True,
        max_length=2000,
        help_text="The key of its server. No response shows it. Empty: none.",
    )

    class Meta:
        model = models.LanguageModel
        fields = [*_SETTINGS, "key"]
        validators: ClassVar[list[Any]] = []  # the service checks the constraints


class LanguageModelChanges(LanguageModelFields):
    """The fields of a language model to change. Omitted fields are unchanged."""

    min_fields = 1
    name = bodies.StrictCharField(
        required=False,
        max_length=120,
        validators=[bodies.ID_TEXT],
        help_text="The name by which agents refer to it.",
    )


class LanguageModelSerializer(serializers.ModelSerializer):
    """A language model of the tenant, without its key."""

    url = views.UrlField("language-model-detail", read_only=True, help_text="Where it is.")
    has_key = serializers.SerializerMethodField(help_text="Whether it has a key.")

    class Meta:
        model = models.LanguageModel
        fields = ["id", "url", *_SETTINGS, "has_key", "created_at"]

    def get_has_key(self, model: models.LanguageModel) -> bool:
        """Return whether there is a key."""
        return bool(model.secret_key)


class LanguageModelTestSerializer(serializers.Serializer):
    """What a language model can do, and how long it takes."""

    problem = serializers.CharField(help_text="Why it does not answer. Empty: it answers.")
    first_text_seconds = serializers.FloatField(
        allow_null=True, help_text="Until the first text. null: it does not stream."
    )
    seconds = serializers.FloatField(
        allow_null=True, help_text="Until the whole text. null: it does not answer."
    )
    streams = serializers.BooleanField(help_text="Whether texts come in parts.")
    calls_tools = serializers.BooleanField(help_text="Whether it called a tool.")
    follows_schema = serializers.BooleanField(
        help_text="Whether its answer followed a JSON schema, which the extraction of facts uses."
    )


class LanguageModelViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, views.ApiViewSet):
    """Language models of the tenant. Bound keys have no access.

    Changes need the scopes `read` and `write`: models get what users have said.
    """

    queryset = models.LanguageModel.objects.all()
    serializer_class = LanguageModelSerializer
    ordering = ("name",)
    subject = "language model"

    @views.operation(
        Action.CREATE,
        body=LanguageModelFields,
        errors=(409, 422),
        headers=[schema.IDEMPOTENCY_KEY, schema.LOCATION],
    )
    def create(self, request: Request) -> Response:
        """Create a language model or a reranker.

        Agents without `language_models` call the models with a `position`, lowest first, instead of
        the deployment's. The next one is called if one fails. A tenant has at most 50: one more is
        a 409 `limit-reached`.
        """
        self.require_read()
        return self.create_once(lambda: language_models.create_language_model(**self.fields).pk)

    @views.operation(Action.EDIT, body=LanguageModelChanges, errors=(409, 422))
    def partial_update(self, request: Request, language_model_id: UUID) -> Response:
        """Change a language model.

        A change of `endpoint` needs the `key` again. Name and kind cannot change while agents use
        it.
        """
        self.require_read()
        update = language_models.update_language_model
        return self.change(self.locked(), lambda model: update(model, **self.fields))

    @views.operation(Action.DELETE, errors=(409,))
    def destroy(self, request: Request, language_model_id: UUID) -> Response:
        """Delete a language model that no agent uses."""
        return self.delete_row(self.locked(), language_models.delete_language_model)

    @decorators.action(detail=True, methods=["post"], url_path="test")
    @views.operation(
        Action.TRY,
        id="test_language_model",
        own_transaction=True,
        returns=LanguageModelTestSerializer,
    )
    def measure(self, request: Request, language_model_id: UUID) -> Response:
        """Test a language model.

        Asks it for a text, a tool call and an answer in a JSON schema, and a reranker for scores,
        which takes up to its timeout. Its tokens are counted.
        """
        model = self.get_object()
        return Response(LanguageModelTestSerializer(dry_runs.measure_language_model(model)).data)
