"""Conversations, their transcripts, and the items that frameworks keep of their runs."""

import json
from collections.abc import Mapping
from itertools import accumulate, takewhile
from typing import Any
from urllib.parse import urlencode
from uuid import UUID, uuid4

from django.db.models import (
    Count,
    Exists,
    Func,
    IntegerField,
    JSONField,
    OuterRef,
    QuerySet,
    Subquery,
    TextField,
    Value,
)
from django.db.models.functions import Coalesce
from django.http import Http404
from drf_spectacular.utils import extend_schema_field
from rest_framework import decorators, exceptions, mixins, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from konstruct.api.http import bodies, lists, schema, views
from konstruct.api.http.lists import CursorPagination, Position
from konstruct.api.resources.people import erasures
from konstruct.orchestrator.history_import.lines import import_history
from konstruct.orchestrator.usage import require_storage
from memory.browse.lists import last_of_threads, of_conversation
from memory.conf import MAX_MESSAGE_METADATA_BYTES
from memory.conversations import transcript
from memory.models import Conversation, ConversationItem, Message, Role, recall
from tenants.audit.models import Action
from tenants.context import required_tenant_id

MAX_PREVIEW_CHARACTERS = 200
# So many rows of titles and metadata are found first. Of more, the newest messages are compared.
MAX_FOUND = 1_000


class TranscriptUrlField(serializers.URLField):
    """The address of a conversation's transcript."""

    def get_attribute(self, instance: Message) -> str:
        """Return the address with the conversation's parameters."""
        parameters = {
            "agent": instance.agent_id,
            "user_id": instance.user_id,
            "thread_id": instance.thread_id,
        }
        address = reverse("conversation-get-transcript", request=self.context["request"])
        return f"{address}?{urlencode(parameters)}"


class PreviewField(serializers.CharField):
    """The beginning of a text."""

    def to_representation(self, value: str) -> str:
        """Cut the text."""
        return value[:MAX_PREVIEW_CHARACTERS]


class ConversationSerializer(serializers.Serializer):
    """An agent's conversation with a user in one thread."""

    url = TranscriptUrlField(help_text="The URL of the transcript.")
    agent = views.AgentNameField(help_text="The agent's name.")
    agent_id = serializers.UUIDField()
    user_id = serializers.CharField()
    thread_id = serializers.CharField()
    title = serializers.CharField(help_text="The title that a program set, or empty.")
    metadata = bodies.ObjectField(source="details", help_text="What a program set, or empty.")
    messages = serializers.IntegerField(help_text="Number of turns, of user and agent.")
    first_at = serializers.DateTimeField(help_text="Time of the first message.")
    last_at = serializers.DateTimeField(source="created_at", help_text="Time of the last message.")
    last_role = serializers.ChoiceField(
        source="role", choices=Role.choices, help_text="Role of the author of the latest message."
    )
    last_content = PreviewField(
        source="content",
        help_text=f"The first {MAX_PREVIEW_CHARACTERS} characters of the last message.",
    )


class ConversationChanges(bodies.StrictSerializer):
    """The title and metadata of a conversation."""

    min_fields = 1
    title = bodies.ChannelIdField(
        required=False, allow_blank=True, max_length=200, help_text="The title; empty: none."
    )
    metadata = bodies.CheckedObjectField(
        check=transcript.metadata_argument,
        required=False,
        help_text="A JSON object, merged into the stored one by RFC 7396 (JSON Merge Patch); at "
        f"most {MAX_MESSAGE_METADATA_BYTES:,} bytes.",
    )


class ConversationRowSerializer(bodies.RowSerializer):
    """What programs have set of a conversation."""

    agent = views.AgentNameField(help_text="The agent's name.")
    metadata = bodies.ObjectField()

    class Meta:
        model = Conversation
        fields = ["agent", "agent_id", "user_id", "thread_id", "title", "metadata"]


