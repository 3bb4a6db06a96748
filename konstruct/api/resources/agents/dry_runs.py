"""Dry runs by REST: answers of an agent and of its draft. Nothing is stored."""

from uuid import UUID

from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http.bodies import ChannelIdField, StrictSerializer, TextField
from konstruct.api.http.routes import route
from konstruct.api.http.views import ApiView, operation
from konstruct.api.resources.agents.agents import AgentFields
from konstruct.api.resources.memory.recall_events import RecallTraceSerializer
from konstruct.orchestrator import usage
from konstruct.orchestrator.agents import draft_of, settings_of
from konstruct.orchestrator.models import Agent
from konstruct.orchestrator.pipeline.dry_run import dry_run
from tenants.audit.models import Action

TRY = "audit.try_agent"
# The settings of an agent that change what it answers.
DRAFT_FIELDS = frozenset(
    {
        *("system_prompt", "identity", "persona", "model_tier", "model", "max_completion_tokens"),
        *("tools", "escalate_on", "hands_to", "hand_over_on", "hand_back_on"),
        *("recall_mode", "recall_top_k", "recall_neighbours", "recall_gate", "recall_preset"),
        *("recall_open_at", "recall_keep_at", "recall_weights"),
    }
)


class DraftFields(AgentFields):
    """Settings of a draft of an agent. Omitted settings are the agent's."""

    def get_fields(self) -> dict[str, serializers.Field]:
        """Return the settings that change an answer."""
        fields = super().get_fields()
        return {name: field for name, field in fields.items() if name in DRAFT_FIELDS}


class NewDryRunSerializer(StrictSerializer):
    """A message to an agent."""

    content = TextField(help_text="The message.")
    user_id = ChannelIdField(
        required=False,
        allow_null=True,
        help_text="The user who writes. Default: a user without memories.",
    )
    draft = DraftFields(
        required=False, help_text="Settings of a draft, which gets the same message."
    )


class DryTraceSerializer(RecallTraceSerializer):
    """The recall and the prompt of a reply, as in a recall event."""

    query = serializers.CharField(help_text="The query.")
    abstained = serializers.BooleanField(help_text="No memory was relevant enough.")
    embedding_model = serializers.CharField()
    milliseconds = serializers.FloatField(help_text="Duration of the recall.")


class DryReplySerializer(serializers.Serializer):
    """The result of a dry run."""

    reply = serializers.CharField(help_text="The reply. Empty: no reply, or none yet.")
    agent = serializers.CharField(source="agent.name", help_text="Name of the agent that answers.")
    agent_id = serializers.UUIDField(source="agent.pk")
    steps = serializers.ListField(
        child=serializers.CharField(), help_text="The decision and its reason."
    )
    problem = serializers.CharField(
        help_text="Why the language model gave no usable answer. Empty: there was no problem."
    )
    asked_at = serializers.DateTimeField(help_text="When the message was sent.")
    answered_at = serializers.DateTimeField(help_text="When the reply was there.")
    recall = DryTraceSerializer(
        source="trace", allow_null=True, help_text="null: no language model is called."
    )


class DryRunSerializer(serializers.Serializer):
    """The replies of an agent and of its draft."""

    user_id = serializers.CharField(allow_null=True, help_text="The person who writes.")
    changes = serializers.ListField(
        child=serializers.CharField(),
        help_text="Names of the settings in which the draft differs from the agent.",
    )
    live = DryReplySerializer(help_text="The result of the current agent.")
    draft = DryReplySerializer(
        allow_null=True,
        help_text="The result of the draft. null: no draft, or one without changes.",
    )


@route("agents/<uuid:agent_id>/dry-runs/", name="dry-runs")
class DryRunsView(ApiView):
    """Dry runs of an agent. Bound keys have no access: a dry run shows prompts."""

    @operation(
        Action.TRY,
        "agent",
        permission=TRY,
        body=NewDryRunSerializer,
        own_transaction=True,
        id="dry_run_agent",
        returns=DryRunSerializer,
        errors=(422,),
    )
    def post(self, request: Request, agent_id: UUID) -> Response:
        """Send a message to an agent in a dry run.

        Applies the rules of a channel (for people and other agents), and calls the language model
        with the prompt, the memory and the tools of a reply. It stores only the usage of the
        language model and an entry in the access log, and describes tool calls instead of running
        them. `draft` shows the effect of other settings. The response arrives when the language
        model has answered; the agent and the draft may each take as long as a reply. If there is no
        answer, `problem` has the reason.
        """
        agent = get_object_or_404(Agent, pk=agent_id)
        content, user_id = self.fields["content"], self.fields.get("user_id")
        if user_id is not None:
            self.caller.user(user_id)
        draft = draft_of(agent, **self.fields["draft"]) if "draft" in self.fields else agent
        live_settings, draft_settings = settings_of(agent), settings_of(draft)
        changes = [name for name in live_settings if draft_settings[name] != live_settings[name]]
        usage.require_room(usage.MODEL_CALL_QUOTAS)
        self.log(agent)
        live = dry_run(agent, content, user_id=user_id)
        document = {
            "user_id": user_id,
            "changes": changes,
            "live": live,
            "draft": dry_run(draft, content, user_id=user_id) if changes else None,
        }
        return Response(DryRunSerializer(document).data)
