"""The timeline of a user: all that happened to them and by them."""

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.http import Http404
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.auth.keys import Program
from konstruct.api.auth.permissions import person_may
from konstruct.api.http.bodies import AwareDateTimeField, ChannelIdField
from konstruct.api.http.lists import KeysetPagination, PageQuerySerializer
from konstruct.api.http.lists import Position as PagePosition
from konstruct.api.http.routes import route
from konstruct.api.http.views import ApiView, operation
from konstruct.orchestrator.identities.channel_identities import linked_ids
from konstruct.orchestrator.identities.timeline import (
    MAX_TEXT,
    PERMISSIONS,
    Entry,
    EntryKind,
    Position,
    timeline,
)
from memory.arguments import id_argument
from memory.exceptions import InvalidArgument
from tenants.audit.models import Action

# What concerns the whole tenant is not for keys that are bound to an agent or a user.
TENANT_KINDS: Final = frozenset({EntryKind.ACCOUNT, EntryKind.ACCESS})
USER_ID = OpenApiParameter(
    "user_id",
    str,
    OpenApiParameter.PATH,
    description="The user, percent-encoded; slashes need no encoding.",
)


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


class TimelineQuery(PageQuerySerializer):
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


class TimelinePages(KeysetPagination):
    """Events, the latest first. A timeline is read in this direction alone."""

    orderings = {"-at": ("-at", "-key")}

    def __init__(
        self, *, kinds: list[EntryKind], agent_id: UUID | None, until: datetime | None
    ) -> None:
        self.kinds = kinds
        self.agent_id = agent_id
        self.until = until

    def rows_after(
        self, queryset: Any, position: PagePosition | None, *, backwards: bool
    ) -> list[Entry]:
        """Return one event more than a page holds, beginning after the position."""
        before = None if self.until is None else Position(self.until)
        if position is not None:
            before = Position(datetime.fromisoformat(position[0]), position[1])
        return timeline(
            queryset,
            kinds=self.kinds,
            agent_id=self.agent_id,
            before=before,
            limit=self.limit + 1,
        )

    def get_paginated_response(self, data: Any) -> Response:
        """Return the page with the address of the next one."""
        self.previous_position = None
        return super().get_paginated_response(data)


@route("users/<path:user_id>/timeline/", name="timeline")
class TimelineView(ApiView):
    """The timeline of one user."""

    allows_bound_keys = True

    @operation(
        Action.VIEW,
        "timeline",
        permission="memory.view_scope",
        query=TimelineQuery,
        id="list_timeline",
        page=TimelineEntrySerializer,
        headers=[USER_ID],
    )
    def get(self, request: Request, user_id: str) -> Response:
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
        pages = TimelinePages(
            kinds=self._kinds(),
            agent_id=self.caller.agent_id_in(self.query),
            until=self.query.get("until"),
        )
        user_ids = [user_id] if self.caller.is_bound else linked_ids(user_id)
        return self.page(user_ids, pages, TimelineEntrySerializer)

    def _kinds(self) -> list[EntryKind]:
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