class TurnSerializer(serializers.ModelSerializer):
    """A message, verbatim."""

    in_reply_to = serializers.UUIDField(
        source="in_reply_to_id", allow_null=True, help_text="The message that it answers."
    )

    indexed = serializers.BooleanField(source="is_indexed", help_text="Whether recall can find it.")
    metadata = serializers.SerializerMethodField(help_text="As it was sent, or empty.")

    def get_metadata(self, turn: Message) -> dict[str, Any]:
        """An object also where there is none."""
        return turn.metadata or {}

    class Meta:
        model = Message
        fields = [
            *("id", "role", "name", "content", "channel", "thread_id", "created_at"),
            *("indexed", "in_reply_to", "external_id", "metadata"),
        ]


class ConversationFilter(lists.ThreadFilter, lists.TimeRangeFilter):
    """Filters of the list of conversations."""

    title = lists.Filter(
        bodies.StrictCharField,
        "Only conversations with this text in their title, regardless of case.",
        method="of_title",
        max_length=200,
    )
    metadata = lists.Filter(
        bodies.FiltersTextField,
        'Only conversations whose metadata has these values, such as `{"ticket": 7}`, as JSON '
        "text.",
        method="of_metadata",
    )

    def of_title(self, rows: QuerySet[Any], name: str, value: str) -> QuerySet[Any]:
        """Filter by a part of the title."""
        found = Conversation.objects.filter(title__icontains=value)
        return _found(rows, found, title__icontains=value)

    def of_metadata(self, rows: QuerySet[Any], name: str, value: Any) -> QuerySet[Any]:
        """Filter by values of the metadata."""
        if any(isinstance(one, Mapping) for one in value.values()):
            raise exceptions.ValidationError({"metadata": "Give values: here are no operators."})
        found = Conversation.objects.filter(metadata__contains=value)
        return _found(rows, found, details__contains=value)

    def filter_queryset(self, queryset: "QuerySet[Message]") -> "QuerySet[Message]":
        """Return the last message of each conversation, with the counts of the conversation."""
        user_id = self.data.get("user_id", self.caller.user_id)
        last: QuerySet[Message] = Message.objects.last_of_threads()
        if user_id is not None:
            agent_ids = list(self.caller.agents().values_list("pk", flat=True))
            last = last_of_threads(Message.objects.all(), agent_ids=agent_ids, user_ids=[user_id])
        last = self.caller.rows(last).annotate(
            title=Coalesce(of_conversation("title"), Value("", TextField())),
            details=Coalesce(of_conversation("metadata"), Value({}, JSONField())),
        )
        # As sub-selects, which Postgres computes for the rows of the page alone.
        same = Message.objects.filter(
            **{name: OuterRef(name) for name in ("agent_id", "user_id", "thread_id")}
        ).order_by()
        count = same.values("thread_id").annotate(count=Count("number")).values("count")
        first = same.order_by("created_at", "number").values("created_at")[:1]
        rows = super().filter_queryset(last)
        return rows.annotate(messages=Subquery(count), first_at=Subquery(first))


class TranscriptFilter(lists.MemoryOwnerFilter, lists.TimeRangeFilter, lists.MetadataFilter):
    """Filters of a transcript."""

    thread_id = lists.Filter(
        bodies.ChannelIdField,
        "The conversation. Default: all conversations of the agent and the user.",
    )


class EraseConversationSerializer(erasures.EraseSerializer, bodies.ConversationName):
    """Query parameters of an erasure: which conversation, and why."""


