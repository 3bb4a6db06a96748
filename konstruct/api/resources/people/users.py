"""End users, the timeline and the data of each, and the ids of channels that belong to them."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from operator import itemgetter
from typing import Any, Final
from uuid import UUID

from django.core.validators import RegexValidator
from django.http import Http404, HttpResponseBase
from django.shortcuts import get_object_or_404
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.auth import authentication, keys
from konstruct.api.http import bodies, lists, schema, views
from konstruct.api.models import KeyScope
from konstruct.orchestrator import models, usage
from konstruct.orchestrator.identities import channel_identities, person_export, timeline
from memory import arguments, conf, exceptions
from memory.browse.lists import people, with_text
from memory.conversations.transcript import metadata_argument
from tenants.admin.exports import streamed
from tenants.audit.changes import NO_STATE, row_state
from tenants.audit.models import Action
from tenants.audit.people import Person, lock_person

NO_PROFILE: Final = {"chosen_name": "", "time_zone": "", "language": "", "metadata": {}}
LANGUAGE: Final = r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*\Z"
CHANGE_USER: Final = "orchestrator.change_channelidentity"
# What concerns the whole tenant is not for keys that are bound to an agent or a user.
TENANT_KINDS: Final = frozenset({timeline.EntryKind.ACCOUNT, timeline.EntryKind.ACCESS})
USER_ID: Final = schema.id_in_path("user_id", "The user")


class AgentOfUserSerializer(serializers.Serializer):
    """An agent that has talked with the user."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    messages = serializers.IntegerField(help_text="Messages of user and agent.")


class UserSerializer(serializers.Serializer):
    """An end user."""

    user_id = serializers.CharField(help_text="The user's id.")
    name = serializers.CharField(
        help_text="The name that a program set, or that of their newest message with one; or empty."
    )
    names = bodies.TextsField(help_text="Names in their messages, newest first, at most 20.")
    messages = serializers.IntegerField(help_text="Turns of their conversations with all agents.")
    facts = serializers.IntegerField(help_text="Valid facts about them.")
    first_at = serializers.DateTimeField(
        allow_null=True, help_text="The time of the first message; null if there are only facts."
    )
    last_at = serializers.DateTimeField(allow_null=True, help_text="The time of the last message.")
    agents = AgentOfUserSerializer(many=True)


class UserFields(bodies.StrictSerializer):
    """What programs set of a user."""

    name = bodies.ChannelIdField(
        source="chosen_name",
        required=False,
        allow_blank=True,
        max_length=120,
        help_text="The user's name.",
    )
    time_zone = bodies.OptionalTextField(
        max_length=64,
        help_text="A name such as Asia/Tokyo, for times in prompts. Empty: that of the user's "
        "channel, or else the agent's, or else UTC.",
    )
    language = bodies.StrictCharField(
        required=False,
        allow_blank=True,
        max_length=35,
        validators=[RegexValidator(LANGUAGE)],
        help_text="The user's language by BCP 47, such as de or pt-BR, in which Latin words of "
        "messages and questions are searched, unless the agent has a language. Default: none.",
    )
    metadata = bodies.CheckedObjectField(
        check=metadata_argument,
        required=False,
        help_text=f"A JSON object of at most {conf.MAX_MESSAGE_METADATA_BYTES:,} bytes.",
    )

    def validate_time_zone(self, name: str) -> str:
        """Refuse a text that is no name of a time zone."""
        return arguments.time_zone_argument("time_zone", name)


class UserChanges(UserFields):
    """Changes of a user. Metadata is merged by RFC 7396 (JSON Merge Patch)."""

    min_fields = 1


class ProfileSerializer(bodies.RowSerializer):
    """What is set of a user."""

    name = serializers.CharField(source="chosen_name", help_text="The user's name.")
    metadata = bodies.ObjectField(help_text="As it was sent, or empty.")

    class Meta:
        model = Person
        fields = ["user_id", "name", "time_zone", "language", "metadata", "channel_time_zone"]


