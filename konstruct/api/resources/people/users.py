"""End users, with counts of their messages and facts."""

from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http.lists import (
    AgentUserQuery,
    KeysetPagination,
    PageQuerySerializer,
    Position,
    ordering_field,
)
from konstruct.api.http.routes import route
from konstruct.api.http.views import ApiView, agent_names, operation
from konstruct.orchestrator.identities.channel_identities import users_of_accounts
from memory.browse.people import MAX_COUNTED, MAX_COUNTED_IN_LIST, list_users
from tenants.audit.models import Action


class AgentsOfUserSerializer(serializers.ListSerializer):
    """The agents of a user, by name."""

    def to_representation(self, counts: Any) -> Any:
        """Return the agents; `counts` are the numbers of messages by the agent's id."""
        names = self.root.context["agent_names"]
        agents = [
            {"id": agent_id, "name": names.get(agent_id, ""), "messages": count}
            for agent_id, count in counts.items()
        ]
        return super().to_representation(sorted(agents, key=lambda agent: agent["name"]))


class AgentOfUserSerializer(serializers.Serializer):
    """An agent that has talked with the user."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    messages = serializers.IntegerField(
        help_text="Messages of user and agent, up to the limit of the count."
    )

    class Meta:
        list_serializer_class = AgentsOfUserSerializer


class UserSerializer(serializers.Serializer):
    """An end user."""

    user_id = serializers.CharField(help_text="The user's id.")
    name = serializers.CharField(
        help_text="The name in their newest message that has one; empty if none has."
    )
    names = serializers.ListField(
        child=serializers.CharField(),
        help_text="Names in their messages, newest first, at most 20.",
    )
    messages = serializers.IntegerField(
        help_text="Turns of all their conversations with all agents."
    )
    facts = serializers.IntegerField(help_text="Valid facts about them.")
    first_at = serializers.DateTimeField(
        allow_null=True, help_text="The time of the first message; null if there are only facts."
    )
    last_at = serializers.DateTimeField(allow_null=True, help_text="The time of the last message.")
    agents = AgentOfUserSerializer(many=True, source="messages_by_agent")


class UserPages(KeysetPagination):
    """Users in the order of their ids."""

    orderings = {"user_id": ("user_id",), "-user_id": ("-user_id",)}

    def __init__(self, *, agent_id: UUID | None, user_id: str | None, q: str = "") -> None:
        self.agent_id = agent_id
        self.user_id = user_id
        self.q = q

    def rows_after(self, queryset: Any, position: Position | None, *, backwards: bool) -> list[Any]:
        """Return one user more than a page holds; there is no table to query."""
        return list_users(
            agent_id=self.agent_id,
            user_id=self.user_id,
            containing=self.q,
            also_ids=users_of_accounts(self.q) if self.q and self.agent_id is None else (),
            after=None if position is None else position[0],
            descending=self.is_descending() != backwards,
            limit=self.limit + 1,
        )


class UsersQuery(AgentUserQuery, PageQuerySerializer):
    """Query parameters of the list of users."""

    ordering = ordering_field(UserPages)
    q = serializers.CharField(
        required=False,
        max_length=255,
        help_text="Only users with all these words in a name, regardless of case and accents, or "
        "with the whole text in their id or in the id or the name of a linked account.",
    )


@route("users/", name="users")
class UsersView(ApiView):
    """The end users of the tenant."""

    allows_bound_keys = True

    @operation(
        Action.LIST,
        "people",
        permission="memory.view_scope",
        query=UsersQuery,
        id="list_users",
        description="Returns every user with a message or a fact, ordered by id, with counts of "
        "the messages and facts that the key may see. Messages with "
        f"each agent, and facts, are counted up to {MAX_COUNTED_IN_LIST:,}, and up to "
        f"{MAX_COUNTED:,} where `user_id` names one user.",
        page=UserSerializer,
    )
    def get(self, request: Request) -> Response:
        """List end users."""
        agent_id, user_id = self.caller.agent_id_in(self.query), self.caller.user_id_in(self.query)
        pages = UserPages(agent_id=agent_id, user_id=user_id, q=self.query.get("q", ""))
        users = pages.paginate_queryset(None, request, view=self)
        names = agent_names(agent for user in users for agent in user.messages_by_agent)
        context = {"agent_names": names}
        return pages.get_paginated_response(UserSerializer(users, many=True, context=context).data)
