"""Arguments and results of tools: serializers, and the JSON Schemas made from them."""

from collections.abc import Collection
from typing import Any

from rest_framework import serializers
from rest_framework.schemas.openapi import AutoSchema

from konstruct.api.http import bodies
from konstruct.api.http.pagination import CURSOR_TEXT
from konstruct.api.resources.memory.facts import MAX_QUERY_CHARACTERS
from memory.models.attributes import metadata_values
from memory.recall.policy import PRESETS

MAX_RESULTS = 50
KINDS = ("fact", "message")


class OwnerSerializer(bodies.StrictSerializer):
    """The owner of a memory. A key that is bound to an agent or a user need not name it."""

    user_id = bodies.ChannelIdField(
        required=False, help_text="Id of the user that the memory is about."
    )
    agent = bodies.ChannelIdField(
        required=False, help_text="Name or id of the agent of the memory."
    )


class RememberSerializer(OwnerSerializer):
    """A fact to be stored."""

    content = bodies.TextField(
        help_text="One fact as a full sentence that is clear without this conversation: "
        "“Maria is allergic to walnuts.”"
    )
    metadata = bodies.CheckedObjectField(
        check=metadata_values, required=False, help_text="Your own labels, such as a topic."
    )


class SearchSerializer(OwnerSerializer):
    """A search."""

    query = bodies.TextField(
        max_length=MAX_QUERY_CHARACTERS,
        help_text="The question, in any words: “What must Maria not eat?”",
    )
    limit = bodies.StrictIntegerField(
        default=10,
        min_value=1,
        max_value=MAX_RESULTS,
        help_text="At most this many facts, and as many messages.",
    )
    preset = serializers.ChoiceField(
        choices=list(PRESETS),
        required=False,
        help_text="How strictly messages are selected: precise returns fewer, thorough more. "
        "Default: the agent's setting.",
    )


class ListSerializer(OwnerSerializer):
    """A page of facts."""

    limit = bodies.StrictIntegerField(
        default=20, min_value=1, max_value=MAX_RESULTS, help_text="Facts a page."
    )
    cursor = bodies.StrictCharField(
        required=False, validators=[CURSOR_TEXT], help_text="The next_cursor of the previous page."
    )


class IdSerializer(bodies.StrictSerializer):
    """One memory."""

    id = serializers.UUIDField(help_text="An id from remember, search or list.")


class CorrectSerializer(IdSerializer):
    """The new text of a fact."""

    content = bodies.TextField(help_text="The whole fact as it is now, as a full sentence.")


class MemorySerializer(serializers.Serializer):
    """A fact, or a message of a conversation."""

    id = serializers.UUIDField()
    kind = serializers.ChoiceField(
        choices=KINDS, help_text="A stored fact, or a message of a conversation."
    )
    content = serializers.CharField()
    when = serializers.DateTimeField(help_text="Start of the fact's validity; time of the message.")
    who = serializers.CharField(
        allow_null=True, help_text="User of the fact; author of the message."
    )


class FoundSerializer(MemorySerializer):
    """A search result."""

    score = serializers.FloatField(
        help_text="0 to 1: a fact's cosine similarity, a message's probability of being relevant. "
        "Compare within one kind only."
    )


class ResultsSerializer(serializers.Serializer):
    """Search results."""

    results = FoundSerializer(
        many=True,
        help_text="Facts, then messages, the best of each first; or by the agent's reranker, if it "
        "has one.",
    )
    reranker_problem = serializers.CharField(help_text="Why the reranker gave no order, or empty.")


class PageSerializer(serializers.Serializer):
    """A page of facts."""

    results = MemorySerializer(many=True, help_text="Newest first.")
    next_cursor = serializers.CharField(allow_null=True, help_text="null: this is the last page.")


class SimilarSerializer(serializers.Serializer):
    """A near-duplicate of a fact."""

    id = serializers.UUIDField()
    content = serializers.CharField()


class RememberedSerializer(MemorySerializer):
    """A stored fact."""

    created = serializers.BooleanField(help_text="false: the same text was already stored.")
    similar = SimilarSerializer(
        many=True, help_text="Similar facts: correct or forget outdated ones."
    )


class VersionSerializer(serializers.Serializer):
    """An earlier version of a fact."""

    content = serializers.CharField()
    since = serializers.DateTimeField()
    until = serializers.DateTimeField(allow_null=True)


class OneSerializer(MemorySerializer):
    """A memory with its earlier versions."""

    earlier = VersionSerializer(many=True, help_text="Earlier versions of a fact, newest first.")


class ForgottenSerializer(serializers.Serializer):
    """A deleted fact."""

    id = serializers.UUIDField()
    forgotten = serializers.BooleanField()


class ToolSchema(AutoSchema):
    """REST framework's schemas of serializers, as JSON Schemas."""

    def map_serializer(self, serializer: Any) -> dict[str, Any]:
        """Return the schema of an object."""
        schema: dict[str, Any] = super().map_serializer(serializer)
        for described in schema["properties"].values():
            described.pop("pattern", None)  # of Python, which JavaScript cannot read
            if described.pop("nullable", False):
                described["type"] = [described["type"], "null"]
        if isinstance(serializer, bodies.StrictSerializer):
            schema["additionalProperties"] = False
        return schema

    def map_field(self, field: Any) -> dict[str, Any]:
        """Return the schema of a field."""
        if isinstance(field, serializers.DictField):  # a class of its own
            return {"type": "object"}
        schema: dict[str, Any] = super().map_field(field)
        return schema


def object_schema(
    serializer: Any, *, without: Collection[str] = (), required: Collection[str] = ()
) -> dict[str, Any]:
    """Return the schema of a tool's arguments, or of its result.

    Args:
        serializer: the arguments or the result.
        without: fields to leave out.
        required: fields that are required in addition to the serializer's.
    """
    schema = ToolSchema().map_serializer(serializer)
    properties = {n: one for n, one in schema["properties"].items() if n not in without}
    needed = {*schema.get("required", ()), *required}
    return schema | {"properties": properties, "required": [n for n in properties if n in needed]}
