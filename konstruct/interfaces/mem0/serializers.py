"""Requests of mem0's clients, and the documents of memories that they read."""

import ast
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.utils import timezone
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from konstruct.api.http import bodies, views
from konstruct.api.resources.memory.facts import MAX_QUERY_CHARACTERS
from konstruct.interfaces.mem0 import memories as language
from konstruct.interfaces.mem0.memories import ENTITIES, IN_METADATA, MAX_VALUES
from konstruct.strict_json import NotStrictJSON, read_json
from memory import arguments, exceptions, models
from memory.models.attributes import MAX_TEXT_CHARACTERS, metadata_values

MAX_MESSAGES: Final = 100
MAX_RESULTS: Final = 1_000
MAX_PAGE_SIZE: Final = 500
MAX_ENTITY_PAGE_SIZE: Final = 1_000
MAX_PAGE: Final = 1_000_000
MAX_DELETED: Final = 1_000
# Clients send null for what they leave out.
OPTIONAL: Final[dict[str, Any]] = {"required": False, "allow_null": True}
# Each text is embedded while the client waits.
MAX_UPDATED: Final = 100
MAX_FIELDS: Final = 32
MAX_FILTERS_CHARACTERS: Final = 4_096

# Parameters of the clients that have no effect here, and the reason that the answer gives. An
# empty reason is left out of the answer.
NOT_EXTRACTED = "nothing is extracted by such instructions; memories are kept as facts"
IGNORED: Final = {
    **dict.fromkeys(
        (
            *("version", "api_version", "output_format", "org_id", "project_id"),
            *("async_mode", "latest_only", "source"),
        ),
        "",
    ),
    "custom_categories": NOT_EXTRACTED,
    "custom_instructions": NOT_EXTRACTED,
    "agent_custom_instructions": NOT_EXTRACTED,
    "structured_data_schema": NOT_EXTRACTED,
    "includes": NOT_EXTRACTED,
    "excludes": NOT_EXTRACTED,
    "enable_graph": "there is no graph",
    "immutable": "every memory can be changed, and its history has each change",
    "rerank": "results are in the order of cosine similarity",
    "keyword_search": "results are in the order of cosine similarity; filter by keywords",
    "filter_memories": "no model picks among the results; narrow them by filters or threshold",
    "reference_date": "words such as yesterday are not resolved",
    "delete_linked": "a memory's older versions are deleted with it anyway",
}


def with_ignored(document: dict[str, Any], sent: Any, **reasons: str) -> dict[str, Any]:
    """Add `ignored` to a response: the parameters without effect, each with the reason."""
    ignored = {name: IGNORED.get(name, "") for name, value in sent.items() if value} | reasons
    ignored = {name: reason for name, reason in ignored.items() if reason}
    return document | ({"ignored": ignored} if ignored else {})


class LenientSerializer(bodies.StrictSerializer):
    """Accepts its own fields and the names in `IGNORED`, and no others."""

    def to_internal_value(self, data: Any) -> Any:
        """Drop the names in `IGNORED`."""
        if isinstance(data, Mapping):
            data = {name: data[name] for name in data if name in self.fields or name not in IGNORED}
        return super().to_internal_value(data)


class ParsedField(serializers.Field):
    """A field that a function parses, which raises InvalidArgument."""

    def __init__(self, parse: Callable[[str, Any], Any], **options: Any) -> None:
        super().__init__(**options)
        self.parse = parse

    def to_internal_value(self, data: Any) -> Any:
        """Parse the value."""
        try:
            return self.parse(self.field_name or "", data)
        except exceptions.InvalidArgument as error:
            raise ValidationError(str(error)) from error


def _parse_past_time(field: str, value: Any) -> datetime:
    """Parse the time of a memory. Before a later time no search would find it."""
    return min(arguments.time_argument(field, language.parse_time(field, value)), timezone.now())


class LastDayField(serializers.DateField):
    """The last day of a memory; its value is the first moment after that day, in UTC."""

    def to_internal_value(self, data: Any) -> datetime:
        """Parse a day."""
        day = super().to_internal_value(data)
        if not isinstance(day, date) or day > date.max - timedelta(days=1):
            self.fail("invalid", format="YYYY-MM-DD")
        return datetime.combine(day, time.min, UTC) + timedelta(days=1)


class MetadataIdField(bodies.ChannelIdField):
    """An id that is stored in the metadata, and found there only if it is stored whole."""

    def to_internal_value(self, data: Any) -> str:
        """Refuse an id that the index of metadata would cut off."""
        text = super().to_internal_value(data)
        if len(text.encode()) > MAX_TEXT_CHARACTERS:
            raise ValidationError(f"Give at most {MAX_TEXT_CHARACTERS} bytes of UTF-8.")
        return text


class EntitiesSerializer(bodies.StrictSerializer):
    """The entities that a memory belongs to."""

    user_id = bodies.ChannelIdField(**OPTIONAL)
    agent_id = bodies.ChannelIdField(**OPTIONAL)
    app_id = MetadataIdField(**OPTIONAL)
    run_id = MetadataIdField(**OPTIONAL)


