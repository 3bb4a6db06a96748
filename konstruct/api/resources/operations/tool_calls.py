"""Tool calls: what agents want to do, and the user's consent to it."""

from typing import Any
from uuid import UUID

from django.db.models import Q
from django.http import Http404
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from konstruct.api.auth.permissions import Caller
from konstruct.api.http.bodies import (
    NoParametersSerializer,
    StrictBooleanField,
    StrictSerializer,
    checked_query,
)
from konstruct.api.http.lists import (
    InTime,
    KeysetPagination,
    OfAgentAndUser,
    PageQuerySerializer,
    narrowed,
    ordering_field,
    page_of,
)
from konstruct.api.http.schema import problems
from konstruct.api.http.views import ApiView, agent_names
from konstruct.api.models import KeyScope
from konstruct.orchestrator.exceptions import AlreadyDecided
from konstruct.orchestrator.models import ToolCall
from konstruct.orchestrator.models.tool_calls import ToolCallState
from konstruct.orchestrator.tools import tool_calls
from tenants import transaction
from tenants.context import required_tenant_id


class DecisionSerializer(StrictSerializer):
    """The user's decision."""

    approve = StrictBooleanField(help_text="true: it may be done. false: it may not.")


class ToolCallSerializer(serializers.ModelSerializer):
    """Something that an agent asked to do while it answered a message."""

    url = serializers.URLField()
    agent = serializers.CharField(help_text="The agent's name.")
    message_id = serializers.UUIDField(help_text="The message that it is to help to answer.")
    arguments = serializers.JSONField(help_text="What it is to be done with.")
    state = serializers.ChoiceField(choices=ToolCallState.choices, help_text="How far it is.")

    class Meta:
        model = ToolCall
        fields = [
            *("id", "url", "state", "agent", "agent_id", "user_id", "thread_id", "message_id"),
            *("asked_by_id", "content", "name", "arguments", "question"),
            *("created_at", "expires_at", "decided_at", "decided_by", "done_at", "result"),
        ]


class ToolCallPages(KeysetPagination):
    """Tool calls by their age."""

    orderings = {"-created_at": ("-created_at", "-id"), "created_at": ("created_at", "id")}


class ToolCallQuery(OfAgentAndUser, InTime, PageQuerySerializer):
    """Query parameters of the list."""

    message_id = serializers.UUIDField(required=False, help_text="Only those of this message.")
    state = serializers.ChoiceField(
        choices=ToolCallState.choices, required=False, help_text="Only those that are so far."
    )
    ordering = ordering_field(ToolCallPages)


class ToolCallsView(ApiView):
    """What agents asked to do."""

    permissions = {"GET": ("orchestrator.view_toolcall",)}
    keeps_to_binding = True

    @extend_schema(
        operation_id="list_tool_calls",
        summary="List tool calls",
        description="With `state=waiting`, what the users are to be asked: each call has its "
        "`question`.",
        tags=["tool calls"],
        parameters=[ToolCallQuery],
        responses={200: page_of(ToolCallSerializer, "A page of tool calls."), **problems(422)},
    )
    def get(self, request: Request) -> Response:
        """List them, the newest first."""
        filters = checked_query(request, ToolCallQuery)
        rows = narrowed(ToolCall.objects.all(), filters, self.caller)
        for name in ("message_id", "state"):
            if name in filters:
                rows = rows.filter(**{name: filters[name]})
        pages = ToolCallPages()
        page = pages.paginate_queryset(rows, request, view=self)
        return pages.get_paginated_response(_documents(page, request))


class ToolCallView(ApiView):
    """One tool call."""

    permissions = {"GET": ("orchestrator.view_toolcall",)}
    scopes = {"GET": (KeyScope.READ, KeyScope.WRITE)}
    keeps_to_binding = True

    @extend_schema(
        operation_id="get_tool_call",
        summary="Get a tool call",
        tags=["tool calls"],
        responses={200: ToolCallSerializer},
    )
    def get(self, request: Request, call_id: UUID) -> Response:
        """Show it."""
        checked_query(request, NoParametersSerializer)
        found = ToolCall.objects.filter(theirs(self.caller), pk=call_id).first()
        if found is None:
            raise Http404
        self.note(found)
        return Response(_documents([found], request)[0])


class DecisionView(ApiView):
    """The user's decision on a tool call."""

    own_transactions = ("POST",)
    permissions = {"POST": ("orchestrator.change_toolcall",)}
    keeps_to_binding = True

    @extend_schema(
        operation_id="decide_tool_call",
        summary="Approve or deny a tool call",
        description="Send what the user said to the call's `question`. A worker does what was "
        "approved, once, and the message is answered. The same decision again changes nothing.",
        tags=["tool calls"],
        request=DecisionSerializer,
        examples=[OpenApiExample("yes", request_only=True, value={"approve": True})],
        responses={200: ToolCallSerializer, **problems(409)},
    )
    def post(self, request: Request, call_id: UUID) -> Response:
        """Note the decision."""
        checked_query(request, NoParametersSerializer)
        body = DecisionSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        approve, late = body.validated_data["approve"], None
        with transaction.atomic():
            try:
                decided = tool_calls.decide(
                    required_tenant_id(),
                    call_id,
                    approve,
                    by=f"{self.caller.name}, by the API",
                    may=theirs(self.caller),
                )
            except AlreadyDecided as error:
                late = error  # That it has expired is to stay.
            else:
                self.note(decided, approve=approve, state=decided.state)
                self.record()
        if late is not None:
            raise late
        return Response(_documents([decided], request)[0])


def theirs(caller: Caller) -> Q:
    """Which calls the caller may see, and decide."""
    seen = Q()
    if caller.agent_id is not None:
        seen &= Q(agent_id=caller.agent_id)
    if caller.user_id is not None:
        seen &= Q(user_id=caller.user_id)
    return seen


def _documents(rows: list[ToolCall], request: Request) -> list[dict[str, Any]]:
    names = agent_names(row.agent_id for row in rows)
    for row in rows:
        shown: Any = row
        shown.url = reverse("tool-call", args=[row.pk], request=request)
        shown.agent = names.get(row.agent_id, "")
    return list(ToolCallSerializer(rows, many=True).data)
