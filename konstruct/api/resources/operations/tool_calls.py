"""Tool calls of agents, and the user's consent to them."""

from uuid import UUID

from django.db.models import Q
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http import lists
from konstruct.api.http.bodies import StrictBooleanField, StrictSerializer
from konstruct.api.http.routes import route
from konstruct.api.http.views import AgentNameField, ApiView, UrlField, operation
from konstruct.api.models import KeyScope
from konstruct.orchestrator.exceptions import AlreadyDecided
from konstruct.orchestrator.models import ToolCall
from konstruct.orchestrator.models.tool_calls import ToolCallState
from konstruct.orchestrator.tools import tool_calls
from tenants import transaction
from tenants.audit.models import Action
from tenants.context import required_tenant_id


class DecisionSerializer(StrictSerializer):
    """The user's decision."""

    approve = StrictBooleanField(help_text="true executes the call, false denies it.")


class ToolCallSerializer(serializers.ModelSerializer):
    """A tool call that an agent requested while it answered a message."""

    url = UrlField("tool-call")
    agent = AgentNameField(help_text="The agent's name.")
    message_id = serializers.UUIDField(help_text="The message that the agent answers.")
    arguments = serializers.JSONField(help_text="The arguments of the call.")
    state = serializers.ChoiceField(
        choices=ToolCallState.choices, help_text="The state of the call."
    )

    class Meta:
        model = ToolCall
        fields = [
            *("id", "url", "state", "agent", "agent_id", "user_id", "thread_id", "message_id"),
            *("asked_by_id", "content", "name", "arguments", "question"),
            *("created_at", "expires_at", "decided_at", "decided_by", "done_at", "result"),
        ]


class ToolCallQuery(lists.AgentUserQuery, lists.TimeRangeQuery, lists.PageQuerySerializer):
    """Query parameters of the list."""

    message_id = serializers.UUIDField(required=False, help_text="Only tool calls of this message.")
    state = serializers.ChoiceField(
        choices=ToolCallState.choices, required=False, help_text="Only calls in this state."
    )
    ordering = lists.ordering_field(lists.ByCreation)


class BaseToolCallsView(ApiView):
    """A view of tool calls."""

    allows_bound_keys = True


@route("tool-calls/", name="tool-calls")
class ToolCallsView(BaseToolCallsView):
    """The tool calls of agents."""

    @operation(
        Action.LIST,
        "tool calls",
        permission="orchestrator.view_toolcall",
        query=ToolCallQuery,
        id="list_tool_calls",
        page=ToolCallSerializer,
    )
    def get(self, request: Request) -> Response:
        """List tool calls.

        `state=waiting` lists the calls that need a user's consent. Each has the `question` to ask.
        """
        rows = lists.apply_filters(ToolCall.objects.all(), self.query, self.caller)
        return self.page(rows, lists.ByCreation(), ToolCallSerializer)


@route("tool-calls/<uuid:call_id>/", name="tool-call")
class ToolCallView(BaseToolCallsView):
    """One tool call."""

    @operation(
        Action.VIEW,
        "tool call",
        scope=(KeyScope.READ, KeyScope.WRITE),
        permission="orchestrator.view_toolcall",
        id="get_tool_call",
        returns=ToolCallSerializer,
    )
    def get(self, request: Request, call_id: UUID) -> Response:
        """Get a tool call."""
        return self.show(ToolCall.objects.all(), ToolCallSerializer, call_id)


@route("tool-calls/<uuid:call_id>/decision/", name="decision")
class DecisionView(BaseToolCallsView):
    """The user's decision on a tool call."""

    @operation(
        Action.DECIDE,
        "tool call",
        permission="orchestrator.change_toolcall",
        body=DecisionSerializer,
        own_transaction=True,
        id="decide_tool_call",
        returns=ToolCallSerializer,
        errors=(409,),
    )
    def post(self, request: Request, call_id: UUID) -> Response:
        """Approve or deny a tool call.

        Send the user's answer to the call's `question`. A worker executes an approved call once,
        and answers the message. Repeating the same decision changes nothing.
        """
        approve, late = self.fields["approve"], None
        bound_to = {"agent_id": self.caller.agent_id, "user_id": self.caller.user_id}
        with transaction.atomic():
            try:
                decided = tool_calls.decide(
                    required_tenant_id(),
                    call_id,
                    approve,
                    by=f"{self.caller.name}, by the API",
                    visible=Q(
                        **{name: value for name, value in bound_to.items() if value is not None}
                    ),
                )
            except AlreadyDecided as error:
                late = error  # commits that the call has expired
            else:
                self.log(decided, approve=approve, state=decided.state)
                self.write_log_entry()
        if late is not None:
            raise late
        return Response(self.document(decided, ToolCallSerializer))
