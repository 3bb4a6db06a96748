"""Identities: the user that an id of a channel belongs to. Bound keys have no access."""

from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http.bodies import ChannelIdField, OptionalTextField, StrictSerializer
from konstruct.api.http.lists import ByCreation, PageQuerySerializer, apply_filters, ordering_field
from konstruct.api.http.routes import route
from konstruct.api.http.schema import response_header
from konstruct.api.http.views import ApiView, UrlField, operation
from konstruct.api.models import KeyScope
from konstruct.orchestrator.identities import channel_identities
from konstruct.orchestrator.models import ChannelIdentity
from konstruct.orchestrator.usage import require_storage
from tenants.audit.changes import NO_STATE, row_state
from tenants.audit.models import Action

LOCATION = response_header("Location", "The URL of the identity.", 200)


class NewIdentitySerializer(StrictSerializer):
    """The id of a sender in a channel."""

    channel = ChannelIdField(help_text="slack …")
    workspace = ChannelIdField(
        required=False, help_text="The workspace in the channel, if the channel has workspaces."
    )
    native_id = ChannelIdField(help_text="The sender's id in the channel.")
    name = OptionalTextField(max_length=255, help_text="The sender's display name in the channel.")


class LinkSerializer(StrictSerializer):
    """The user of an identity."""

    user_id = ChannelIdField(help_text="The new user of the identity.")


class IdentitySerializer(serializers.ModelSerializer):
    """The id of a sender in a channel, and the user that its messages belong to."""

    url = UrlField("identity")

    class Meta:
        model = ChannelIdentity
        fields = [
            *("id", "url", "channel", "workspace", "native_id", "name", "own_id", "user_id"),
            *("created_at", "linked_at", "linked_by"),
        ]


class IdentityQuery(PageQuerySerializer):
    """Query parameters of the list."""

    channel = ChannelIdField(required=False, help_text="Only of this channel.")
    workspace = ChannelIdField(required=False, help_text="Only of this workspace.")
    native_id = ChannelIdField(required=False, help_text="Only this id of a channel.")
    user_id = ChannelIdField(required=False, help_text="Only identities that belong to this user.")
    ordering = ordering_field(ByCreation)


@route("identities/", name="identities")
class IdentitiesView(ApiView):
    """Identities of the tenant."""

    @operation(
        Action.LIST,
        "identities",
        permission="orchestrator.view_channelidentity",
        query=IdentityQuery,
        id="list_identities",
        page=IdentitySerializer,
    )
    def get(self, request: Request) -> Response:
        """List identities, newest first."""
        identities = apply_filters(ChannelIdentity.objects.all(), self.query, self.caller)
        return self.page(identities, ByCreation(), IdentitySerializer)

    @operation(
        Action.CREATE,
        "identity",
        permission="orchestrator.add_channelidentity",
        body=NewIdentitySerializer,
        id="name_identity",
        returns=IdentitySerializer,
        errors=(402, 409),
        headers=[LOCATION],
    )
    def post(self, request: Request) -> Response:
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
        document = self.document(identity, IdentitySerializer)
        return Response(document, headers={"Location": document["url"]})


@route("identities/<uuid:identity_id>/", name="identity")
class IdentityView(ApiView):
    """One identity."""

    @operation(
        Action.VIEW,
        "identity",
        scope=(KeyScope.READ, KeyScope.WRITE),
        permission="orchestrator.view_channelidentity",
        id="get_identity",
        returns=IdentitySerializer,
    )
    def get(self, request: Request, identity_id: UUID) -> Response:
        """Get an identity."""
        identity = channel_identities.find_identity(identity_id)
        self.log(identity)
        return Response(self.document(identity, IdentitySerializer))


@route("identities/<uuid:identity_id>/link/", name="identity-link")
class LinkView(ApiView):
    """The user of an identity."""

    @operation(
        Action.LINK,
        "identity",
        permission="orchestrator.change_channelidentity",
        body=LinkSerializer,
        id="link_identity",
        returns=IdentitySerializer,
        errors=(409,),
    )
    def put(self, request: Request, identity_id: UUID) -> Response:
        """Link an identity to a user.

        New messages of the identity belong to this user. A background process moves its earlier
        messages within a minute or two.
        """
        identity = channel_identities.find_identity(identity_id)
        before = row_state(identity)
        linked = channel_identities.link(
            identity, self.fields["user_id"], by=f"{self.caller.name}, by the API"
        )
        return self.changed(linked, before, IdentitySerializer)

    @operation(
        Action.LINK,
        "identity, away from its user",
        permission="orchestrator.change_channelidentity",
        id="unlink_identity",
        returns=IdentitySerializer,
        errors=(409,),
    )
    def delete(self, request: Request, identity_id: UUID) -> Response:
        """Unlink an identity from its user.

        The identity becomes a separate user. Messages that were moved stay with the former user.
        """
        identity = channel_identities.find_identity(identity_id)
        before = row_state(identity)
        unlinked = channel_identities.unlink(identity)
        return self.changed(unlinked, before, IdentitySerializer)
