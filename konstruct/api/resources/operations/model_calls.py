"""Usage of language models by REST: calls, tokens and money."""

from datetime import timedelta
from typing import Final

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http.bodies import AwareDateTimeField, ChannelIdField, StrictSerializer
from konstruct.api.http.routes import route
from konstruct.api.http.views import AgentNameField, ApiView, operation
from konstruct.orchestrator import metering
from tenants.audit.models import Action

# The days of usage without `since`, and the rows of an answer.
DAYS: Final = 30
MAX_ROWS: Final = 1_000


class ModelUsageQuery(StrictSerializer):
    """Query parameters of the usage of language models."""

    agent = ChannelIdField(required=False, help_text="Only of this agent (name or id).")
    since = AwareDateTimeField(
        required=False,
        help_text=f"Only calls from this moment on (with a time zone). Default: {DAYS} days ago.",
    )
    until = AwareDateTimeField(
        required=False, help_text="Only calls before this moment (with a time zone)."
    )


class ModelUsageRowSerializer(serializers.Serializer):
    """The calls of one day, agent, purpose and model."""

    day = serializers.DateField(help_text="The day (UTC).")
    agent = AgentNameField(allow_null=True, help_text="The agent's name. null: no agent.")
    agent_id = serializers.UUIDField(allow_null=True)
    purpose = serializers.CharField(help_text="Purpose of the calls, such as extraction.")
    model = serializers.CharField(help_text="The language model.")
    calls = serializers.IntegerField(help_text="All calls.")
    failed = serializers.IntegerField(help_text="Calls that failed.")
    unknown = serializers.IntegerField(
        help_text="Calls without an outcome, because their process ended."
    )
    prompt_tokens = serializers.IntegerField(help_text="Tokens sent.")
    completion_tokens = serializers.IntegerField(help_text="Tokens received.")
    cost = serializers.DecimalField(
        max_digits=None, decimal_places=6, help_text="By the prices at the time of the calls."
    )


class ModelUsageSerializer(serializers.Serializer):
    """Usage of language models, newest day first."""

    results = ModelUsageRowSerializer(many=True)
    is_complete = serializers.BooleanField(
        help_text=f"Whether these are all rows. False: there are more than {MAX_ROWS:,}; ask for a"
        " shorter time."
    )


@route("usage/models/", name="model-usage")
class ModelUsageView(ApiView):
    """Calls, tokens and money of language models. Bound keys have no access."""

    @operation(
        Action.VIEW,
        "model usage",
        permission="orchestrator.view_modelcall",
        query=ModelUsageQuery,
        id="get_model_usage",
        returns=ModelUsageSerializer,
    )
    def get(self, request: Request) -> Response:
        """Sum calls, tokens and money of language models by day, agent, purpose and model."""
        agent = self.query.get("agent")
        rows = metering.usage(
            since=self.query.get("since") or timezone.now() - timedelta(days=DAYS),
            until=self.query.get("until"),
            agent_id=None if agent is None else self.caller.agent(agent).id,
            limit=MAX_ROWS + 1,
        )
        documents = self.documents(rows[:MAX_ROWS], ModelUsageRowSerializer)
        return Response({"results": documents, "is_complete": len(rows) <= MAX_ROWS})