class ConversationViewSet(mixins.ListModelMixin, views.ApiViewSet):
    """All conversations of the tenant.

    Returns one row for each agent, user and thread, ordered by the last message. `since` and
    `until` compare with the time of the last message.
    """

    queryset = Message.objects.all()
    serializer_class = ConversationSerializer
    filterset_class = ConversationFilter
    ordering = ("-created_at", "-number")
    ordering_fields = ("created_at",)
    subject = "conversation"
    allows_bound_keys = True

    @decorators.action(
        detail=False,
        url_path="transcript",
        queryset=Message.objects.annotate(is_indexed=recall.is_indexed()),
        ordering=("created_at", "number"),
    )
    @views.operation(Action.VIEW, filters=TranscriptFilter, page=TurnSerializer)
    def get_transcript(self, request: Request) -> Response:
        """Read a conversation.

        Returns every message verbatim, oldest first, imported ones included. An unknown
        conversation is empty.
        """
        return self.page(self.filter_queryset(self.get_queryset()), TurnSerializer)

    @get_transcript.mapping.patch
    @views.operation(
        Action.EDIT,
        permission="memory.add_message",
        query=bodies.ConversationName,
        body=ConversationChanges,
        returns=ConversationRowSerializer,
        errors=(402, 409),
    )
    def update_conversation(self, request: Request) -> Response:
        """Set the title and metadata of a conversation.

        Omitted fields are unchanged. The conversation may have no messages yet. Both are erased
        with the conversation.
        """
        thread = self.caller.thread_in(self.query)
        require_storage()
        conversation = transcript.lock_conversation(**thread)
        return self.merge(conversation, self.fields, ConversationRowSerializer)

    @get_transcript.mapping.delete
    @views.operation(
        Action.ERASE,
        permission=erasures.ERASE,
        query=EraseConversationSerializer,
        returns={202: erasures.ErasureSerializer},
        headers=[schema.LOCATION],
    )
    def erase_conversation(self, request: Request) -> Response:
        """Erase a conversation.

        Erases all its messages, as `DELETE /api/v1/messages/{message_id}/` erases one. Later
        messages stay. For an unknown conversation the receipt finds nothing. A graph's session with
        the same thread id is not cleared.
        """
        thread = self.caller.thread_in(self.query)
        return erasures.erase_messages(self, **thread, reason=self.query.get("reason", ""))


def _found(
    rows: "QuerySet[Any]", found: "QuerySet[Conversation]", **conditions: Any
) -> "QuerySet[Any]":
    """Filter last messages by the rows that programs have written of their conversations.

    The conditions alone would read the row of each conversation, if few match.
    """
    ids = list(found.values_list("pk", flat=True)[: MAX_FOUND + 1])
    if len(ids) > MAX_FOUND:
        return rows.filter(**conditions)
    same = {name: OuterRef(name) for name in ("agent_id", "user_id", "thread_id")}
    return rows.filter(Exists(Conversation.objects.filter(**same, pk__in=ids)))


MAX_ADDED = 1_000
# Of JSON in a page: an item may be as large as a request.
MAX_BYTES = 4_000_000


@extend_schema_field({"type": "object", "additionalProperties": True})
class ItemField(serializers.DictField):
    """Any JSON object, which is stored unchanged."""


@extend_schema_field({"type": "string"})
class SpokenField(serializers.Field):
    """Text of any kind: the transcript checks whether it can be remembered."""

    def to_internal_value(self, data: Any) -> str:
        """Refuse a value that is no text."""
        if not isinstance(data, str):
            raise serializers.ValidationError("Give text.")
        return data


class SpokenSerializer(bodies.StrictSerializer):
    """A message for the transcript."""

    role = serializers.ChoiceField(choices=Role.choices)
    content = SpokenField()


class NewItemSerializer(bodies.StrictSerializer):
    """An item, and its text for the transcript."""

    item = ItemField(help_text="Any JSON object. It is returned unchanged.")
    said = SpokenSerializer(
        required=False,
        help_text="The message of the item for the transcript. Without it, recall cannot find the "
        "item. A text that does not fit into the transcript, such as one that is too long, is not "
        "added.",
    )


class NewItemsSerializer(bodies.ConversationName):
    """Items that are added to a conversation, in their order."""

    items = bodies.BoundedListField(child=NewItemSerializer(), max_length=MAX_ADDED, min_length=1)


class ItemFilter(lists.MemoryOwnerFilter):
    """Filters of a conversation's items."""

    thread_id = lists.Filter(bodies.ChannelIdField, "The conversation.", required=True)


class ItemSerializer(serializers.ModelSerializer):
    """An item, as it was added."""

    item = serializers.SerializerMethodField()
    message_id = serializers.UUIDField(
        allow_null=True, help_text="Its message in the transcript. Null: it has none."
    )

    @extend_schema_field({"type": "object", "additionalProperties": True})
    def get_item(self, row: ConversationItem) -> Any:
        """The stored text."""
        return json.loads(row.item)

    class Meta:
        model = ConversationItem
        fields = ["id", "item", "message_id", "created_at"]


