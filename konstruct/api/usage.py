"""How much a tenant remembers, and what is still to be done."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.fields import StrictSerializer, checked_query
from konstruct.api.schema import problems
from konstruct.api.throttling import RateLimited
from konstruct.orchestrator.models import Agent, PendingReply
from memory.models import ConversationEmbedding, Message, PendingEmbedding, Scope


class NoParametersSerializer(StrictSerializer):
    """An endpoint without query parameters."""


class UsageSerializer(serializers.Serializer):
    """Counts of this tenant."""

    agents = serializers.IntegerField()
    users = serializers.IntegerField(help_text="Pairs of an agent and a user with memories.")
    messages = serializers.IntegerField(help_text="Turns of the transcript.")
    embeddings = serializers.IntegerField(help_text="Vectors; a message has one per piece.")
    pending_embeddings = serializers.IntegerField(help_text="Messages not yet searchable.")
    failed_embeddings = serializers.IntegerField(
        help_text="Of these, how many failed before and are tried again."
    )
    pending_replies = serializers.IntegerField(help_text="Messages not yet answered.")
    failed_replies = serializers.IntegerField(help_text="Messages whose reply was given up.")


class UsageView(RateLimited):
    """The tenant in numbers."""

    @extend_schema(
        operation_id="get_usage",
        summary="Count what is remembered and what is pending",
        tags=["usage"],
        responses={200: UsageSerializer, **problems(400, 401, 403, 429, 503)},
    )
    def get(self, request: Request) -> Response:
        """Count."""
        checked_query(request, NoParametersSerializer)
        counts: dict[str, Any] = {
            "agents": Agent.objects.count(),
            "users": Scope.objects.count(),
            "messages": Message.objects.count(),
            "embeddings": ConversationEmbedding.objects.count(),
            "pending_embeddings": PendingEmbedding.objects.count(),
            "failed_embeddings": PendingEmbedding.objects.failed().count(),
            "pending_replies": PendingReply.objects.waiting().count(),
            "failed_replies": PendingReply.objects.failed().count(),
        }
        return Response(UsageSerializer(counts).data)
