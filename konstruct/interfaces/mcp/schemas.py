"""JSON Schemas of what tools take and give, from the serializers that check and present it."""

from collections.abc import Collection
from typing import Any

from rest_framework import serializers
from rest_framework.fields import empty

from konstruct.api.http.bodies.fields import StrictSerializer


def input_schema(
    serializer: StrictSerializer, *, without: Collection[str], required: Collection[str]
) -> dict[str, Any]:
    """Return the schema of a tool's arguments.

    Args:
        without: fields that this caller need not name.
        required: fields that this caller must name, beside those of the serializer.
    """
    fields = {name: field for name, field in serializer.fields.items() if name not in without}
    return {
        "type": "object",
        "properties": {name: _schema(field) for name, field in fields.items()},
        "required": [n for n, field in fields.items() if field.required or n in required],
        "additionalProperties": False,
    }


def output_schema(serializer: serializers.Serializer) -> dict[str, Any]:
    """Return the schema of a tool's structured result, in which every field is there."""
    return {
        "type": "object",
        "properties": {name: _schema(field) for name, field in serializer.fields.items()},
        "required": [name for name, field in serializer.fields.items() if field.required],
    }


def _schema(field: serializers.Field) -> dict[str, Any]:
    schema = _shape(field)
    if field.help_text:
        schema["description"] = str(field.help_text)
    if field.allow_null:
        schema["type"] = [schema["type"], "null"]
    if field.default is not empty:
        schema["default"] = field.default
    limits = {
        "maxLength": getattr(field, "max_length", None),
        "minimum": getattr(field, "min_value", None),
        "maximum": getattr(field, "max_value", None),
    }
    return schema | {name: limit for name, limit in limits.items() if limit is not None}


def _shape(field: serializers.Field) -> dict[str, Any]:
    if isinstance(field, serializers.ListSerializer) and isinstance(
        field.child, serializers.Serializer
    ):
        return {"type": "array", "items": output_schema(field.child)}
    if isinstance(field, serializers.ChoiceField):
        return {"type": "string", "enum": list(field.choices)}
    for kind, name in (
        (serializers.DictField, "object"),
        (serializers.BooleanField, "boolean"),
        (serializers.IntegerField, "integer"),
        (serializers.FloatField, "number"),
    ):
        if isinstance(field, kind):
            return {"type": name}
    if isinstance(field, serializers.UUIDField):
        return {"type": "string", "format": "uuid"}
    if isinstance(field, serializers.DateTimeField):
        return {"type": "string", "format": "date-time"}
    return {"type": "string"}
