"""Extractions by REST: up to which message each conversation is processed, and failed jobs."""

from typing import Any
from uuid import UUID

from django.db.models import Q
from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http.bodies import ChannelIdField
from konstruct.api.http.lists import (
    AgentUserQuery,
    KeysetPagination,
    PageQuerySerializer,
    apply_filters,
)
from konstruct.api.http.routes import route
from konstruct.api.http.views import AgentNameField, ApiView, operation
from konstruct.orchestrator.exceptions import NothingToRetry
from konstruct.orchestrator.extraction.queue import EXTRACTIONS
from konstruct.orchestrator.models import ExtractionCursor
from tenants.audit.models import Action

STATES = {
    "queued": Q(due_at__isnull=False, failed_at__isnull=True),
    "failed": Q(failed_at__isnull=False),
    "processed": Q(due_at__isnull=True),
}


class ById(KeysetPagination):
    """Rows by their id."""

    orderings = {"id": ("id",)}


class ExtractionSerializer(serializers.Serializer):
    """The progress of extraction in a conversation."""

    id = serializers.UUIDField()
    agent = AgentNameField(help_text="The agent's name.")
    agent_id = serializers.UUIDField()
    user_id = serializers.CharField()
    thread_id = serializers.CharField(help_text="The conversation.")
    state = serializers.ChoiceField(
        choices=list(STATES),
        help_text="queued: messages wait, or are waited for; failed: no further attempt is made;"
        " processed: no message waits.",
    )
    last_number = serializers.IntegerField(
        help_text="`number` of the last message that was processed. 0: none yet."
    )
    processed_at = serializers.DateTimeField(allow_null=True, help_text="When the last run ended.")
    attempts = serializers.IntegerField(help_text="Attempts since the last success.")
    last_error = serializers.CharField(
        allow_blank=True, help_text="Why the last attempt failed, or why the run waits."
    )
    due_at = serializers.DateTimeField(
        allow_null=True, help_text="When the next attempt is due. null: nothing waits."
    )

    def to_representation(self, cursor: Any) -> Any:
        """Return the cursor with the state of its job, which a processed one does not have."""
        cursor.state = "failed" if cursor.failed_at else "queued" if cursor.due_at else "processed"
        cursor.attempts, cursor.last_error = cursor.attempts or 0, cursor.last_error or ""
        return super().to_representation(cursor)


class ExtractionQuery(AgentUserQuery, PageQuerySerializer):
    """Query parameters of the list."""

    thread_id = ChannelIdField(required=False, help_text="Only this conversation.")
    state = serializers.ChoiceField(
        choices=list(STATES), required=False, help_text="Only conversations in this state."
    )


@route("extractions/", name="extractions")
class ExtractionsView(ApiView):
    """Conversations from which facts are extracted. Bound keys have no access."""

    tag = "extraction runs"

    @operation(
        Action.LIST,
        "extractions",
        permission="orchestrator.view_extractioncursor",
        query=ExtractionQuery,
        id="list_extractions",
        page=ExtractionSerializer,
    )
    def get(self, request: Request) -> Response:
        """List conversations with the progress of their extraction."""
        cursors = ExtractionCursor.objects.with_jobs()
        rows = apply_filters(cursors, self.query, self.caller, without=("state",))
        if state := self.query.get("state"):
            rows = rows.filter(STATES[state])
        return self.page(rows, ById(), ExtractionSerializer)


@route("extractions/<uuid:extraction_id>/retry/", name="retry-extraction")
class ExtractionRetryView(ApiView):
    """The retry of an extraction."""

    tag = "extraction runs"

    @operation(
        Action.RETRY,
        "extraction",
        permission="orchestrator.change_extractioncursor",
        id="retry_extraction",
        returns=ExtractionSerializer,
        errors=(409,),
    )
    def post(self, request: Request, extraction_id: UUID) -> Response:
        """Retry a failed extraction.

        Continues the extraction of the conversation with all attempts. A conversation that has not
        failed is a 409 `wrong-state`.
        """
        cursor = get_object_or_404(ExtractionCursor, pk=extraction_id)
        if not EXTRACTIONS.retry(cursor.pk):
            raise NothingToRetry(f"The extraction {cursor.pk} has not failed.")
        self.log(cursor)
        row = ExtractionCursor.objects.with_jobs().get(pk=cursor.pk)
        return Response(self.document(row, ExtractionSerializer))
