"""End users, with counts of their messages and facts, and the timeline of each."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from operator import itemgetter
from typing import Any, Final
from uuid import UUID

from django.http import Http404
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.auth.keys import Program
from konstruct.api.auth.permissions import person_may
from konstruct.api.http.bodies import (
    AgentUserQuery,
    AwareDateTimeField,
    ChannelIdField,
    StrictCharField,
    StrictSerializer,
)
from konstruct.api.http.pagination import CursorPagination, Position as PagePosition
from konstruct.api.http.views import ApiViewSet, agent_names, operation
from konstruct.orchestrator.identities.channel_identities import linked_ids, users_of_accounts
from konstruct.orchestrator.identities.timeline import (
    MAX_TEXT,
    PERMISSIONS,
    Entry,
    EntryKind,
    Position,
    timeline,
)
from memory.arguments import id_argument, time_zone_argument
from memory.browse.people import people, with_text
from memory.exceptions import InvalidArgument
from memory.ids import new_id_argument
from tenants.audit.models import Action
from tenants.audit.people import set_time_zone, time_zone_of

# What concerns the whole tenant is not for keys that are bound to an agent or a user.
TENANT_KINDS: Final = frozenset({EntryKind.ACCOUNT, EntryKind.ACCESS})
USER_ID = OpenApiParameter(
    "user_id",
    str,
    OpenApiParameter.PATH,
    description="The user, percent-encoded; slashes need no encoding.",
)


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


class TimeZoneSerializer(StrictSerializer):
    """The time zone of a user."""

    time_zone = StrictCharField(
        allow_blank=True,
        max_length=64,
        help_text="A name such as Asia/Tokyo. Empty: that of the user's channel, or else the "
        "agent's, or else UTC.",
    )

    def validate_time_zone(self, name: str) -> str:
        """Refuse a text that is no name of a time zone."""
        return time_zone_argument("time_zone", name)


class TimelineEntrySerializer(serializers.Serializer):
    """One event of a timeline."""

    at = serializers.DateTimeField(help_text="When it happened.")
    kind = serializers.ChoiceField(
        choices=[kind.value for kind in EntryKind], help_text="The kind of event."
    )
    action = serializers.CharField(
        help_text="The event, such as the role of a message, `recalled`, or `resolved`."
    )
    agent_id = serializers.UUIDField(
        allow_null=True, help_text="The agent; null if it concerns no agent or all of them."
    )
    user_id = serializers.CharField(help_text="The id of the user that it concerns.")
    subject_id = serializers.CharField(
        allow_null=True, help_text="Id of the message, fact, escalation … that it is about."
    )
    text = serializers.CharField(
        help_text=f"Text of the message, question or fact, up to {MAX_TEXT} characters."
    )
    by = serializers.CharField(help_text="Name of the author, or empty.")
    note = serializers.CharField(help_text="The reason, or the channel of a message, or empty.")


class TimelinePagination(CursorPagination):
    """Events, the latest first. A timeline is read in this direction alone."""

    def rows_after(
        self,
        queryset: Callable[..., list[Entry]],
        position: PagePosition | None,
        *,
        backwards: bool,
    ) -> list[Entry]:
        """Return one event more than a page holds, beginning after the position."""
        after = position and Position(datetime.fromisoformat(position[0]), position[1])
        return queryset(limit=self.page_size + 1, **({"before": after} if after else {}))

    def get_previous_link(self) -> None:
        """Return None."""


class UsersQuery(AgentUserQuery):
    """Query parameters of the list of users."""

    q = serializers.CharField(
        required=False,
        max_length=255,
        help_text="Only users with all these words in a name, regardless of case and accents, or "
        "with the whole text in their id or in the id or the name of a linked account.",
    )


class TimelineQuery(StrictSerializer):
    """Query parameters of a timeline."""

    agent = ChannelIdField(required=False, help_text="Only of this agent (name or id).")
    kind = serializers.ChoiceField(
        choices=[kind.value for kind in EntryKind],
        required=False,
        help_text="Only events of this kind.",
    )
    until = AwareDateTimeField(
        required=False, help_text="Only events before this moment (with a time zone)."
    )


class UserViewSet(ApiViewSet):
    """The end users of the tenant."""

    serializer_class = UserSerializer
    ordering = ("user_id",)
    ordering_fields = ("user_id",)
    subject, subjects = "user", "people"
    lookup_url_kwarg = "user_id"
    lookup_value_converter = "path"
    permission = "memory.view_scope"
    allows_bound_keys = True

    @operation(
        Action.LIST,
        query=UsersQuery,
        id="list_users",
        description="Returns every user with a message or a fact, ordered by id, with counts of "
        "the messages and facts that the key may see.",
    )
    def list(self, request: Request) -> Response:
        """List end users."""
        agent_id, user_id = self.caller.agent_id_in(self.query), self.caller.user_id_in(self.query)
        users = people(agent_id=agent_id)
        if user_id is not None:
            users = users.filter(user_id=user_id)
        if text := self.query.get("q"):
            accounts = users_of_accounts(text) if agent_id is None else ()
            users = users.filter(with_text(text, also_ids=accounts, agent_id=agent_id))
        page: Any = self.paginate_queryset(users) or ()
        names = agent_names(UUID(agent["id"]) for user in page for agent in user.agents)
        context = {"agent_names": names}
        return self.get_paginated_response(UserSerializer(page, many=True, context=context).data)

    @action(
        detail=True,
        url_path="timeline",
        pagination_class=TimelinePagination,
        ordering=("-at", "-key"),
        ordering_fields=(),
    )
    @operation(
        Action.VIEW,
        "timeline",
        query=TimelineQuery,
        page=TimelineEntrySerializer,
        headers=[USER_ID],
    )
    def list_timeline(self, request: Request, user_id: str) -> Response:
        """List the events of a user, newest first.

        Includes the events of all ids that are linked to the user. A key that is bound to an agent
        or a user gets only the events of this id and agent, without linked accounts and without
        reads of the user's data. A person gets the kinds of events that their permissions allow.
        `previous` is always null.
        """
        try:
            user_id = self.caller.user(id_argument("user_id", user_id))
        except InvalidArgument as error:
            raise Http404 from error
        until = self.query.get("until")
        events = partial(
            timeline,
            [user_id] if self.caller.is_bound else linked_ids(user_id),
            kinds=self._kinds(),
            agent_id=self.caller.agent_id_in(self.query),
            before=until and Position(until),
        )
        return self.page(events, TimelineEntrySerializer)

    @action(detail=True, url_path="time-zone")
    @operation(Action.VIEW, "time zone", returns=TimeZoneSerializer)
    def get_time_zone(self, request: Request, user_id: str) -> Response:
        """Read the time zone of a user.

        Prompts have times in it.
        """
        self.log(people=[self.caller.user(user_id)])
        return Response({"time_zone": time_zone_of(user_id).key})

    @get_time_zone.mapping.put
    @operation(
        Action.EDIT,
        "time zone",
        permission="orchestrator.change_channelidentity",
        body=TimeZoneSerializer,
        returns=TimeZoneSerializer,
        errors=(409,),
    )
    def set_time_zone(self, request: Request, user_id: str) -> Response:
        """Set the time zone of a user.

        It comes before the time zone that a channel reports.
        """
        user_id = self.caller.user(new_id_argument("user_id", user_id))
        set_time_zone([user_id], self.fields["time_zone"])
        self.log(people=[user_id], zone=self.fields["time_zone"])
        return Response({"time_zone": time_zone_of(user_id).key})

    def _kinds(self) -> Sequence[EntryKind]:
        """Return the kinds that the request asks for and the caller may see."""
        user = self.request.user
        allowed = [
            kind
            for kind in EntryKind
            if (
                not (self.caller.is_bound and kind in TENANT_KINDS)
                if isinstance(user, Program)
                else person_may(user, PERMISSIONS[kind])
            )
        ]
        kind = self.query.get("kind")
        if kind is None:
            return allowed
        if kind not in allowed:
            raise PermissionDenied(f"Events of the kind {kind!r} are not for this key or person.")
        return [EntryKind(kind)]
