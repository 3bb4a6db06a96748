"""Checkpoints of LangGraph graphs that run elsewhere: saved and read by REST, never decoded.

They are sessions, which `sessions/` lists, shows and clears.
"""

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from django.core.validators import RegexValidator
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http import bodies
from konstruct.api.http.lists import PAGE_SIZE, KeysetPagination, PageQuerySerializer, Position
from konstruct.api.http.problems import Problem, Refusal
from konstruct.api.http.routes import route
from konstruct.api.http.views import ApiView, no_content, operation
from konstruct.strict_json import NotStrictJSON, read_json
from memory.context.checkpoints.encoded_values import EncodedValue, check_encoded_value
from tenants.audit.models import Action
from tenants.context import required_tenant_id

if TYPE_CHECKING:
    from memory.context.checkpoints.pages import SavedCheckpoint

# A page ends before its checkpoints have more bytes than this, but not before the first of them.
PAGE_BYTES = 4_000_000
# The limit of an answer, which is held in memory, in base64, until it is sent.
MAX_BYTES = 24_000_000


class NewestCheckpointsFirst(KeysetPagination):
    """Checkpoints by their ids, which grow with time; those of copied threads have the same.

    Args:
        has_limit: whether the request has `limit`; it gets that many rows or an error.
    """

    orderings = {"-checkpoint_id": ("-checkpoint_id", "-thread_id", "-checkpoint_ns")}

    def __init__(self, *, has_limit: bool) -> None:
        self.has_limit = has_limit

    def rows_after(
        self,
        queryset: "Callable[..., list[SavedCheckpoint]]",
        position: Position | None,
        *,
        backwards: bool,
    ) -> "list[SavedCheckpoint]":
        """Return one checkpoint more than a page holds; the page holds as many as fit."""
        rows = queryset(after=position, backwards=backwards, limit=self.limit + 1)
        sizes = [*accumulate(row.bytes for row in rows[: self.limit])]
        if sizes and sizes[0] > MAX_BYTES:
            raise _size_refusal(f"checkpoint {rows[0].checkpoint_id} has {sizes[0]:,}")
        if not self.has_limit:
            self.limit = max(1, sum(size <= PAGE_BYTES for size in sizes))
        elif sizes and sizes[-1] > MAX_BYTES:
            raise _size_refusal(
                f"these {len(sizes)} checkpoints have {sizes[-1]:,}:"
                " leave `limit` out, and follow `next`"
            )
        return rows


def _size_refusal(reason: str) -> Refusal:
    return Refusal(
        Problem.of_status(
            422, f"An answer has {MAX_BYTES:,} bytes of checkpoints at most, {reason}."
        )
    )


MAX_VALUES = 1_000
# Postgres makes bytes of these names, where a backslash would begin an escape.
PLAIN_NAME = RegexValidator(r"^[^\x00\\]*\Z", "Give a name without NUL characters and backslashes.")


class NameField(bodies.StrictCharField):
    """A name that LangGraph gives, such as a channel's."""

    def __init__(self, **options: Any) -> None:
        minimum = {} if options.get("allow_blank") else {"min_length": 1}
        super().__init__(**{"max_length": 512, "validators": [PLAIN_NAME], **minimum, **options})


BASE64 = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"


@extend_schema_field({"type": "string", "contentEncoding": "base64", "pattern": BASE64})
class BytesField(serializers.CharField):
    """Bytes in base64."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_blank": True, "trim_whitespace": False, **options})

    def to_internal_value(self, data: Any) -> bytes:  # type: ignore[override]  # of its text
        """Decode."""
        if not isinstance(data, str):
            self.fail("invalid")
        try:
            return base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError) as error:
            raise ValidationError(f"Give base64: {error}.") from error


class StorableObjectField(serializers.DictField):
    """A JSON object that Postgres can keep: no NUL characters, no half of a surrogate pair."""

    child = serializers.JSONField(allow_null=True)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Refuse a value that is no object, or cannot be stored."""
        if not isinstance(data, Mapping):
            self.fail("not_a_dict", input_type=type(data).__name__)
        try:
            text = json.dumps(data, ensure_ascii=False)
            text.encode()
        except UnicodeEncodeError as error:
            raise ValidationError("Give Unicode text, without halves of pairs.") from error
        if "\\u0000" in text.replace("\\\\", ""):
            raise ValidationError("Give text without NUL characters.")
        return dict(data)


NAME = {"type": "string", "minLength": 1, "maxLength": 512, "pattern": r"^[^\x00\\]*$"}
VERSIONS = {
    "type": "object",
    "propertyNames": NAME,
    "additionalProperties": {"anyOf": [NAME, {"type": "integer"}]},
}


@extend_schema_field(VERSIONS)
class VersionsField(StorableObjectField):
    """Versions of channels: texts, or whole numbers."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Refuse other versions, and names that cannot be."""
        versions = super().to_internal_value(data)
        for channel, version in versions.items():
            NameField().run_validation(channel)
            if type(version) is not int:
                NameField().run_validation(version)
        return versions