class MessageSerializer(serializers.Serializer):
    """A message of a conversation. Its other members, such as `name`, are ignored."""

    role = serializers.ChoiceField(choices=["user", "assistant", "system", "tool"])
    content = serializers.JSONField(allow_null=True)

    def validate_content(self, content: Any) -> str:
        """Return the text; the texts of several parts are joined by newlines."""
        if content is None:
            return ""
        if isinstance(content, list | dict):
            parts = content if isinstance(content, list) else [content]
            content = "\n".join(_text_of_part(part) for part in parts)
        text = bodies.StrictCharField(allow_blank=True, max_length=settings.MAX_MESSAGE_CHARACTERS)
        return str(text.run_validation(content))


def _text_of_part(part: Any) -> str:
    if not isinstance(part, Mapping) or part.get("type") != "text":
        raise ValidationError("Only text is remembered here: give parts of the type text.")
    text = part.get("text")
    if not isinstance(text, str):
        raise ValidationError("The text of a part is not text.")
    return text


class ChangeSerializer(LenientSerializer):
    """A change of a memory."""

    text = bodies.TextField(required=False)
    metadata = bodies.CheckedObjectField(check=metadata_values, required=False)
    timestamp = ParsedField(_parse_past_time, required=False)
    expiration_date = LastDayField(**OPTIONAL)
    min_fields = 1


class AddSerializer(LenientSerializer, EntitiesSerializer):
    """Memories to be added."""

    messages = serializers.JSONField(required=False)
    text = bodies.TextField(required=False)
    filters = EntitiesSerializer(required=False)
    metadata = bodies.CheckedObjectField(check=metadata_values, **OPTIONAL)
    infer = bodies.StrictBooleanField(default=True)
    timestamp = ParsedField(_parse_past_time, **OPTIONAL)
    expiration_date = LastDayField(**OPTIONAL)

    def validate_messages(self, messages: Any) -> list[dict[str, str]]:
        """Return messages with role and text; a text without a role is a user's."""
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        elif isinstance(messages, dict):
            messages = [messages]
        field = bodies.BoundedListField(
            max_length=MAX_MESSAGES, allow_empty=False, child=MessageSerializer()
        )
        return list(field.run_validation(messages))

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Merge the places in which a request may name entities and texts."""
        if ("messages" in attrs) == ("text" in attrs):
            raise ValidationError({"messages": "Give messages, or text."})
        if "text" in attrs:
            attrs["messages"] = [{"role": "user", "content": attrs.pop("text")}]
        metadata = dict(attrs.get("metadata") or {})
        in_filters = attrs.pop("filters", {})
        for name in ENTITIES:
            values = {attrs.get(name), in_filters.get(name)} - {None}
            if name in IN_METADATA and metadata.get(name) is not None:
                values.add(metadata[name])
            if len(values) > 1:
                raise ValidationError({name: "The request names two of them."})
            attrs[name] = values.pop() if values else None
        attrs["metadata"] = metadata
        return attrs


class ReadSerializer(LenientSerializer):
    """Fields that search and list have in common."""

    filters = ParsedField(lambda _, filters: language.parse(filters), **OPTIONAL)
    categories = bodies.BoundedListField(
        max_length=MAX_VALUES, child=bodies.StrictCharField(), **OPTIONAL
    )
    show_expired = bodies.StrictBooleanField(**OPTIONAL)

    def get_fields(self) -> dict[str, serializers.Field]:
        """Add the field `fields`: a serializer cannot have an attribute of that name."""
        names = bodies.BoundedListField(
            max_length=MAX_FIELDS, child=bodies.StrictCharField(), **OPTIONAL
        )
        return {**super().get_fields(), "fields": names}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Put the conditions beside `filters` into the filter."""
        conditions = {name: attrs[name] for name in ("categories", "metadata") if attrs.get(name)}
        dates = {"gte": attrs.get("start_date"), "lte": attrs.get("end_date")}
        if dates := {name: value for name, value in dates.items() if value is not None}:
            conditions["created_at"] = dates
        try:
            more = language.parse(conditions)
        except exceptions.InvalidArgument as error:
            raise ValidationError(str(error)) from error
        sent = attrs.get("filters") or language.Filter()
        attrs["filters"] = language.combine("AND", [sent, more])
        return attrs


class SearchSerializer(ReadSerializer):
    """A search."""

    query = bodies.TextField(max_length=MAX_QUERY_CHARACTERS)
    top_k = bodies.StrictIntegerField(**OPTIONAL, min_value=1, max_value=MAX_RESULTS)
    threshold = bodies.StrictFloatField(**OPTIONAL, min_value=-1, max_value=1)
    metadata = serializers.JSONField(**OPTIONAL)


class ListSerializer(ReadSerializer):
    """A list."""

    start_date = serializers.JSONField(**OPTIONAL)
    end_date = serializers.JSONField(**OPTIONAL)


