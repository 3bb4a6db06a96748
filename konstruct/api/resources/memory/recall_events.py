"""Recall events, with the reasons of a reply, and messages that are excluded from recall."""

from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from rest_framework import exceptions, mixins, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http import bodies, lists, views
from konstruct.api.http.problems import current_request_id
from konstruct.orchestrator.models import Agent, ModelCall
from memory.context.recall_traces import traces, with_queries
from memory.exceptions import InvalidArgument
from memory.facts import rows
from memory.models import Message, RecallEvent, RecallExclusion
from memory.recall.service import unknown_languages
from tenants.audit.models import Action


class BaseRecallEventSerializer(serializers.Serializer):
    """The fields of every recall event."""

    id = serializers.UUIDField()
    url = views.UrlField("recall-event-detail", help_text="The URL with all fields.")
    agent = views.AgentNameField(help_text="The agent's name.")
    agent_id = serializers.UUIDField()
    user_id = serializers.CharField()
    message_id = serializers.UUIDField(
        source="reply.in_reply_to_id", allow_null=True, help_text="The message that was answered."
    )
    reply_id = serializers.UUIDField(allow_null=True, help_text="The reply with these memories.")
    query = serializers.CharField(help_text="The query.")
    abstained = serializers.BooleanField(help_text="No memory was relevant enough.")
    embedding_model = serializers.CharField()
    milliseconds = serializers.FloatField(help_text="Duration of the recall.")
    created_at = serializers.DateTimeField(help_text="When it was recorded.")


class RecallEventSerializer(BaseRecallEventSerializer):
    """A summary of the recall for one reply."""

    hit_count = serializers.IntegerField(help_text="Number of memories found.")
    cut_count = serializers.IntegerField(help_text="Number of the best memories left out.")
    injected_count = serializers.IntegerField(help_text="Number of memories in the prompt.")


class RecallTraceSerializer(serializers.Serializer):
    """The recall of a reply, and its prompt."""

    hits = bodies.ObjectsField(
        help_text="The memories found, best first, with the score of every channel, and the "
        "calibrated `probability`.",
    )
    cut = bodies.ObjectsField(
        help_text="The best of the memories left out, with the reason; otherwise as in `hits`."
    )
    facts = bodies.ObjectsField(help_text="The facts considered, each with its reason.")
    injected = bodies.TextsField(help_text="The memories in the prompt, verbatim.")
    reranker = serializers.DictField(
        allow_null=True,
        help_text="The order of the agent's reranker as `ranked`, with scores, or the `problem`; "
        "null: there is none.",
    )
    prompt = serializers.DictField(
        allow_null=True,
        help_text="The prompt as it was sent, with the tokens of each section; null if not kept.",
    )


class ModelCallSerializer(bodies.RowSerializer):
    """A call of a language model."""

    class Meta:
        model = ModelCall
        fields = [
            *("purpose", "model", "language_model", "outcome"),
            *("prompt_tokens", "completion_tokens", "cost", "created_at"),
        ]


class RecallEventInFullSerializer(BaseRecallEventSerializer, RecallTraceSerializer):
    """The recall for one reply, with the reasons."""

    model_calls = ModelCallSerializer(
        many=True, help_text="The calls of language models for the reply, oldest first."
    )
    unknown_languages = bodies.TextsField(
        help_text="Codes of languages of the query that the embedding model does not know: "
        "memories are found by their words.",
    )


class RecallEventPagination(lists.CursorPagination):
    """A page of recall events, with their queries."""

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> Any:
        """Return the rows of the page."""
        return with_queries(super().paginate_queryset(queryset, request, view))


class RecallEventFilter(lists.AgentUserFilter, lists.TimeRangeFilter):
    """Filters of the list of recall events."""

    message_id = lists.Filter(
        serializers.UUIDField,
        "Only the recall for this message, or for this reply.",
        method="of_message",
    )
    abstained = lists.FlagFilter(
        "Only recalls without results, or only those with results.", ["true", "false"]
    )

    def of_message(self, rows: QuerySet[Any], name: str, value: UUID) -> QuerySet[Any]:
        """Filter by the id of a message or of its reply."""
        replies = Message.objects.filter(Q(pk=value) | Q(in_reply_to=value))
        return rows.filter(reply__in=replies.values("pk"))


