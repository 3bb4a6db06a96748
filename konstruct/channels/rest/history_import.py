"""The REST face of history import."""

from dataclasses import asdict
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http.fields import BoundedListField, StrictSerializer
from konstruct.api.http.idempotency import IDEMPOTENCY_KEY, create_once
from konstruct.api.http.schema import problems
from konstruct.api.http.views import ApiView
from konstruct.orchestrator.history_import import (
    OPTIONAL,
    REQUIRED,
    ImportStatus,
    LineResult,
    import_history,
)
from memory.arguments import ROLES
from memory.conversations.importing import MAX_EXTERNAL_ID
from tenants.context import required_tenant_id

MOST_LINES = 1000

EXAMPLE = OpenApiExample(
    "two turns",
    request_only=True,
    value={
        "messages": [
            {
                "external_id": "crm-1017",
                "agent": "ada",
                "user_id": "U024BE7LH",
                "thread_id": "2026-03-14",
                "role": "user",
                "name": "Maria",
                "content": "My sister visits in May.",
                "created_at": "2026-03-14T09:30:00Z",
            },
            {
                "external_id": "crm-1018",
                "agent": "ada",
                "user_id": "U024BE7LH",
                "thread_id": "2026-03-14",
                "role": "assistant",
                "content": "How nice, how long will she stay?",
                "created_at": "2026-03-14T09:30:20Z",
            },
        ]
    },
)


MESSAGE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "title": "A message of a history",
    "required": list(REQUIRED),
    "additionalProperties": False,
    "properties": {
        "external_id": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_EXTERNAL_ID,
            "description": "Its id where it comes from; unique for one agent and user. What was "
            "imported before under this id stays as it is.",
        },
        "agent": {"type": "string", "description": "Name or id of the agent."},
        "user_id": {"type": "string", "minLength": 1, "description": "Who spoke with the agent."},
        "thread_id": {"type": "string", "minLength": 1, "description": "The conversation."},
        "role": {"type": "string", "enum": list(ROLES)},
        "content": {
            "type": "string",
            "minLength": 1,
            "maxLength": settings.MAX_MESSAGE_CHARACTERS,
            "description": "What was said; not blank.",
        },
        "created_at": {
            "type": "string",
            "format": "date-time",
            "description": "When it was said: ISO 8601 with a time zone.",
        },
        "name": {"type": "string", "description": "The speaker's display name, if known."},
    },
}


@extend_schema_field(
    {
        "type": "array",
        "items": {
            "anyOf": [MESSAGE_SCHEMA, {"description": "Anything else is answered as invalid."}]
        },
        "minItems": 1,
        "maxItems": MOST_LINES,
        "description": f"Each has {', '.join(REQUIRED)} and, if known, {', '.join(OPTIONAL)}.",
    }
)
class LinesField(BoundedListField):
    """Messages, whatever they are: each is checked by itself, and answered for."""

    child = serializers.JSONField(allow_null=True)


class ImportSerializer(StrictSerializer):
    """A part of a history. Each message is checked by itself: see the answer's `results`."""

    messages = LinesField(min_length=1, max_length=MOST_LINES)


class LineErrorSerializer(serializers.Serializer):
    """What is wrong with one field of a message."""

    field = serializers.CharField(help_text="Empty: the message as a whole.")
    detail = serializers.CharField()


class LineResultSerializer(serializers.Serializer):
    """What became of one message."""

    index = serializers.IntegerField(help_text="Its place in the request, from 0.")
    status = serializers.ChoiceField(
        choices=[(outcome.value, outcome.value) for outcome in ImportStatus],
        help_text="created; exists: the external_id was imported before, and stays as it was; "
        "invalid: see error.",
    )
    external_id = serializers.CharField(allow_null=True)
    message_id = serializers.UUIDField(allow_null=True, help_text="Null if it is invalid.")
    error = serializers.CharField(help_text="What is wrong with it; empty if nothing is.")
    errors = LineErrorSerializer(  # type: ignore[assignment]  # a field, not the property
        many=True, help_text="The same field by field."
    )


class ImportResultSerializer(serializers.Serializer):
    """What became of every message, in the order of the request."""

    created = serializers.IntegerField()
    exists = serializers.IntegerField()
    invalid = serializers.IntegerField()
    results = LineResultSerializer(many=True)


class ImportView(ApiView):
    """History from elsewhere."""

    permissions = {"POST": ("memory.add_message",)}

    @extend_schema(
        operation_id="import_messages",
        summary="Import history",
        description=f"Up to {MOST_LINES} messages in one request, idempotent by `external_id` for "
        "each agent and user. A message that is invalid keeps no other from being imported. "
        "Nothing is answered; embeddings follow in bulk, and `GET /api/v1/usage/` tells how many "
        "are pending.",
        tags=["messages"],
        request=ImportSerializer,
        parameters=[IDEMPOTENCY_KEY],
        examples=[EXAMPLE],
        responses={200: ImportResultSerializer, **problems(409, 422)},
    )
    def post(self, request: Request) -> Response:
        """Import what is valid; answer for every message."""
        body = ImportSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        lines = body.validated_data["messages"]
        results: list[LineResult] = []

        def write() -> UUID:
            results.extend(import_history(lines, tenant_id=required_tenant_id()))
            return uuid4()

        create_once(request, write)
        if not results:  # sent again: the external ids tell what stands
            results = import_history(lines, tenant_id=required_tenant_id())
        counts = {
            outcome.value: sum(result.status is outcome for result in results)
            for outcome in ImportStatus
        }
        self.note(counts=counts)
        document = {**counts, "results": [asdict(result) for result in results]}
        return Response(ImportResultSerializer(document).data)