class PageSerializer(LenientSerializer):
    """Query parameters of a list."""

    page = serializers.IntegerField(default=1, min_value=1, max_value=MAX_PAGE)
    page_size = serializers.IntegerField(default=100, min_value=1, max_value=MAX_PAGE_SIZE)


class EntityPageSerializer(PageSerializer):
    """Query parameters of the list of entities. Clients send none and read only the first page."""

    page_size = serializers.IntegerField(
        default=MAX_ENTITY_PAGE_SIZE,
        min_value=1,
        max_value=MAX_ENTITY_PAGE_SIZE,
    )


class DeleteSerializer(LenientSerializer):
    """Query parameters of a deletion: the owners of the memories, or filters."""

    user_id = bodies.StrictCharField(required=False)
    agent_id = bodies.StrictCharField(required=False)
    app_id = bodies.StrictCharField(required=False)
    run_id = bodies.StrictCharField(required=False)
    filters = bodies.StrictCharField(required=False, max_length=MAX_FILTERS_CHARACTERS)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Return the filter of the rows to delete, which names their owners."""
        named = {name: value for name, value in attrs.items() if name != "filters"}
        sent = read_filters(attrs["filters"]) if "filters" in attrs else {}
        parsed = [language.parse(conditions) for conditions in (named, sent)]
        return {"filters": language.combine("AND", parsed)}


class NamedMemorySerializer(bodies.StrictSerializer):
    """One memory of a batch."""

    memory_id = serializers.UUIDField()


class ChangedMemorySerializer(NamedMemorySerializer, ChangeSerializer):
    """One memory of a batch, and its change."""

    min_fields = 2


class DeleteBatchSerializer(bodies.StrictSerializer):
    """Memories to be deleted."""

    memories = bodies.BoundedListField(
        max_length=MAX_DELETED, allow_empty=False, child=NamedMemorySerializer()
    )


class UpdateBatchSerializer(bodies.StrictSerializer):
    """Memories to be changed."""

    memories = bodies.BoundedListField(
        max_length=MAX_UPDATED, allow_empty=False, child=ChangedMemorySerializer()
    )


def read_filters(text: str) -> Any:
    """Parse JSON, or a Python literal, which mem0's Python client sends.

    Raises:
        InvalidArgument: the text is neither.
    """
    try:
        return read_json(text)
    except NotStrictJSON:
        pass
    try:
        return read_json(json.dumps(ast.literal_eval(text)))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        raise exceptions.InvalidArgument("filters is not a JSON object") from None


def memory_documents(
    facts: Iterable[models.MemoryEntry], fields: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Return facts as mem0's memories, with one query for the names of their agents.

    Args:
        facts: the facts; those of a search have a `score`.
        fields: the members to return beside `id`; all by default.
    """
    facts = list(facts)
    names = views.agent_names(fact.agent_id for fact in facts if fact.agent_id is not None)
    documents = [_document(fact, names) for fact in facts]
    if not fields:
        return documents
    return [
        {name: value for name, value in document.items() if name == "id" or name in fields}
        for document in documents
    ]


def _document(fact: models.MemoryEntry, names: Mapping[UUID, str]) -> dict[str, Any]:
    last_day = None
    if fact.expires_at is not None:
        last_day = (fact.expires_at.astimezone(UTC) - timedelta(microseconds=1)).date()
    document = {
        "id": fact.memory_id,
        "memory": fact.content,
        "user_id": fact.user_id,
        "agent_id": names.get(fact.agent_id) if fact.agent_id else None,
        "app_id": fact.metadata.get("app_id"),
        "run_id": fact.metadata.get("run_id"),
        "metadata": _own_metadata(fact),
        "categories": fact.metadata.get("categories"),
        "created_at": fact.created_at,
        "updated_at": fact.updated_at,
        "timestamp": fact.valid_from,
        "expiration_date": last_day,
    }
    score = getattr(fact, "score", None)
    return document if score is None else document | {"score": score}


def history_documents(versions: Sequence[models.MemoryEntry]) -> list[dict[str, Any]]:
    """Return the history of a fact, oldest first, from its versions, newest first."""
    names = views.agent_names(
        version.agent_id for version in versions[:1] if version.agent_id is not None
    )
    documents: list[dict[str, Any]] = []
    for version in reversed(versions):
        before = documents[-1]["new_memory"] if documents else None
        documents.append(
            {
                "id": version.memory_id,
                "memory_id": version.fact_id,
                "event": "ADD" if before is None else "UPDATE",
                "old_memory": before,
                "new_memory": version.content,
                "metadata": _own_metadata(version),
                "user_id": version.user_id,
                "agent_id": names.get(version.agent_id) if version.agent_id else None,
                "created_at": version.created_at,
                "updated_at": version.updated_at,
            }
        )
    return documents


def _own_metadata(fact: models.MemoryEntry) -> dict[str, Any]:
    """Return the metadata without the values that are members of mem0's documents."""
    members = (*IN_METADATA, "categories")
    return {name: value for name, value in fact.metadata.items() if name not in members}
