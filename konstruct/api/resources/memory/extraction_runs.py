"""Extraction of facts by REST (progress, and runs with results), and imports of history.

A job previews or imports a file of another system.
"""

import base64
from typing import Any
from uuid import UUID

from django.core.validators import RegexValidator
from django.db.models import Q, QuerySet
from django.shortcuts import get_object_or_404
from rest_framework import decorators, mixins, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http import bodies, lists, schema, views
from konstruct.api.http.operations import actor_of
from konstruct.orchestrator import exceptions, models
from konstruct.orchestrator.extraction import runs
from konstruct.orchestrator.history_import import assistants
from konstruct.orchestrator.history_import.chats import ORDERS
from konstruct.orchestrator.history_import.importing import FORMATS, Options, request_import
from konstruct.orchestrator.models import HistoryImport
from tenants.audit.changes import row_state
from tenants.audit.models import Action

PREVIEW = ("orchestrator.add_extractionrun", "orchestrator.view_extractionrun")
STATES = {
    "queued": Q(due_at__isnull=False, failed_at__isnull=True),
    "failed": Q(failed_at__isnull=False),
    "processed": Q(due_at__isnull=True),
}


class ModelSerializer(bodies.StrictSerializer):
    """The language model of a preview."""

    model = bodies.StrictCharField(
        required=False,
        max_length=200,
        help_text="Name of the language model. Default: the agent's `extraction_model`.",
    )


class NewRunSerializer(ModelSerializer, bodies.ConversationName):
    """The conversation to preview the facts of."""


class ExtractionRunSerializer(bodies.RowSerializer):
    """A run, without its candidates."""

    url = views.UrlField("extraction-run-detail", help_text="The URL with all fields.")
    agent = views.AgentNameField(help_text="The agent's name.")
    result = serializers.DictField(help_text="Counts by outcome, and refused ones by reason.")

    class Meta:
        model = models.ExtractionRun
        fields = [
            *("id", "url", "agent", "agent_id", "user_id", "thread_id", "state", "message_ids"),
            *("replay_of", "requested_by", "model", "endpoint", "response_format"),
            *("prompt_digest", "prompt_tokens", "completion_tokens", "cost", "result", "error"),
            *("created_at", "ended_at"),
        ]


class ExtractionRunInFullSerializer(ExtractionRunSerializer):
    """A run with its candidates and the answer of the language model."""

    candidates = bodies.ObjectsField(help_text="Each candidate with its outcome and its fact.")

    class Meta(ExtractionRunSerializer.Meta):
        fields = [*ExtractionRunSerializer.Meta.fields, "candidates", "output"]


class ComparisonSerializer(serializers.Serializer):
    """The accepted candidates of two runs, by subject, slot and value."""

    both = bodies.ObjectsField(help_text="Candidates of both runs, as the first has them.")
    only_first = bodies.ObjectsField(help_text="Only of this run.")
    only_second = bodies.ObjectsField(help_text="Candidates of the other run alone.")
    changed = serializers.ListField(
        child=bodies.ObjectsField(),
        help_text="Pairs of candidates with the same subject and slot, and different values.",
    )


class ExtractionRunFilter(lists.ThreadFilter, lists.TimeRangeFilter):
    """Filters of the list of runs."""

    state = lists.ChoiceFilter("Only runs in this state.", models.RunState.choices)


class ComparisonQuery(bodies.StrictSerializer):
    """Query parameters of a comparison."""

    other = serializers.UUIDField(help_text="Id of the other run, such as a replay of this one.")


class ExtractionRunViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, views.ApiViewSet):
    """Extraction runs. Bound keys have no access: a run has the unchanged answer of a model."""

    queryset = models.ExtractionRun.objects.all()
    serializer_class = ExtractionRunSerializer
    detail_serializer_class = ExtractionRunInFullSerializer
    filterset_class = ExtractionRunFilter
    ordering_fields = ("created_at",)
    subject = "extraction run"
    lookup_url_kwarg = "run_id"

    def get_queryset(self) -> Any:
        """Return the runs, in lists without their large columns."""
        rows = super().get_queryset()
        return rows.defer("candidates", "output") if self.action == "list" else rows

    @views.operation(
        Action.CREATE,
        permission=PREVIEW,
        body=NewRunSerializer,
        own_transaction=True,
        id="preview_extraction",
        errors=(409, 422),
        headers=[schema.LOCATION],
    )
    def create(self, request: Request) -> Response:
        """Preview the facts of a conversation.

        Extracts the facts of the messages that the next run would process, and returns a run that
        shows the changes. No fact changes until the run is applied. The response arrives when the
        language model has answered.
        """
        messages = runs.new_messages(**self.caller.thread_in(self.fields))
        requested_by, model = self.caller.author.address, self.fields.get("model")
        return self.created(runs.preview(messages=messages, requested_by=requested_by, model=model))

    @decorators.action(detail=True, methods=["post"], url_path="replay")
    @views.operation(
        Action.CREATE,
        permission=PREVIEW,
        body=ModelSerializer,
        own_transaction=True,
        returns={201: ExtractionRunInFullSerializer},
        errors=(409, 422),
        headers=[schema.LOCATION],
    )
    def replay_extraction_run(self, request: Request, run_id: UUID) -> Response:
        """Preview the input of a run again.

        Creates a preview of the same messages, such as with another language model, to compare with
        the run.
        """
        requested_by, model = self.caller.author.address, self.fields.get("model")
        return self.created(runs.replay(run_id, requested_by=requested_by, model=model))

    @decorators.action(detail=True, methods=["post"], url_path="apply")
    @views.operation(Action.DECIDE, errors=(409, 422))
    def apply_extraction_run(self, request: Request, run_id: UUID) -> Response:
        """Apply a preview.

        Records the facts like a run of the worker: facts that need a review are proposed. A run
        that is not a preview is a 409 `wrong-state`.
        """
        return self.change(self.get_object(), lambda run: runs.apply(run.pk), decision="apply")

    @decorators.action(detail=True, methods=["post"], url_path="roll-back")
    @views.operation(Action.DECIDE, errors=(409,))
    def roll_back_extraction_run(self, request: Request, run_id: UUID) -> Response:
        """Roll a run back.

        Removes the facts and the evidence of the run, and restores what they superseded. A fact
        with evidence of another run stays, and so does one that a person or a program changed or
        confirmed. `result.rolled_back` has the counts. A run that was not applied is a 409
        `wrong-state`.
        """
        before = row_state(self.get_object())
        runs.roll_back(run_id, author=self.caller.author)
        return self.changed(runs.get_run(run_id), before, decision="roll_back")

    @decorators.action(detail=True, url_path="comparison")
    @views.operation(Action.VIEW, query=ComparisonQuery, returns=ComparisonSerializer)
    def compare_extraction_runs(self, request: Request, run_id: UUID) -> Response:
        """Compare a run with another one.

        Compares two runs, such as a run and its replay by another language model.
        """
        first = self.get_object()
        second = get_object_or_404(models.ExtractionRun, pk=self.query["other"])
        self.log(first, other=second.pk)
        return Response(ComparisonSerializer(runs.compare(first, second)).data)


class ExtractionSerializer(serializers.Serializer):
    """The progress of extraction in a conversation."""

    id = serializers.UUIDField()
    agent = views.AgentNameField(help_text="The agent's name.")
    agent_id = serializers.UUIDField()
    user_id = serializers.CharField()
    thread_id = serializers.CharField(help_text="The conversation.")
    state = serializers.ChoiceField(
        choices=list(STATES),
        help_text="queued: messages wait, or are waited for; failed: no further attempt is made;"
        " processed: no message waits.",
    )
    last_number = serializers.IntegerField(help_text="`number` of the last processed one, or 0.")
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


class ExtractionFilter(lists.ThreadFilter):
    """Filters of the list."""

    state = lists.ChoiceFilter("Only conversations in this state.", list(STATES), method="in_state")

    def in_state(self, rows: QuerySet[Any], name: str, value: str) -> QuerySet[Any]:
        """Filter by the state of the conversation's job."""
        return rows.filter(STATES[value])


class ExtractionViewSet(mixins.ListModelMixin, views.ApiViewSet):
    """Conversations with the progress of their extraction. Bound keys have no access."""

    queryset = models.ExtractionCursor.objects.with_jobs()
    serializer_class = ExtractionSerializer
    filterset_class = ExtractionFilter
    ordering = ("id",)
    subject = "extraction"
    tag = "extraction runs"

    @decorators.action(detail=True, methods=["post"], url_path="retry")
    @views.operation(Action.RETRY, errors=(409,))
    def retry_extraction(self, request: Request, extraction_id: UUID) -> Response:
        """Retry a failed extraction.

        Continues the extraction of the conversation with all attempts. A conversation that has not
        failed is a 409 `wrong-state`.
        """
        cursor = self.get_object()
        if not runs.EXTRACTIONS.retry(cursor.pk):
            raise exceptions.NothingToRetry(f"The extraction {cursor.pk} has not failed.")
        return Response(self.document(self.get_queryset().get(pk=cursor.pk)))