class ExportSerializer(serializers.Serializer):
    """All data of a person. Further members are lists of rows by their kind."""

    user_id = serializers.CharField(help_text="The user.")
    user_ids = bodies.TextsField(help_text="Ids of the person.")
    exported_at = serializers.DateTimeField(help_text="When it was exported.")
    messages = bodies.ObjectsField(help_text="Their messages.")
    facts = bodies.ObjectsField(help_text="Facts about them.")


class TimelineEntrySerializer(serializers.Serializer):
    """One event of a timeline."""

    at = serializers.DateTimeField(help_text="When it happened.")
    kind = serializers.ChoiceField(
        choices=[kind.value for kind in timeline.EntryKind], help_text="The kind of event."
    )
    action = serializers.CharField(help_text="Such as the role of a message, or `resolved`.")
    agent_id = serializers.UUIDField(
        allow_null=True, help_text="The agent; null if it concerns no agent or all of them."
    )
    user_id = serializers.CharField(help_text="The id of the user that it concerns.")
    subject_id = serializers.CharField(
        allow_null=True, help_text="Id of the message, fact, escalation … that it is about."
    )
    text = serializers.CharField(help_text=f"Its text, up to {timeline.MAX_TEXT} characters.")
    by = serializers.CharField(help_text="Name of the author, or empty.")
    note = serializers.CharField(help_text="The reason, or the channel of a message, or empty.")


class TimelinePagination(lists.CursorPagination):
    """Events, the latest first. A timeline is read in this direction alone."""

    def rows_after(
        self,
        queryset: Callable[..., list[timeline.Entry]],
        position: lists.Position | None,
        *,
        backwards: bool,
    ) -> list[timeline.Entry]:
        """Return one event more than a page holds, beginning after the position."""
        after = position and timeline.Position(datetime.fromisoformat(position[0]), position[1])
        return queryset(limit=self.page_size + 1, **({"before": after} if after else {}))

    def get_previous_link(self) -> None:
        """Return None."""


class UsersQuery(bodies.AgentUserQuery):
    """Query parameters of the list of users."""

    q = serializers.CharField(
        required=False,
        max_length=255,
        help_text="Only users with all these words in a name, regardless of case and accents, or "
        "with the whole text in their id or in the id or the name of a linked account.",
    )


class TimelineQuery(bodies.StrictSerializer):
    """Query parameters of a timeline."""

    agent = bodies.ChannelIdField(required=False, help_text="Only of this agent (name or id).")
    kind = serializers.ChoiceField(
        choices=[kind.value for kind in timeline.EntryKind],
        required=False,
        help_text="Only events of this kind.",
    )
    until = bodies.AwareDateTimeField(required=False, help_text="Only events before this moment.")


