"""How much a tenant remembers, and what is still to be done."""

from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.caller import Caller
from konstruct.api.fields import NoParametersSerializer, checked_query
from konstruct.api.views import ApiView
from konstruct.orchestrator.models import PendingReply
from memory.models import ConversationEmbedding, Message, PendingEmbedding, Scope

M = TypeVar("M", bound=Model)


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


class UsageView(ApiView):
    """The tenant in numbers, or what a bound key sees of it."""

    keeps_to_binding = True

    @extend_schema(
        operation_id="get_usage",
        summary="Count what is remembered and what is pending",
        tags=["usage"],
        responses={200: UsageSerializer},
    )
    def get(self, request: Request) -> Response:
        """Count."""
        checked_query(request, NoParametersSerializer)
        of_caller = self.caller.rows
        pending_embeddings = _of_messages(self.caller, PendingEmbedding.objects.all())
        pending_replies = _of_messages(self.caller, PendingReply.objects.all())
        counts: dict[str, Any] = {
            "agents": self.caller.agents().count(),
            "users": of_caller(Scope.objects.all()).count(),
            "messages": of_caller(Message.objects.all()).count(),
            "embeddings": of_caller(ConversationEmbedding.objects.all()).count(),
            "pending_embeddings": pending_embeddings.count(),
            "failed_embeddings": pending_embeddings.exclude(last_error="").count(),
            "pending_replies": pending_replies.filter(failed_at__isnull=True).count(),
            "failed_replies": pending_replies.filter(failed_at__isnull=False).count(),
        }
        return Response(UsageSerializer(counts).data)


def _of_messages(caller: Caller, rows: QuerySet[M]) -> QuerySet[M]:
    """Only the rows whose message the caller may see."""
    return caller.rows(rows, agent="message__agent_id", user="message__user_id")
