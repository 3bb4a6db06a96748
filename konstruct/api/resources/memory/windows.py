"""The short-term window: the recent turns of an agent and a user."""

from datetime import datetime

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http.lists import MemoryOwner
from konstruct.api.http.routes import route
from konstruct.api.http.views import ApiView, operation
from konstruct.orchestrator.models import Agent
from memory.conf import WINDOW
from memory.conversations.short_term import clear_window, get_recent_messages
from memory.models import Role
from tenants import transaction
from tenants.audit.models import Action
from tenants.context import required_tenant_id

MAX_TURNS = 200


class WindowQuery(MemoryOwner):
    """Query parameters of reading a window."""

    limit = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_TURNS,
        help_text=f"Number of newest turns. Default: {WINDOW}.",
    )


class WindowTurnSerializer(serializers.Serializer):
    """A turn in the window."""

    message_id = serializers.UUIDField(
        allow_null=True, help_text="Null for a turn that is not in the transcript."
    )
    role = serializers.ChoiceField(choices=Role.choices)
    name = serializers.CharField(help_text="The speaker's display name, or empty.")
    content = serializers.CharField()
    at = serializers.DateTimeField(allow_null=True, help_text="The time of the turn, if known.")


class WindowSerializer(serializers.Serializer):
    """The recent turns of an agent and a user, oldest first."""

    agent = serializers.CharField(help_text="The agent's name.")
    agent_id = serializers.UUIDField()
    user_id = serializers.CharField()
    turns = WindowTurnSerializer(many=True)


@route("windows/", name="windows")
class WindowView(ApiView):
    """The window of one agent and one user."""

    allows_bound_keys = True

    @operation(
        Action.VIEW,
        "window",
        permission="memory.view_windowclear",
        query=WindowQuery,
        id="get_window",
        returns=WindowSerializer,
    )
    def get(self, request: Request) -> Response:
        """Read a window.

        Returns the turns that the agent gets with the user's next message, oldest first.
        """
        limit = self.query.get("limit", WINDOW)
        agent, user_id = self._agent_and_user()
        turns = get_recent_messages(required_tenant_id(), agent.id, user_id, n=limit)
        document = {
            "agent": agent.name,
            "agent_id": agent.id,
            "user_id": user_id,
            "turns": [
                {
                    "message_id": turn.get("message_id"),
                    "role": turn["role"],
                    "name": turn.get("name", ""),
                    "content": turn["content"],
                    "at": datetime.fromisoformat(turn["at"]) if turn.get("at") else None,
                }
                for turn in turns
            ],
        }
        return Response(WindowSerializer(document).data)

    @operation(
        Action.CLEAR,
        "window",
        permission="memory.add_windowclear",
        query=MemoryOwner,
        own_transaction=True,
        id="clear_window",
        returns={204: None},
    )
    def delete(self, request: Request) -> Response:
        """Clear a window.

        The agent's prompts no longer include earlier turns as recent turns. The transcript is kept,
        and earlier messages can still be recalled.
        """
        agent, user_id = self._agent_and_user()
        with transaction.atomic():
            self.write_log_entry()
            clear_window(required_tenant_id(), agent.id, user_id)
        return Response(status=204)

    def _agent_and_user(self) -> tuple[Agent, str]:
        return self.caller.agent(self.query["agent"]), self.caller.user(self.query["user_id"])