class UserViewSet(views.ApiViewSet):
    """The end users of the tenant."""

    serializer_class = UserSerializer
    ordering = ("user_id",)
    ordering_fields = ("user_id",)
    subject, subjects = "user", "people"
    lookup_url_kwarg = "user_id"
    lookup_value_converter = "path"
    permission = "memory.view_scope"
    allows_bound_keys = True

    @views.operation(
        Action.LIST,
        query=UsersQuery,
        id="list_users",
    )
    def list(self, request: Request) -> Response:
        """List end users.

        Returns every user with a message or a fact, ordered by id, with counts of the messages and
        facts that the key may see.
        """
        agent_id, user_id = self.caller.agent_id_in(self.query), self.caller.user_id_in(self.query)
        users = people(agent_id=agent_id)
        if user_id is not None:
            users = users.filter(user_id=user_id)
        if text := self.query.get("q"):
            accounts = channel_identities.users_of_accounts(text) if agent_id is None else ()
            users = users.filter(with_text(text, also_ids=accounts, agent_id=agent_id))
        page: Any = self.paginate_queryset(users) or ()
        names = views.agent_names(UUID(agent["id"]) for user in page for agent in user.agents)
        for user in page:
            for agent in user.agents:
                agent["name"] = names.get(UUID(agent["id"]), "")
            user.agents.sort(key=itemgetter("name"))
        return self.get_paginated_response(self.documents(page, UserSerializer))

    @action(
        detail=True,
        url_path="timeline",
        pagination_class=TimelinePagination,
        ordering=("-at", "-key"),
        ordering_fields=(),
    )
    @views.operation(
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
        user_id = self._user_id(user_id)
        until = self.query.get("until")
        events = partial(
            timeline.timeline,
            [user_id] if self.caller.is_bound else channel_identities.linked_ids(user_id),
            kinds=self._kinds(),
            agent_id=self.caller.agent_id_in(self.query),
            before=until and timeline.Position(until),
        )
        return self.page(events, TimelineEntrySerializer)

    @views.operation(Action.VIEW, returns=ProfileSerializer, headers=[USER_ID])
    def get_user(self, request: Request, user_id: str) -> Response:
        """Get what is set of a user.

        A key that is bound to an agent gets users that the agent knows.
        """
        person = get_object_or_404(Person, pk=self._visible(user_id))
        self.log(person)
        return Response(self.document(person, ProfileSerializer))

    @views.operation(
        Action.EDIT,
        permission=CHANGE_USER,
        body=UserFields,
        returns=ProfileSerializer,
        errors=(402, 409),
        headers=[USER_ID],
    )
    def put_user(self, request: Request, user_id: str) -> Response:
        """Set the fields of a user.

        Omitted fields become empty. A user without messages is created. The time zone comes before
        the one that a channel reports.
        """
        person = self._lock(user_id)
        person.metadata = {}
        return self.merge(person, NO_PROFILE | self.fields, ProfileSerializer)

    @views.operation(
        Action.EDIT,
        permission=CHANGE_USER,
        body=UserChanges,
        returns=ProfileSerializer,
        errors=(402, 409),
        headers=[USER_ID],
    )
    def update_user(self, request: Request, user_id: str) -> Response:
        """Change some fields of a user.

        Metadata is merged by RFC 7396 (JSON Merge Patch). A user without messages is created.
        """
        return self.merge(self._lock(user_id), self.fields, ProfileSerializer)

    @action(detail=True, url_path="export")
    @views.operation(
        Action.EXPORT,
        "person",
        permission="audit.export_person",
        scope=KeyScope.ERASE,
        returns=ExportSerializer,
        headers=[USER_ID],
    )
    def export_user(self, request: Request, user_id: str) -> HttpResponseBase:
        """Export all data of a person.

        Returns all rows of the user and of all linked ids, as the admin's export has them: a list
        for each kind of rows, such as `messages`, `facts` and `escalations`. It needs the scope of
        erasures, and a key that is not bound.
        """
        if self.caller.is_bound:
            raise PermissionDenied("This concerns all agents and linked ids: yours is a bound key.")
        user_ids = channel_identities.linked_ids(self._user_id(user_id))
        if not channel_identities.is_known(user_ids):
            raise Http404
        self.log(people=user_ids, format="json")
        agents = dict(models.Agent.objects.values_list("pk", "name"))
        pieces = person_export.PersonExport(user_ids, agents).as_json()
        return streamed(request._request, pieces, content_type="application/json")

    def _lock(self, user_id: str) -> Person:
        user_id = self._visible(bodies.id_of_path("user_id", user_id))
        usage.require_storage()
        return lock_person(user_id)

    def _user_id(self, user_id: str) -> str:
        """Return a user id. Raise Http404 for a text that is none."""
        try:
            return self.caller.user(arguments.id_argument("user_id", user_id))
        except exceptions.InvalidArgument as error:
            raise Http404 from error

    def _visible(self, user_id: str) -> str:
        """Return a user id. Raise Http404 for one that the agent of a bound key does not know."""
        agent_id = self.caller.agent_id
        known = people(agent_id=agent_id).filter(user_id=self._user_id(user_id))
        if agent_id is not None and not known.exists():
            raise Http404
        return user_id

    def _kinds(self) -> Sequence[timeline.EntryKind]:
        """Return the kinds that the request asks for and the caller may see."""
        user = self.request.user
        allowed = [
            kind
            for kind in timeline.EntryKind
            if (
                not (self.caller.is_bound and kind in TENANT_KINDS)
                if isinstance(user, keys.Program)
                else authentication.person_may(user, kind.permission)
            )
        ]
        kind = self.query.get("kind")
        if kind is None:
            return allowed
        if kind not in allowed:
            raise PermissionDenied(f"Events of the kind {kind!r} are not for this key or person.")
        return [timeline.EntryKind(kind)]


class NewIdentitySerializer(bodies.StrictSerializer):
    """The id of a sender in a channel."""

    channel = bodies.ChannelIdField(help_text="slack …")
    workspace = bodies.ChannelIdField(
        required=False, help_text="The workspace, if the channel has any."
    )
    native_id = bodies.ChannelIdField(help_text="The sender's id in the channel.")
    name = bodies.OptionalTextField(
        max_length=255, help_text="The sender's display name in the channel."
    )


class LinkSerializer(bodies.StrictSerializer):
    """The user of an identity."""

    user_id = bodies.ChannelIdField(help_text="The new user of the identity.")


class IdentitySerializer(serializers.ModelSerializer):
    """The id of a sender in a channel, and the user that its messages belong to."""

    url = views.UrlField("identity-detail")

    class Meta:
        model = models.ChannelIdentity
        fields = [
            *("id", "url", "channel", "workspace", "native_id", "name", "own_id", "user_id"),
            *("created_at", "linked_at", "linked_by"),
        ]


class IdentityFilter(lists.FilterSet):
    """Filters of the list."""

    channel = lists.Filter(bodies.ChannelIdField, "Only of this channel.")
    workspace = lists.Filter(bodies.ChannelIdField, "Only of this workspace.")
    native_id = lists.Filter(bodies.ChannelIdField, "Only this id of a channel.")
    user_id = lists.Filter(bodies.ChannelIdField, "Only identities that belong to this user.")


class IdentityViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, views.ApiViewSet):
    """Identities of the tenant, newest first."""

    queryset = models.ChannelIdentity.objects.all()
    serializer_class = IdentitySerializer
    filterset_class = IdentityFilter
    ordering_fields = ("created_at",)
    subject, subjects = "identity", "identities"

    @views.operation(
        Action.CREATE,
        body=NewIdentitySerializer,
        id="name_identity",
        returns={200: IdentitySerializer},
        errors=(402, 409),
        headers=[schema.LOCATION],
    )
    def create(self, request: Request) -> Response:
        """Create or rename an identity.

        A channel creates an identity with the first message of a sender. A new identity is a
        separate user; link it to assign it to an existing user.
        """
        fields = {"workspace": "", **self.fields}
        account = {name: fields[name] for name in ("channel", "workspace", "native_id")}
        before = row_state(models.ChannelIdentity.objects.filter(**account).first())
        if before is NO_STATE:
            usage.require_storage()
        identity = channel_identities.identity_of(**fields)
        is_changed = before not in (NO_STATE, row_state(identity))
        if is_changed:
            self.log(action=Action.EDIT, before=before)
        return self.created(identity, is_new=before is NO_STATE or is_changed, status=200)

    @action(detail=True, methods=["put"], url_path="link")
    @views.operation(Action.LINK, body=LinkSerializer, errors=(409,))
    def link_identity(self, request: Request, identity_id: UUID) -> Response:
        """Link an identity to a user.

        New messages of the identity belong to this user. A background process moves its earlier
        messages within a minute or two.
        """
        row, user_id, by = (
            self.get_object(),
            self.fields["user_id"],
            f"{self.caller.name}, by the API",
        )
        return self.change(
            row,
            lambda row: channel_identities.link(row, user_id, by=by),
            people=(row.user_id, user_id),
        )

    @link_identity.mapping.delete
    @views.operation(Action.UNLINK, errors=(409,))
    def unlink_identity(self, request: Request, identity_id: UUID) -> Response:
        """Unlink an identity from its user.

        The identity becomes a separate user. Messages that were moved stay with the former user.
        """
        row = self.get_object()
        return self.change(row, channel_identities.unlink, people=(row.user_id, row.own_id))
