"""The REST face of history import."""

from dataclasses import asdict
from uuid import UUID, uuid4

from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.fields import StrictSerializer
from konstruct.api.idempotency import IDEMPOTENCY_KEY, create_once
from konstruct.api.schema import problems
from konstruct.api.views import ApiView
from konstruct.orchestrator.history import LineResult, Outcome, import_history
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


@extend_schema_field(
    {
        "type": "array",
        "items": {},
        "minItems": 1,
        "maxItems": MOST_LINES,
        "description": "Objects with external_id, agent (name or id), user_id, thread_id, role "
        "(user or assistant), content, created_at (ISO 8601 with a time zone) and, if known, name: "
        "the speaker's display name.",
    }
)
class LinesField(serializers.ListField):
    """Messages, whatever they are: each is checked by itself, and answered for."""

    child = serializers.JSONField(allow_null=True)


class ImportSerializer(StrictSerializer):
    """A part of a history. Each message is checked by itself: see the answer's `results`."""

    messages = LinesField(min_length=1, max_length=MOST_LINES)


class LineResultSerializer(serializers.Serializer):
    """What became of one message."""

    index = serializers.IntegerField(help_text="Its place in the request, from 0.")
    status = serializers.ChoiceField(
        choices=[(outcome.value, outcome.value) for outcome in Outcome],
        help_text="created; exists: the external_id was imported before, and stays as it was; "
        "invalid: see error.",
    )
    external_id = serializers.CharField(allow_null=True)
    message_id = serializers.UUIDField(allow_null=True, help_text="Null if it is invalid.")
    error = serializers.CharField(help_text="What is wrong with it; empty if nothing is.")


class ImportResultSerializer(serializers.Serializer):
    """What became of every message, in the order of the request."""

    created = serializers.IntegerField()
    exists = serializers.IntegerField()
    invalid = serializers.IntegerField()
    results = LineResultSerializer(many=True)


class ImportView(ApiView):
    """History from elsewhere."""

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
        responses={200: ImportResultSerializer, **problems(422)},
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
            for outcome in Outcome
        }
        document = {**counts, "results": [asdict(result) for result in results]}
        return Response(ImportResultSerializer(document).data)
