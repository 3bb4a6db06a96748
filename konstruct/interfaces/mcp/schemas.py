"""Arguments and results of tools: serializers, and the JSON Schemas made from them."""

from collections.abc import Collection
from typing import Any, Final

from rest_framework import serializers
from rest_framework.fields import empty

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


def object_schema(
    serializer: Any,
    *,
    without: Collection[str] = (),
    required: Collection[str] = (),
) -> dict[str, Any]:
    """Return the schema of a tool's arguments, or of its result.

    Args:
        serializer: the arguments or the result.
        without: fields to leave out.
        required: fields that are required in addition to the serializer's.
    """
    fields = {name: field for name, field in serializer.fields.items() if name not in without}
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: _schema(field) for name, field in fields.items()},
        "required": [n for n, field in fields.items() if field.required or n in required],
    }
    if isinstance(serializer, bodies.StrictSerializer):
        schema["additionalProperties"] = False
    return schema


_TYPES: Final[tuple[tuple[type[serializers.Field], dict[str, str]], ...]] = (
    (serializers.DictField, {"type": "object"}),
    (serializers.BooleanField, {"type": "boolean"}),
    (serializers.IntegerField, {"type": "integer"}),
    (serializers.FloatField, {"type": "number"}),
    (serializers.UUIDField, {"type": "string", "format": "uuid"}),
    (serializers.DateTimeField, {"type": "string", "format": "date-time"}),
    (serializers.Field, {"type": "string"}),
)


def _schema(field: serializers.Field) -> dict[str, Any]:
    schema: dict[str, Any]
    if isinstance(field, serializers.ListSerializer):
        schema = {"type": "array", "items": object_schema(field.child)}
    else:
        schema = dict(next(found for kind, found in _TYPES if isinstance(field, kind)))
    if isinstance(field, serializers.ChoiceField):
        schema["enum"] = list(field.choices)
    if field.allow_null:
        schema["type"] = [schema["type"], "null"]
    if field.default is not empty:
        schema["default"] = field.default
    given = {
        "description": field.help_text,
        "maxLength": getattr(field, "max_length", None),
        "minimum": getattr(field, "min_value", None),
        "maximum": getattr(field, "max_value", None),
    }
    return schema | {name: value for name, value in given.items() if value is not None}