@extend_schema_field({"type": "object", "propertyNames": NAME, "additionalProperties": VERSIONS})
class SeenField(StorableObjectField):
    """Versions of channels that each node has seen."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Refuse invalid versions and names."""
        seen = super().to_internal_value(data)
        names = map(NameField().run_validation, seen)
        return dict(zip(names, map(VersionsField().run_validation, seen.values()), strict=True))


class NewChannelValueSerializer(bodies.StrictSerializer):
    """The value of a channel, encoded by LangGraph's serializer."""

    channel = NameField()
    type = NameField(help_text="Its encoding: msgpack, json, bytes, null …")
    value = BytesField(help_text="In base64.")


class ChannelValueSerializer(serializers.Serializer):
    """The value of a channel, as encoded by LangGraph's serializer."""

    channel = serializers.CharField()
    type = serializers.CharField(help_text="Its encoding: msgpack, json, bytes, null …")
    value = serializers.CharField(help_text="In base64.")


class PendingWriteSerializer(ChannelValueSerializer):
    """The writes of a task since a checkpoint."""

    task_id = serializers.CharField()


class CheckpointStateSerializer(bodies.StrictSerializer):
    """A checkpoint without its values."""

    v = bodies.StrictIntegerField(min_value=1, max_value=1000, help_text="LangGraph's format.")
    id = NameField(help_text="Ids grow with time.")
    ts = bodies.AwareDateTimeField()
    channel_versions = VersionsField()
    versions_seen = SeenField()
    updated_channels = bodies.BoundedListField(
        child=NameField(), max_length=MAX_VALUES, required=False, allow_null=True
    )


class PlaceSerializer(bodies.StrictSerializer):
    """Which checkpoint, of which graph."""

    thread_id = bodies.ChannelIdField(help_text="The graph's thread.")
    checkpoint_ns = NameField(
        required=False,
        default="",
        allow_blank=True,
        help_text="The namespace of a subgraph; empty: the main graph.",
    )


class NewCheckpointSerializer(PlaceSerializer):
    """A checkpoint to save."""

    parent_checkpoint_id = NameField(required=False, allow_null=True)
    checkpoint = CheckpointStateSerializer()
    values = bodies.BoundedListField(
        child=NewChannelValueSerializer(),
        max_length=MAX_VALUES,
        help_text="The values of the channels that have changed since the parent.",
    )
    metadata = StorableObjectField(help_text="Metadata that lists can filter by.")


class NewWritesSerializer(PlaceSerializer):
    """The writes of a task, to store with a checkpoint."""

    checkpoint_id = NameField()
    task_id = NameField()
    task_path = bodies.StrictCharField(
        required=False, default="", allow_blank=True, max_length=2000
    )
    writes = bodies.BoundedListField(child=NewChannelValueSerializer(), max_length=MAX_VALUES)


@extend_schema_field({"type": "string", "description": "A JSON object as text."})
class FilterField(bodies.StrictCharField):
    """Values of the metadata: a JSON object as text."""

    def to_internal_value(self, data: Any) -> Any:
        """Read the object."""
        try:
            value = read_json(super().to_internal_value(data))
        except NotStrictJSON as error:
            raise ValidationError(str(error)) from error
        return StorableObjectField().run_validation(value)


class CheckpointListSerializer(PageQuerySerializer):
    """Query parameters of the list."""

    thread_id = bodies.ChannelIdField(required=False, help_text="Only checkpoints of this thread.")
    checkpoint_ns = NameField(
        required=False, allow_blank=True, help_text="Only checkpoints of this graph."
    )
    checkpoint_id = NameField(required=False, help_text="Only the checkpoint with this id.")
    before = NameField(required=False, help_text="Only checkpoints with a smaller id.")
    filters = FilterField(
        required=False, help_text="Only checkpoints with these metadata, as JSON text."
    )
    limit = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=PAGE_SIZE,
        help_text=f"Exact number of checkpoints in a page. Default: up to {PAGE_BYTES // 10**6} "
        f"MB, and at"
        f" most {PAGE_SIZE}.",
    )


class CheckpointSerializer(serializers.Serializer):
    """A checkpoint with its values and the writes after it."""

    thread_id = serializers.CharField()
    checkpoint_ns = serializers.CharField()
    checkpoint_id = serializers.CharField()
    parent_checkpoint_id = serializers.CharField(allow_null=True)
    checkpoint = serializers.DictField(child=serializers.JSONField(allow_null=True))
    values = ChannelValueSerializer(many=True)
    metadata = serializers.DictField(child=serializers.JSONField(allow_null=True))
    pending_writes = PendingWriteSerializer(many=True)


