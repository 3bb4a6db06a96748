"""Tool calls of agents, and the user's consent to them."""

from typing import Any
from uuid import UUID

from django.db.models import Q
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http import bodies, filters, views
from konstruct.orchestrator import exceptions, models, tool_calls
from konstruct.orchestrator.models.tool_calls import ToolCallState
from tenants import transaction
from tenants.audit.models import Action
from tenants.context import required_tenant_id


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


class ToolCallFilter(filters.AgentUserFilter, filters.TimeRangeFilter):
    """Filters of the list."""

    message_id = filters.Filter(serializers.UUIDField, "Only tool calls of this message.")
    state = filters.ChoiceFilter("Only calls in this state.", ToolCallState.choices)


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

    @action(detail=True, methods=["post"], url_path="decision")
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
                    required_tenant_id(),
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
