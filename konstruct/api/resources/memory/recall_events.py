"""Recall events: the memories that were recalled for a reply, and why."""

from typing import Any
from uuid import UUID

from django.db.models import Q
from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http import lists
from konstruct.api.http.routes import route
from konstruct.api.http.views import AgentNameField, ApiView, UrlField, operation
from memory.context.recall_traces import traces, with_queries
from memory.models import Message, RecallEvent
from tenants.audit.models import Action


class BaseRecallEventSerializer(serializers.Serializer):
    """The fields of every recall event."""

    id = serializers.UUIDField()
    url = UrlField("recall-event", help_text="The URL with all fields.")
    agent = AgentNameField(help_text="The agent's name.")
    agent_id = serializers.UUIDField()
    user_id = serializers.CharField()
    message_id = serializers.UUIDField(
        source="reply.in_reply_to_id", allow_null=True, help_text="The message that was answered."
    )
    reply_id = serializers.UUIDField(
        allow_null=True, help_text="The reply that was written with these memories."
    )
    query = serializers.CharField(help_text="The query.")
    abstained = serializers.BooleanField(help_text="No memory was relevant enough.")
    embedding_model = serializers.CharField()
    milliseconds = serializers.FloatField(help_text="Duration of the recall.")
    created_at = serializers.DateTimeField(help_text="When it was recorded.")


class RecallEventSerializer(BaseRecallEventSerializer):
    """A summary of the recall for one reply."""

    hit_count = serializers.IntegerField(help_text="Number of memories found.")
    cut_count = serializers.IntegerField(
        help_text="Number of the best memories that were left out."
    )
    injected_count = serializers.IntegerField(help_text="Number of memories in the prompt.")


class RecallTraceSerializer(serializers.Serializer):
    """The recall of a reply, and its prompt."""

    hits = serializers.ListField(
        child=serializers.DictField(),
        help_text="The memories found, best first, with the score of every channel, and the "
        "calibrated `probability`.",
    )
    cut = serializers.ListField(
        child=serializers.DictField(),
        help_text="The best of the memories left out, with the reason; otherwise as in `hits`.",
    )
    facts = serializers.ListField(
        child=serializers.DictField(),
        help_text="The facts considered, each with the reason of its decision.",
    )
    injected = serializers.ListField(
        child=serializers.CharField(), help_text="The memories in the prompt, verbatim."
    )
    prompt = serializers.DictField(
        allow_null=True,
        help_text="The prompt as it was sent, with the tokens of each section; null if not kept.",
    )


class RecallEventInFullSerializer(BaseRecallEventSerializer, RecallTraceSerializer):
    """The recall for one reply, with the reasons."""


class RecallEventsPage(lists.ByCreation):
    """A page of recall events, with their queries."""

    def paginate_queryset(self, queryset: Any, request: Any, view: Any = None) -> Any:
        """Return the rows of the page."""
        return with_queries(super().paginate_queryset(queryset, request, view) or ())


class RecallEventsQuery(lists.AgentUserQuery, lists.TimeRangeQuery, lists.PageQuerySerializer):
    """Query parameters of the list of recall events."""

    message_id = serializers.UUIDField(
        required=False, help_text="Only the recall for this message, or for this reply."
    )
    abstained = lists.FlagField(
        choices=["true", "false"],
        required=False,
        help_text="Only recalls without results, or only those with results.",
    )
    ordering = lists.ordering_field(lists.ByCreation)


@route("recall-events/", name="recall-events")
class RecallEventsView(ApiView):
    """Recall events: the reasons for replies."""

    allows_bound_keys = True

    @operation(
        Action.LIST,
        "recall events",
        permission="memory.view_recallevent",
        query=RecallEventsQuery,
        id="list_recall_events",
        page=RecallEventSerializer,
    )
    def get(self, request: Request) -> Response:
        """List recall events, newest first.

        Each reply has one recall event, written shortly after the reply.
        """
        events = lists.apply_filters(
            RecallEvent.objects.all(), self.query, self.caller, without=("message_id",)
        )
        if message_id := self.query.get("message_id"):
            replies = Message.objects.filter(Q(pk=message_id) | Q(in_reply_to=message_id))
            events = events.filter(reply__in=replies.values("pk"))
        events = events.select_related("reply")
        return self.page(events, RecallEventsPage(), RecallEventSerializer)


@route("recall-events/<uuid:event_id>/", name="recall-event")
class RecallEventView(ApiView):
    """One recall event."""

    # With the prompt as it was sent, which the admin shows beside the conversation.
    allows_bound_keys = True

    @operation(
        Action.VIEW,
        "recall event",
        permission=("memory.view_recallevent", "memory.view_message"),
        id="get_recall_event",
        returns=RecallEventInFullSerializer,
    )
    def get(self, request: Request, event_id: UUID) -> Response:
        """Get a recall event.

        The event has the prompt as it was sent. Keys that are bound to a user may not read it.
        """
        events = self.caller.rows(RecallEvent.objects.select_related("reply"))
        event = get_object_or_404(events, pk=event_id)
        self.caller.require_prompts()
        self.log(event)
        for name, value in traces([event])[0].items():
            setattr(event, name, value)
        return Response(self.document(event, RecallEventInFullSerializer))