@route("checkpoints/", name="checkpoints")
class CheckpointsView(ApiView):
    """Checkpoints of the tenant's sessions, which no bound key sees."""

    tag = "sessions"

    @operation(
        Action.VIEW,
        "session",
        permission="memory.view_message",
        query=CheckpointListSerializer,
        id="list_checkpoints",
        description="Returns checkpoints with their values, as encoded by LangGraph's serializer. "
        "The size of a page is limited: follow `next`. With `limit` a page has exactly this number"
        f" of checkpoints, or is refused if they have more than {MAX_BYTES // 10**6} MB.",
        page=CheckpointSerializer,
        errors=(422,),
    )
    def get(self, request: Request) -> HttpResponse:
        """List checkpoints, newest first."""
        query = self.query
        names = ("thread_id", "checkpoint_ns", "checkpoint_id")
        position = {name: query[name] for name in names if name in query}
        if position and "thread_id" not in position:
            raise Refusal(Problem.of_status(422, "Name the thread_id of this place, too."))
        before = {"configurable": {"checkpoint_id": query["before"]}} if "before" in query else None
        saver = _saver()
        config = {"configurable": position} if position else None
        saved = partial(saver.list_saved, config, filter=query.get("filters"), before=before)
        pages = NewestCheckpointsFirst(has_limit="limit" in query)
        page = pages.paginate_queryset(saved, request, view=self)
        # Each as bytes before the next is read: values are large.
        documents = [_json(CheckpointSerializer(_document(item)).data) for item in saver.read(page)]
        frame = _json(pages.get_paginated_response([]).data)
        content = [frame.removesuffix(b"]}"), b",".join(documents), b"]}"]
        return HttpResponse(content, content_type="application/json")

    @operation(
        Action.EDIT,
        "session",
        permission="memory.add_message",
        body=NewCheckpointSerializer,
        own_transaction=True,
        id="save_checkpoint",
        returns=no_content("Saved."),
        errors=(422,),
    )
    def post(self, request: Request) -> Response:
        """Save a checkpoint.

        Takes the data that a LangGraph checkpointer saves. Values are encoded by LangGraph's
        serializer, and refused if they contain an object of a class that is not allowed. A
        checkpoint with the same id replaces the stored one.
        """
        fields = self.fields
        state = fields["checkpoint"]
        values = {item["channel"]: _encoded(item) for item in fields["values"]}
        unknown = values.keys() - state["channel_versions"].keys()
        if unknown:
            detail = f"These have no version in channel_versions: {', '.join(unknown)}."
            raise Refusal(Problem.of_status(422, detail))
        versions = {channel: str(state["channel_versions"][channel]) for channel in values}
        position = {name: fields[name] for name in ("thread_id", "checkpoint_ns")}
        position["checkpoint_id"] = fields.get("parent_checkpoint_id")
        checkpoint = {**state, "ts": state["ts"].isoformat(), "channel_values": values}
        self.write_log_entry()  # LangGraph uses another connection, with its own transaction
        _saver().put({"configurable": position}, checkpoint, fields["metadata"], versions)
        return Response(status=204)


@route("checkpoints/writes/", name="checkpoint-writes")
class CheckpointWritesView(ApiView):
    """Writes of tasks since a checkpoint."""

    tag = "sessions"

    @operation(
        Action.EDIT,
        "session",
        permission="memory.add_message",
        body=NewWritesSerializer,
        own_transaction=True,
        id="save_checkpoint_writes",
        returns=no_content("Saved."),
        errors=(422,),
    )
    def post(self, request: Request) -> Response:
        """Save the writes of a task.

        Takes the data that a LangGraph checkpointer saves for an incomplete step.
        """
        fields = self.fields
        names = ("thread_id", "checkpoint_ns", "checkpoint_id")
        writes = [(item["channel"], _encoded(item)) for item in fields["writes"]]
        self.write_log_entry()
        _saver().put_writes(
            {"configurable": {name: fields[name] for name in names}},
            writes,
            fields["task_id"],
            fields["task_path"],
        )
        return Response(status=204)


def _saver() -> Any:
    # Imported here: LangGraph takes half a second and 40 MB of every process that loads it.
    from memory.context.checkpoints.encoded_values import EncodedSerializer
    from memory.context.checkpoints.pages import PagedSaver

    return PagedSaver(required_tenant_id(), serde=EncodedSerializer())


def _json(document: Any) -> bytes:
    return bytes(JSONRenderer().render(document))


def _encoded(value: Mapping[str, Any]) -> EncodedValue:
    return check_encoded_value(value["type"], value["value"])


def _document(saved: Any) -> dict[str, Any]:
    """Return a checkpoint as CheckpointSerializer describes it."""
    position, parent = saved.config["configurable"], saved.parent_config
    state = dict(saved.checkpoint)
    values = state.pop("channel_values")
    return {
        **{name: position[name] for name in ("thread_id", "checkpoint_ns", "checkpoint_id")},
        "parent_checkpoint_id": parent["configurable"]["checkpoint_id"] if parent else None,
        "checkpoint": state,
        "values": [{"channel": name, **_encoded_value(value)} for name, value in values.items()],
        "metadata": saved.metadata,
        "pending_writes": [
            {"task_id": task_id, "channel": channel, **_encoded_value(value)}
            for task_id, channel, value in saved.pending_writes or []
        ],
    }


def _encoded_value(value: Any) -> dict[str, Any]:
    """Return type and base64 of a value that was stored encoded or, by our own saver, as JSON."""
    if isinstance(value, EncodedValue):
        type_, data = value.type, value.data
    elif value is None:
        type_, data = "null", b""
    else:
        type_, data = "json", json.dumps(value).encode()
    return {"type": type_, "value": base64.b64encode(data).decode()}
