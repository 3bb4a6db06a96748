"""End users, with counts of their messages and facts."""

from operator import itemgetter
from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http.lists import (
    AgentUserQuery,
    KeysetPagination,
    PageQuerySerializer,
    ordering_field,
)
from konstruct.api.http.routes import route
from konstruct.api.http.views import ApiView, agent_names, operation
from konstruct.orchestrator.identities.channel_identities import users_of_accounts
from memory.browse.people import people, with_text
from tenants.audit.models import Action


class AgentsOfUserSerializer(serializers.ListSerializer):
    """The agents of a user, by name."""

    def to_representation(self, data: Any) -> Any:
        """Return the agents with their names."""
        names = self.root.context["agent_names"]
        agents = [{**agent, "name": names.get(UUID(agent["id"]), "")} for agent in data]
        return super().to_representation(sorted(agents, key=itemgetter("name")))


class AgentOfUserSerializer(serializers.Serializer):
    """An agent that has talked with the user."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    messages = serializers.IntegerField(help_text="Messages of user and agent.")

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
    agents = AgentOfUserSerializer(many=True)


class UserPages(KeysetPagination):
    """Users in the order of their ids."""

    orderings = {"user_id": ("user_id",), "-user_id": ("-user_id",)}


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
        "the messages and facts that the key may see.",
        page=UserSerializer,
    )
    def get(self, request: Request) -> Response:
        """List end users."""
        agent_id, user_id = self.caller.agent_id_in(self.query), self.caller.user_id_in(self.query)
        users = people(agent_id=agent_id)
        if user_id is not None:
            users = users.filter(user_id=user_id)
        if text := self.query.get("q"):
            accounts = users_of_accounts(text) if agent_id is None else ()
            users = users.filter(with_text(text, also_ids=accounts, agent_id=agent_id))
        pages = UserPages()
        page = pages.paginate_queryset(users, request, view=self)
        names = agent_names(UUID(agent["id"]) for user in page for agent in user.agents)
        context = {"agent_names": names}
        return pages.get_paginated_response(UserSerializer(page, many=True, context=context).data)
