"""Asking that a person be forgotten, and seeing what became of it."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from konstruct.api.audited import actor_of
from konstruct.api.fields import ChannelIdField, StrictCharField, StrictSerializer, checked_query
from konstruct.api.models import KeyScope
from konstruct.api.request_id import current_request_id
from konstruct.api.schema import problems, response_header
from konstruct.api.views import ApiView
from konstruct.audit.erasure_requests import request_erasure
from konstruct.audit.models import ErasureRequest

MOST_THREADS = 1000
LOCATION = response_header("Location", "The request's own address.", 202)
ASKED = OpenApiExample(
    "forget a user",
    request_only=True,
    value={"user_id": "U024BE7LH", "reason": "asked by mail, 3 March"},
)


class NewErasureSerializer(StrictSerializer):
    """Whom to forget."""

    user_id = ChannelIdField(help_text="The user.")
    agent = ChannelIdField(
        required=False,
        help_text="Name or id of the one agent that forgets; all of them without it.",
    )
    threads = serializers.ListField(
        child=ChannelIdField(),
        required=False,
        max_length=MOST_THREADS,
        help_text="Sessions of graphs that are the user's, beside those of their conversations.",
    )
    reason = StrictCharField(
        required=False, allow_blank=True, max_length=2000, help_text="Why; it stays on the receipt."
    )


class ErasureSerializer(serializers.Serializer):
    """A request, and in the end its receipt."""

    url = serializers.URLField()
    id = serializers.UUIDField()
    user_id = serializers.CharField()
    agent_id = serializers.UUIDField(allow_null=True, help_text="Null: all agents forget.")
    reason = serializers.CharField()
    requested_by = serializers.CharField()
    created_at = serializers.DateTimeField()
    state = serializers.ChoiceField(
        choices=["requested", "done"],
        help_text="done: nothing is left of the user, and the receipt says what was removed.",
    )
    problem = serializers.CharField(help_text="Why it could not be finished yet, or empty.")
    done_at = serializers.DateTimeField(allow_null=True)
    receipt = serializers.JSONField(
        allow_null=True,
        help_text="How much was removed of what, with digests of the ids; nothing that was said.",
    )


class NoParameters(StrictSerializer):
    """No query parameters."""


class ErasuresView(ApiView):
    """Where erasures are asked for."""

    scopes = {"POST": KeyScope.ERASE}
    keeps_to_binding = True

    @extend_schema(
        operation_id="request_erasure",
        summary="Ask for the erasure of a user",
        description="Everything that is kept of the user is removed by a process of the operators: "
        "look at the request's address for its receipt. There is no way back.",
        tags=["erasures"],
        request=NewErasureSerializer,
        parameters=[LOCATION],
        examples=[ASKED],
        responses={202: ErasureSerializer, **problems(409, 422)},
    )
    def post(self, request: Request) -> Response:
        """Note the request."""
        checked_query(request, NoParameters)
        body = NewErasureSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        fields = body.validated_data
        agent_id = self.caller.agent_id
        if "agent" in fields:
            agent_id = self.caller.agent(fields["agent"]).id
        made = request_erasure(
            self.caller.user(fields["user_id"]),
            by=actor_of(request),
            agent_id=agent_id,
            threads=fields.get("threads", ()),
            reason=fields.get("reason", ""),
            request_id=current_request_id(),
        )
        document = _document(made, request)
        return Response(document, status=202, headers={"Location": document["url"]})


class ErasureView(ApiView):
    """One request."""

    keeps_to_binding = True

    @extend_schema(
        operation_id="get_erasure",
        summary="See what became of a request of erasure",
        tags=["erasures"],
        responses={200: ErasureSerializer, **problems(404)},
    )
    def get(self, request: Request, erasure_id: UUID) -> Response:
        """Show it."""
        checked_query(request, NoParameters)
        found = self.caller.rows(ErasureRequest.objects.filter(pk=erasure_id)).first()
        if found is None:
            raise NotFound
        return Response(_document(found, request))


def _document(erasure: ErasureRequest, request: Request) -> dict[str, Any]:
    document = {
        "url": reverse("erasure", args=[erasure.pk], request=request),
        "state": "requested" if erasure.done_at is None else "done",
        "problem": erasure.last_error,
        **{
            name: getattr(erasure, name)
            for name in ("id", "user_id", "agent_id", "reason", "requested_by", "created_at")
        },
        "done_at": erasure.done_at,
        "receipt": erasure.receipt,
    }
    return dict(ErasureSerializer(document).data)
