"""Identities: as whom somebody speaks whom a channel knows by an id of its own.

Closed to bound keys: who is who concerns the whole tenant.
"""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from konstruct.api.http.bodies import (
    ChannelIdField,
    NoParametersSerializer,
    StrictCharField,
    StrictSerializer,
    checked_query,
)
from konstruct.api.http.lists import (
    KeysetPagination,
    PageQuerySerializer,
    ordering_field,
    page_of,
)
from konstruct.api.http.schema import problems, response_header
from konstruct.api.http.views import ApiView
from konstruct.api.models import KeyScope
from konstruct.orchestrator.identities import channel_identities
from konstruct.orchestrator.models import ChannelIdentity
from tenants.audit.changes import NOTHING, row_state
from tenants.audit.models import Action

LOCATION = response_header("Location", "The identity's own address.", 200)


class NewIdentitySerializer(StrictSerializer):
    """Somebody as a channel knows them."""

    channel = ChannelIdField(help_text="slack …")
    workspace = ChannelIdField(required=False, help_text="Where in the channel, if it has such.")
    native_id = ChannelIdField(help_text="As the channel knows them there.")
    name = StrictCharField(
        required=False, allow_blank=True, max_length=255, help_text="What they are called there."
    )


class LinkSerializer(StrictSerializer):
    """Who it is."""

    user_id = ChannelIdField(help_text="The user as whom they speak from now on.")


class IdentitySerializer(serializers.ModelSerializer):
    """Somebody as a channel knows them, and the user whose memory what they say becomes."""

    url = serializers.URLField()

    class Meta:
        model = ChannelIdentity
        fields = [
            *("id", "url", "channel", "workspace", "native_id", "name", "own_id", "user_id"),
            *("created_at", "linked_at", "linked_by"),
        ]


class IdentityPages(KeysetPagination):
    """Identities by their age."""

    orderings = {"-created_at": ("-created_at", "-id"), "created_at": ("created_at", "id")}


class IdentityQuery(PageQuerySerializer):
    """Query parameters of the list."""

    channel = ChannelIdField(required=False, help_text="Only of this channel.")
    workspace = ChannelIdField(required=False, help_text="Only of this workspace.")
    native_id = ChannelIdField(required=False, help_text="Only this id of a channel.")
    user_id = ChannelIdField(required=False, help_text="Only who speaks as this user.")
    ordering = ordering_field(IdentityPages)


class IdentitiesView(ApiView):
    """Who is who."""

    permissions = {
        "GET": ("orchestrator.view_channelidentity",),
        "POST": ("orchestrator.add_channelidentity",),
    }

    @extend_schema(
        operation_id="list_identities",
        summary="List identities",
        tags=["identities"],
        parameters=[IdentityQuery],
        responses={200: page_of(IdentitySerializer, "A page of identities.")},
    )
    def get(self, request: Request) -> Response:
        """List them, the newest first."""
        filters = checked_query(request, IdentityQuery)
        given = {
            name: filters[name]
            for name in ("channel", "workspace", "native_id", "user_id")
            if name in filters
        }
        pages = IdentityPages()
        page = pages.paginate_queryset(ChannelIdentity.objects.filter(**given), request, view=self)
        return pages.get_paginated_response([_document(each, request) for each in page])

    @extend_schema(
        operation_id="name_identity",
        summary="Name an identity before it is heard",
        description="A channel does this by itself when it hears somebody for the first time. By "
        "itself an identity is a user apart; link it to let it speak as somebody who is known.",
        tags=["identities"],
        request=NewIdentitySerializer,
        parameters=[LOCATION],
        examples=[
            OpenApiExample(
                "from Slack",
                request_only=True,
                value={"channel": "slack", "workspace": "T024BE7LD", "native_id": "U024BE7LH"},
            )
        ],
        responses={200: IdentitySerializer},
    )
    def post(self, request: Request) -> Response:
        """Make it known, or find it."""
        checked_query(request, NoParametersSerializer)
        body = NewIdentitySerializer(data=request.data)
        body.is_valid(raise_exception=True)
        fields = {"workspace": "", **body.validated_data}
        place = {name: fields[name] for name in ("channel", "workspace", "native_id")}
        standing = ChannelIdentity.objects.filter(**place).first()
        was = row_state(standing)
        identity = channel_identities.identity_of(**fields)
        now = row_state(identity)
        if was is NOTHING:
            self.note(identity, after=now)
        elif was == now:
            self.note(identity, action=Action.VIEW)
        else:
            self.note(identity, action=Action.EDIT, before=was, after=now)
        document = _document(identity, request)
        return Response(document, headers={"Location": document["url"]})


class IdentityView(ApiView):
    """One identity."""

    permissions = {"GET": ("orchestrator.view_channelidentity",)}
    scopes = {"GET": (KeyScope.READ, KeyScope.WRITE)}

    @extend_schema(
        operation_id="get_identity",
        summary="Get an identity",
        tags=["identities"],
        responses={200: IdentitySerializer},
    )
    def get(self, request: Request, identity_id: UUID) -> Response:
        """Show it."""
        checked_query(request, NoParametersSerializer)
        identity = channel_identities.find_identity(identity_id)
        self.note(identity)
        return Response(_document(identity, request))


class LinkView(ApiView):
    """As whom an identity speaks."""

    permissions = {
        "PUT": ("orchestrator.change_channelidentity",),
        "DELETE": ("orchestrator.change_channelidentity",),
    }
    scopes = {"DELETE": KeyScope.WRITE}

    @extend_schema(
        operation_id="link_identity",
        summary="Link an identity to a user",
        description="From now on the identity speaks as this user. What it said before follows: "
        "a process of the operators moves it within a minute or two.",
        tags=["identities"],
        request=LinkSerializer,
        examples=[OpenApiExample("to Maria", request_only=True, value={"user_id": "maria"})],
        responses={200: IdentitySerializer, **problems(409)},
    )
    def put(self, request: Request, identity_id: UUID) -> Response:
        """Link it."""
        checked_query(request, NoParametersSerializer)
        body = LinkSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        identity = channel_identities.find_identity(identity_id)
        was = row_state(identity)
        linked = channel_identities.link(
            identity, body.validated_data["user_id"], by=f"{self.caller.name}, by the API"
        )
        self.note(linked, before=was, after=row_state(linked))
        return Response(_document(linked, request))

    @extend_schema(
        operation_id="unlink_identity",
        summary="Let an identity speak for itself again",
        description="From now on. What was moved stays with the user whom it was linked to.",
        tags=["identities"],
        responses={200: IdentitySerializer, **problems(409)},
    )
    def delete(self, request: Request, identity_id: UUID) -> Response:
        """Unlink it."""
        checked_query(request, NoParametersSerializer)
        identity = channel_identities.find_identity(identity_id)
        was = row_state(identity)
        unlinked = channel_identities.unlink(identity)
        self.note(unlinked, before=was, after=row_state(unlinked))
        return Response(_document(unlinked, request))


def _document(identity: ChannelIdentity, request: Request) -> dict[str, Any]:
    shown: Any = identity
    shown.url = reverse("identity", args=[identity.pk], request=request)
    return dict(IdentitySerializer(shown).data)