class ItemPagination(CursorPagination):
    """Pages that hold at most MAX_BYTES, and one item at least."""

    max_page_size = 50

    def rows_after(self, queryset: Any, position: Position | None, *, backwards: bool) -> list[Any]:
        """Return one row more than fits into the page."""
        size = Func("item", function="octet_length", output_field=IntegerField())
        sizes = super().rows_after(queryset.values_list(size), position, backwards=backwards)
        together = accumulate(size for (size,) in sizes)
        fitting = sum(1 for _ in takewhile(lambda so_far: so_far <= MAX_BYTES, together))
        self.page_size = max(1, min(self.page_size, fitting))
        return super().rows_after(queryset, position, backwards=backwards)


class ItemViewSet(views.ApiViewSet):
    """The items of a conversation."""

    queryset = ConversationItem.objects.all()
    serializer_class = ItemSerializer
    pagination_class = ItemPagination
    ordering = ("-created_at", "-number")
    ordering_fields = ("created_at",)
    subject = "conversation item"
    lookup_url_kwarg = "item_id"
    # A key that may add may remove: messages stay in the transcript.
    allows_bound_keys = True

    @views.operation(Action.VIEW, filters=ItemFilter)
    def list(self, request: Request) -> Response:
        """List the items of a conversation.

        Returns the items that a framework has stored, newest first. A page has at most 4,000,000
        bytes of JSON, unless a single item is larger.
        """
        return self.page(self.filter_queryset(self.get_queryset()))

    @views.operation(
        Action.CREATE,
        "conversation items",
        permission="memory.add_message",
        body=NewItemsSerializer,
        id="add_conversation_items",
        returns={204: None},
        errors=(402, 409, 422),
        headers=[schema.IDEMPOTENCY_KEY],
    )
    def create(self, request: Request) -> Response:
        """Add items to a conversation.

        Items belong to the framework that adds them, and get no reply. Items with the field `said`
        are also written into the transcript, like imported messages.
        """
        thread, added = self.caller.thread_in(self.fields), self.fields["items"]

        def add() -> UUID:
            require_storage()
            lines = [dict(item["said"]) for item in added if "said" in item]
            names = ("user_id", "thread_id")
            defaults = {name: thread[name] for name in names} | {"agent": str(thread["agent_id"])}
            results = import_history(lines, tenant_id=required_tenant_id(), defaults=defaults)
            ids = iter([result.message.pk if result.message else None for result in results])
            rows = [(item["item"], next(ids) if "said" in item else None) for item in added]
            transcript.add_items(**thread, items=rows)
            return uuid4()

        self.idempotency.once(add)
        self.log(items=len(added))
        return Response(status=204)

    @views.operation(
        Action.DELETE,
        "conversation items",
        permission="memory.delete_message",
        query=bodies.ConversationName,
    )
    def clear_conversation_items(self, request: Request) -> Response:
        """Remove all items of a conversation.

        Removes the items immediately and permanently. Their texts stay in the transcript until the
        conversation is erased.
        """
        items = self.get_queryset().filter(**self.caller.thread_in(self.query))
        removed, _ = items.delete()
        self.log(items=removed)
        return Response(status=204)

    @views.operation(
        Action.DELETE,
        permission="memory.delete_message",
        id="remove_conversation_item",
        errors=(409,),
        headers=[schema.IDEMPOTENCY_KEY],
    )
    def destroy(self, request: Request, item_id: UUID) -> Response:
        """Remove an item.

        Removes the item immediately. Its text stays in the transcript. If two requests remove the
        same item, one of them gets a 404.
        """

        def remove() -> UUID:
            item = self.get_queryset().filter(pk=item_id).first()
            if item is None or not item.delete()[0]:
                raise Http404
            item.pk = item_id  # Django sets it to None
            self.log(item)
            return item_id

        self.idempotency.once(remove)
        return Response(status=204)
