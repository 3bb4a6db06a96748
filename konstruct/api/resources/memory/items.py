"""Items of conversations by REST: the records that frameworks keep of their runs."""

import json
from itertools import accumulate, takewhile
from typing import Any
from uuid import UUID, uuid4

from django.db.models import Func, IntegerField
from django.http import Http404
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http import bodies, filters, schema, views
from konstruct.api.http.pagination import CursorPagination, Position
from konstruct.orchestrator.history_import.lines import import_history
from konstruct.orchestrator.usage import require_storage
from memory.conversations.items import add_items
from memory.models import ConversationItem, Role
from tenants.audit.models import Action
from tenants.context import required_tenant_id

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


class ItemFilter(filters.MemoryOwnerFilter):
    """Filters of a conversation's items."""

    thread_id = filters.Filter(bodies.ChannelIdField, "The conversation.", required=True)


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
        fields = self.fields
        agent_id = self.caller.agent(fields["agent"]).id
        user_id, thread_id = self.caller.user(fields["user_id"]), fields["thread_id"]
        items = fields["items"]

        def add() -> UUID:
            require_storage()
            lines = [dict(item["said"]) for item in items if "said" in item]
            defaults = {"agent": str(agent_id), "user_id": user_id, "thread_id": thread_id}
            results = import_history(lines, tenant_id=required_tenant_id(), defaults=defaults)
            ids = iter([result.message.pk if result.message else None for result in results])
            rows = [(item["item"], next(ids) if "said" in item else None) for item in items]
            add_items(agent_id, user_id, thread_id, rows)
            return uuid4()

        self.idempotency.once(add)
        self.log(items=len(items))
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
        items = self.get_queryset().filter(
            agent_id=self.caller.agent(self.query["agent"]).id,
            user_id=self.caller.user(self.query["user_id"]),
            thread_id=self.query["thread_id"],
        )
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