class RecallEventViewSet(mixins.ListModelMixin, views.ApiViewSet):
    """Recall events, newest first: the reasons for replies.

    Each reply has one recall event, written shortly after the reply.
    """

    queryset = RecallEvent.objects.select_related("reply")
    serializer_class = RecallEventSerializer
    detail_serializer_class = RecallEventInFullSerializer
    filterset_class = RecallEventFilter
    pagination_class = RecallEventPagination
    ordering_fields = ("created_at",)
    subject = "recall event"
    lookup_url_kwarg = "event_id"
    allows_bound_keys = True

    # With the prompt as it was sent, which the admin shows beside the conversation.
    @views.operation(Action.VIEW, permission=("memory.view_recallevent", "memory.view_message"))
    def retrieve(self, request: Request, event_id: UUID) -> Response:
        """Get a recall event.

        The event has the prompt as it was sent. Keys that are bound to a user may not read it.
        """
        event = self.get_object()
        self.caller.require_prompts()
        for name, value in traces([event])[0].items():
            setattr(event, name, value)
        agent = Agent.objects.filter(pk=event.agent_id).first()
        answered = [event.reply.in_reply_to_id] if event.reply else []
        event.model_calls = ModelCall.objects.filter(message__in=answered).order_by("created_at")
        event.unknown_languages = unknown_languages(
            event.query, event.user_id, agent.language if agent else ""
        )
        return Response(self.document(event))


class NewExclusionSerializer(bodies.ReasonSerializer):
    """The part of a message to exclude, and the reason."""

    start = bodies.StrictIntegerField(
        required=False,
        min_value=0,
        help_text="First character of the words. Default, with `end`: the whole message.",
    )
    end = bodies.StrictIntegerField(
        required=False, min_value=1, help_text="Position after the last character of the words."
    )


class ExclusionSerializer(bodies.RowSerializer):
    """A message, or some of its words, excluded from recall."""

    message_id = serializers.UUIDField(help_text="The message.")

    class Meta:
        model = RecallExclusion
        fields = [
            *("id", "message_id", "start", "end", "memory_id", "echo_of", "reason"),
            *("author_kind", "author_name", "created_at"),
        ]


class ExclusionViewSet(mixins.ListModelMixin, views.ApiViewSet):
    """The exclusions of a message from recall, newest first."""

    queryset = RecallExclusion.objects.all()
    serializer_class = ExclusionSerializer
    subject = subjects = rows.SUBJECT
    lookup_url_kwarg = "exclusion_id"
    allows_bound_keys = True

    def message(self) -> Message:
        """Return the message in the address, if the caller may see it. Raises Http404."""
        return get_object_or_404(
            self.caller.rows(Message.objects.all()), pk=self.kwargs["message_id"]
        )

    def get_queryset(self) -> Any:
        """Return the exclusions of the message in the address."""
        return RecallExclusion.objects.filter(message=self.message())

    @views.operation(Action.LIST, id="list_exclusions")
    def list(self, request: Request, message_id: UUID) -> Response:
        """List the exclusions of a message, newest first."""
        return super().list(request)

    @views.operation(
        Action.CREATE,
        body=NewExclusionSerializer,
        id="exclude_from_recall",
        returns={200: ExclusionSerializer},
    )
    def create(self, request: Request, message_id: UUID) -> Response:
        """Exclude a message, or some of its words, from recall.

        Agents no longer recall the message or the words, and a whole message is not among the
        recent turns. The same happens to the agent's echoes of it: replies that were written with
        the message, and have at least half of its words. The transcript keeps all of them. For
        words that are already excluded, the response is the existing exclusion.
        """
        fields: dict[str, Any] = self.fields
        message, author = self.message(), self.caller.author
        words = {"start": fields.get("start"), "end": fields.get("end")}
        of_caller = RecallExclusion.objects.filter(message=message, memory_id=None, echo_of=None)
        existing = of_caller.filter(**words).first()
        try:
            exclusion = existing or rows.exclude_from_recall(
                message, author=author, request_id=current_request_id(), **fields
            )
        except InvalidArgument as error:
            raise exceptions.ValidationError({"start": str(error)}) from error
        if existing is None:
            self.mark_recorded()
        else:
            self.log(existing)
        return Response(self.document(exclusion))

    @views.operation(Action.DELETE, id="include_again")
    def destroy(self, request: Request, message_id: UUID, exclusion_id: UUID) -> Response:
        """Remove an exclusion, including one made by the correction of a fact.

        Recall and recent turns can have the message, or its words, again, and the echoes of it.
        """
        message = self.message()
        exclusion = RecallExclusion.objects.filter(message=message, pk=exclusion_id).first()
        author = self.caller.author
        if exclusion is None or not rows.include_again(
            message, author=author, exclusion_id=exclusion_id, request_id=current_request_id()
        ):
            raise Http404
        self.mark_recorded()
        return Response(status=204)
