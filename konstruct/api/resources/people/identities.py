"""Identities: the user that an id of a channel belongs to. Bound keys have no access."""

from uuid import UUID

from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http import filters, schema, views
from konstruct.api.http.bodies import ChannelIdField, OptionalTextField, StrictSerializer
from konstruct.api.models import KeyScope
from konstruct.orchestrator.identities import channel_identities
from konstruct.orchestrator.models import ChannelIdentity
from konstruct.orchestrator.usage import require_storage
from tenants.audit.changes import NO_STATE, row_state
from tenants.audit.models import Action


class NewIdentitySerializer(StrictSerializer):
    """The id of a sender in a channel."""

    channel = ChannelIdField(help_text="slack …")
    workspace = ChannelIdField(required=False, help_text="The workspace, if the channel has any.")
    native_id = ChannelIdField(help_text="The sender's id in the channel.")
    name = OptionalTextField(max_length=255, help_text="The sender's display name in the channel.")


class LinkSerializer(StrictSerializer):
    """The user of an identity."""

    user_id = ChannelIdField(help_text="The new user of the identity.")


class IdentitySerializer(serializers.ModelSerializer):
    """The id of a sender in a channel, and the user that its messages belong to."""

    url = views.UrlField("identity-detail")

    class Meta:
        model = ChannelIdentity
        fields = [
            *("id", "url", "channel", "workspace", "native_id", "name", "own_id", "user_id"),
            *("created_at", "linked_at", "linked_by"),
        ]


class IdentityFilter(filters.FilterSet):
    """Filters of the list."""

    channel = filters.Filter(ChannelIdField, "Only of this channel.")
    workspace = filters.Filter(ChannelIdField, "Only of this workspace.")
    native_id = filters.Filter(ChannelIdField, "Only this id of a channel.")
    user_id = filters.Filter(ChannelIdField, "Only identities that belong to this user.")


class IdentityViewSet(mixins.ListModelMixin, views.ApiViewSet):
    """Identities of the tenant, newest first."""

    queryset = ChannelIdentity.objects.all()
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
        before = row_state(ChannelIdentity.objects.filter(**account).first())
        if before is NO_STATE:
            require_storage()
        identity = channel_identities.identity_of(**fields)
        now = row_state(identity)
        if before is NO_STATE:
            self.log(identity, after=now)
        elif before == now:
            self.log(identity, action=Action.VIEW)
        else:
            self.log(identity, action=Action.EDIT, before=before, after=now)
        document = self.document(identity)
        return Response(document, headers={"Location": document["url"]})

    @views.operation(Action.VIEW, scope=(KeyScope.READ, KeyScope.WRITE))
    def retrieve(self, request: Request, identity_id: UUID) -> Response:
        """Get an identity."""
        identity = channel_identities.find_identity(identity_id)
        self.log(identity)
        return Response(self.document(identity))

    @action(detail=True, methods=["put"], url_path="link")
    @views.operation(Action.LINK, body=LinkSerializer, errors=(409,))
    def link_identity(self, request: Request, identity_id: UUID) -> Response:
        """Link an identity to a user.

        New messages of the identity belong to this user. A background process moves its earlier
        messages within a minute or two.
        """
        identity = channel_identities.find_identity(identity_id)
        before = row_state(identity)
        linked = channel_identities.link(
            identity, self.fields["user_id"], by=f"{self.caller.name}, by the API"
        )
        return self.changed(linked, before)

    @link_identity.mapping.delete
    @views.operation(Action.LINK, "identity, away from its user", errors=(409,))
    def unlink_identity(self, request: Request, identity_id: UUID) -> Response:
        """Unlink an identity from its user.

        The identity becomes a separate user. Messages that were moved stay with the former user.
        """
        identity = channel_identities.find_identity(identity_id)
        before = row_state(identity)
        unlinked = channel_identities.unlink(identity)
        return self.changed(unlinked, before)