MAX_NAMES = 1000
BASE64 = RegexValidator(
    r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==|[A-Za-z0-9+/]=)|[A-Za-z0-9+/]{4})\Z",
    "This is not base64.",
)


class NewHistoryImportSerializer(bodies.StrictSerializer):
    """A file, how it is read, and who is who in it."""

    file = bodies.StrictCharField(validators=[BASE64], help_text="In base64; a large one as zip.")
    file_name = bodies.TextField(
        max_length=255,
        help_text="Its name, which must stay the same if a longer export is imported.",
    )
    format = serializers.ChoiceField(
        choices=[*FORMATS], required=False, help_text="Default: recognized from the content."
    )
    agent = bodies.ChannelIdField(required=False, help_text="Name or id. Only facts need none.")
    user_id = bodies.ChannelIdField(required=False, help_text="The user of what has no other.")
    thread_id = bodies.ChannelIdField(
        required=False, help_text="The conversation of what has none. Default: the file's name."
    )
    people = serializers.DictField(
        child=bodies.ChannelIdField(),
        required=False,
        help_text="Ids of users by names, or ids, of the file. Others are left out.",
    )
    agent_names = bodies.BoundedListField(
        child=bodies.TextField(),
        max_length=MAX_NAMES,
        required=False,
        help_text="Names, or ids, of the file that are the agent's.",
    )
    time_zone = bodies.TextField(
        required=False, help_text="Zone of times without one, such as Europe/Berlin."
    )
    date_order = serializers.ChoiceField(
        choices=[*ORDERS], required=False, help_text="Order of dates that can be read in two ways."
    )
    columns = serializers.DictField(
        child=bodies.TextField(),
        required=False,
        help_text=f"Names of columns of CSV, for {', '.join(assistants.COLUMNS)}.",
    )
    dry_run = bodies.StrictBooleanField(default=False, help_text="Store nothing, as a preview.")

    def validate_people(self, people: dict[str, str]) -> dict[str, str]:
        """Refuse names that no file has."""
        bodies.StrictCharField(allow_blank=True).run_validation("".join(people))
        return people

    def validate_file(self, file: str) -> bytes:
        """Return the bytes."""
        return base64.b64decode(file)


class HistoryImportSerializer(bodies.RowSerializer):
    """The state of an import, and its report."""

    url = views.UrlField("history-import-detail", help_text="Its address.")
    state = serializers.ChoiceField(choices=["waiting", "previewed", "imported", "failed"])
    dry_run = serializers.BooleanField(source="is_dry_run", help_text="Whether nothing is stored.")

    class Meta:
        model = HistoryImport
        fields = [
            *("id", "url", "state", "file_name", "dry_run", "report", "error"),
            *("created_at", "finished_at"),
        ]


class HistoryImportViewSet(mixins.RetrieveModelMixin, views.ApiViewSet):
    """Imports of files. They are deleted after a day. Bound keys have no access."""

    queryset = HistoryImport.objects.defer("content", "options")
    serializer_class = HistoryImportSerializer
    subject = "history import"

    @views.operation(
        Action.CREATE,
        body=NewHistoryImportSerializer,
        returns={202: HistoryImportSerializer},
        errors=(402, 409, 422),
        headers=[schema.IDEMPOTENCY_KEY, schema.LOCATION],
    )
    def create(self, request: Request) -> Response:
        """Import a file of another system, or preview it.

        A worker reads it: `Location` has the state, and then the report with the conversations, the
        authors, and what is left out, with places and reasons. Sending the file again adds what is
        missing. An event `import.done` has the id of the import.
        """
        fields = dict(self.fields)
        content, file_name = fields.pop("file"), fields.pop("file_name")
        is_dry_run = fields.pop("dry_run")
        if "agent" in fields:
            fields["agent"] = str(self.caller.agent(fields["agent"]).pk)

        def write() -> UUID:
            return request_import(
                content, file_name, Options(**fields), by=actor_of(request), is_dry_run=is_dry_run
            ).pk

        return self.create_once(write, status=202)
