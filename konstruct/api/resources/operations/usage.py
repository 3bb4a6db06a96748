"""Counts of a tenant's rows, stored and pending."""

from typing import Any, TypeVar

from django.db.models import Model, OuterRef, QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http.views import ApiView, operation
from konstruct.orchestrator.models import PendingReply
from memory.browse.statistics import amount_of
from memory.models import ConversationEmbedding, Message, PendingEmbedding, Scope
from tenants.audit.models import Action
from tenants.context import reading_replica
from tenants.models import has_failed

M = TypeVar("M", bound=Model)

# Counting this far takes a few hundredths of a second.
COUNTED_UP_TO = 100_000
# Of what grows without end, Postgres has an estimate for the whole tenant.
ESTIMATED: dict[str, type[Model]] = {
    "users": Scope,
    "messages": Message,
    "embeddings": ConversationEmbedding,
}


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
    failed_replies = serializers.IntegerField(help_text="Messages whose reply has failed.")
    not_exact = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text=f"The counts above {COUNTED_UP_TO:,}, if there are any: they are estimates, or "
        "for a bound key the least that there are.",
    )


class UsageView(ApiView):
    """The numbers of rows of the tenant, or of those that a bound key sees."""

    tag = "usage"
    keeps_to_binding = True

    @operation(
        Action.VIEW,
        "usage",
        permission="memory.view_message",
        id="get_usage",
        returns=UsageSerializer,
    )
    def get(self, request: Request) -> Response:
        """Count stored and pending rows."""
        with reading_replica():
            return Response(self._counts())

    def _counts(self) -> dict[str, Any]:
        of_caller = self.caller.rows
        of_message = {"agent": "message__agent_id", "user": "message__user_id"}
        pending_embeddings = of_caller(PendingEmbedding.objects.all(), **of_message)
        pending_replies = of_caller(PendingReply.objects.all(), **of_message)
        counted: dict[str, QuerySet[Any]] = {
            "agents": self.caller.agents(),
            "users": of_caller(Scope.objects.all()),
            "messages": of_caller(Message.objects.all()),
            "embeddings": of_caller(ConversationEmbedding.objects.all()),
            "pending_embeddings": pending_embeddings,
            "failed_embeddings": pending_embeddings.filter(
                has_failed("embedding", OuterRef("message_id"))
            ),
            "pending_replies": pending_replies.filter(failed_at__isnull=True),
            "failed_replies": pending_replies.filter(failed_at__isnull=False),
        }
        counts: dict[str, Any] = {name: _counted(rows) for name, rows in counted.items()}
        more = [name for name, count in counts.items() if count > COUNTED_UP_TO]
        for name in more:
            counts[name] = COUNTED_UP_TO
        if not self.caller.is_bound:
            for name in {*more} & ESTIMATED.keys():
                counts[name] = max(amount_of(ESTIMATED[name]).rows, COUNTED_UP_TO)
        not_exact = {"not_exact": more} if more else {}
        counted_so_far: dict[str, Any] = UsageSerializer({**counts, **not_exact}).data
        return counted_so_far


def _counted(rows: QuerySet[Any]) -> int:
    """Count rows up to `COUNTED_UP_TO` + 1, which means any larger number."""
    return rows.order_by().values("pk")[: COUNTED_UP_TO + 1].count()
