"""Language models and rerankers of the tenant: their servers, keys, prices and limits."""

from typing import Any, ClassVar
from uuid import UUID

from django.shortcuts import get_object_or_404
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from konstruct.api.http import bodies, schema, views
from konstruct.orchestrator import dry_runs, language_models, models
from tenants.audit.changes import row_state
from tenants.audit.models import Action

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

    url = serializers.SerializerMethodField(help_text="Where it is.")
    has_key = serializers.SerializerMethodField(help_text="Whether it has a key.")

    class Meta:
        model = models.LanguageModel
        fields = ["id", "url", *_SETTINGS, "has_key", "created_at"]

    def get_url(self, model: models.LanguageModel) -> str:
        """Return the URL of the model."""
        name = "language-model-detail"
        return str(reverse(name, args=[model.pk], request=self.context["request"]))

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
        the deployment's. The next one is called if one fails.
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
        rows = models.LanguageModel.objects.select_for_update()
        model = get_object_or_404(rows, pk=language_model_id)
        before = row_state(model)
        return self.changed(language_models.update_language_model(model, **self.fields), before)

    @views.operation(Action.DELETE, errors=(409,))
    def destroy(self, request: Request, language_model_id: UUID) -> Response:
        """Delete a language model that no agent uses."""
        rows = models.LanguageModel.objects.select_for_update()
        model = get_object_or_404(rows, pk=language_model_id)
        self.log(model, before=row_state(model))
        language_models.delete_language_model(model)
        return Response(status=204)

    @action(detail=True, methods=["post"], url_path="test")
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
