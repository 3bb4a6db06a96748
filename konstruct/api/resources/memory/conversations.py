"""Conversations and their transcripts."""

from typing import Any
from urllib.parse import urlencode

from django.db.models import Count, OuterRef, QuerySet, Subquery
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from konstruct.api.http import lists
from konstruct.api.http.bodies import ChannelIdField
from konstruct.api.http.routes import route
from konstruct.api.http.views import AgentNameField, ApiView, operation
from konstruct.api.resources.memory.facts import FILTERS_HELP, FiltersTextField
from konstruct.api.resources.people.erasures import (
    ERASE,
    ERASURE_LOCATION,
    EraseSerializer,
    ErasureSerializer,
    erase_messages,
)
from memory.browse.threads import last_of_threads
from memory.conversations.transcript import filter_by_metadata
from memory.models import Message, Role
from memory.models.conversations import is_indexed
from tenants.audit.models import Action

MAX_PREVIEW_CHARACTERS = 200


class TranscriptUrlField(serializers.URLField):
    """The address of a conversation's transcript."""

    def get_attribute(self, instance: Message) -> str:
        """Return the address with the conversation's parameters."""
        parameters = {
            "agent": instance.agent_id,
            "user_id": instance.user_id,
            "thread_id": instance.thread_id,
        }
        return f"{reverse('transcript', request=self.context['request'])}?{urlencode(parameters)}"


class PreviewField(serializers.CharField):
    """The beginning of a text."""

    def to_representation(self, value: str) -> str:
        """Cut the text."""
        return value[:MAX_PREVIEW_CHARACTERS]


class ConversationSerializer(serializers.Serializer):
    """An agent's conversation with a user in one thread."""

    url = TranscriptUrlField(help_text="The URL of the transcript.")
    agent = AgentNameField(help_text="The agent's name.")
    agent_id = serializers.UUIDField()
    user_id = serializers.CharField()
    thread_id = serializers.CharField()
    messages = serializers.IntegerField(help_text="Number of turns, of user and agent.")
    first_at = serializers.DateTimeField(help_text="Time of the first message.")
    last_at = serializers.DateTimeField(
        source="created_at", help_text="The time of the last message."
    )
    last_role = serializers.ChoiceField(
        source="role", choices=Role.choices, help_text="Role of the author of the latest message."
    )
    last_content = PreviewField(
        source="content",
        help_text=f"The first {MAX_PREVIEW_CHARACTERS} characters of the last message.",
    )


class TurnSerializer(serializers.ModelSerializer):
    """A message, verbatim."""

    in_reply_to = serializers.UUIDField(
        source="in_reply_to_id", allow_null=True, help_text="The message that it answers."
    )

    indexed = serializers.BooleanField(
        source="is_indexed", help_text="Whether recall and search can find it."
    )
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


class ConversationsQuery(lists.AgentUserQuery, lists.TimeRangeQuery, lists.PageQuerySerializer):
    """Query parameters of the list of conversations."""

    thread_id = ChannelIdField(required=False, help_text="Only threads of this id.")
    ordering = lists.ordering_field(lists.NewestFirst)


class TranscriptQuery(lists.TimeRangeQuery, lists.PageQuerySerializer, lists.MemoryOwner):
    """Query parameters of a transcript."""

    thread_id = ChannelIdField(
        required=False,
        help_text="The conversation. Default: all conversations of the agent and the user.",
    )
    filters = FiltersTextField(required=False, help_text=f"{FILTERS_HELP} As JSON text.")
    ordering = serializers.ChoiceField(
        choices=["created_at", "-created_at"],
        required=False,
        help_text="Sort order; a minus means descending. Default: `created_at`.",
    )


class OldestFirst(lists.NewestFirst):
    """The turns of a conversation, the first of them first."""

    orderings = {name: lists.NewestFirst.orderings[name] for name in ("created_at", "-created_at")}


class EraseConversationSerializer(EraseSerializer, lists.ConversationName):
    """Query parameters of an erasure: which conversation, and why."""


@route("conversations/", name="conversations")
class ConversationsView(ApiView):
    """All conversations of the tenant."""

    allows_bound_keys = True

    @operation(
        Action.LIST,
        "conversations",
        permission="memory.view_message",
        query=ConversationsQuery,
        id="list_conversations",
        page=ConversationSerializer,
    )
    def get(self, request: Request) -> Response:
        """List conversations.

        Returns one row for each agent, user and thread, ordered by the last message. `since` and
        `until` compare with the time of the last message.
        """
        user_id = self.query.get("user_id", self.caller.user_id)
        last: QuerySet[Message] = Message.objects.last_of_threads()
        if user_id is not None:
            agent_ids = list(self.caller.agents().values_list("pk", flat=True))
            last = last_of_threads(Message.objects.all(), agent_ids=agent_ids, user_ids=[user_id])
        last = lists.apply_filters(last, self.query, self.caller)
        return self.page(_with_counts(last), lists.NewestFirst(), ConversationSerializer)


@route("conversations/transcript/", name="transcript")
class TranscriptView(ApiView):
    """The messages of a conversation."""

    allows_bound_keys = True

    @operation(
        Action.VIEW,
        "conversation",
        permission="memory.view_message",
        query=TranscriptQuery,
        id="get_transcript",
        page=TurnSerializer,
    )
    def get(self, request: Request) -> Response:
        """Read a conversation.

        Returns every message verbatim, oldest first, imported ones included. An unknown
        conversation is empty.
        """
        messages = Message.objects.annotate(is_indexed=is_indexed())
        turns = lists.apply_filters(messages, self.query, self.caller)
        if "filters" in self.query:
            turns = filter_by_metadata(turns, self.query["filters"])
        return self.page(turns, OldestFirst(), TurnSerializer)

    @operation(
        Action.ERASE,
        "conversation",
        permission=ERASE,
        query=EraseConversationSerializer,
        id="erase_conversation",
        returns={202: ErasureSerializer},
        headers=[ERASURE_LOCATION],
    )
    def delete(self, request: Request) -> Response:
        """Erase a conversation.

        Erases all its messages, as `DELETE /api/v1/messages/{message_id}/` erases one. Later
        messages stay. For an unknown conversation the receipt finds nothing. A graph's session with
        the same thread id is not cleared.
        """
        query = self.query
        return erase_messages(
            self,
            agent_id=self.caller.agent(query["agent"]).id,
            user_id=self.caller.user(query["user_id"]),
            thread_id=query["thread_id"],
            reason=query.get("reason", ""),
        )


def _with_counts(last: "QuerySet[Message]") -> "QuerySet[Message]":
    """Add to the last message of each conversation how many there are, and when the first was.

    As sub-selects, which Postgres computes for the rows of the page alone.
    """
    same = Message.objects.filter(
        agent_id=OuterRef("agent_id"),
        user_id=OuterRef("user_id"),
        thread_id=OuterRef("thread_id"),
    )
    count = same.order_by().values("thread_id").annotate(count=Count("number")).values("count")
    first = same.order_by("created_at", "number").values("created_at")[:1]
    return last.annotate(messages=Subquery(count), first_at=Subquery(first))
