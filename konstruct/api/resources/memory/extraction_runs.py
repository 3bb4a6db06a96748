"""Extraction runs by REST: preview, replay with another model, compare, apply, roll back."""

from typing import Any
from uuid import UUID

from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http import lists
from konstruct.api.http.bodies import ChannelIdField, StrictCharField, StrictSerializer
from konstruct.api.http.routes import route
from konstruct.api.http.schema import response_header
from konstruct.api.http.views import AgentNameField, ApiView, UrlField, operation
from konstruct.api.models import KeyScope
from konstruct.orchestrator.extraction import runs
from konstruct.orchestrator.models import ExtractionRun, RunState
from tenants.audit.changes import row_state
from tenants.audit.models import Action

VIEW = "orchestrator.view_extractionrun"
PREVIEW = "orchestrator.add_extractionrun"
CHANGE = "orchestrator.change_extractionrun"
LOCATION = response_header("Location", "The URL of the run.", 201)


def _help(name: str) -> str:
    return str(ExtractionRun._meta.get_field(name).help_text)  # type: ignore[union-attr]  # no relation


class ModelSerializer(StrictSerializer):
    """The language model of a preview."""

    model = StrictCharField(
        required=False,
        max_length=200,
        help_text="Name of the language model. Default: the agent's `extraction_model`.",
    )


class NewRunSerializer(ModelSerializer, lists.ConversationName):
    """The conversation to preview the facts of."""


class ExtractionRunSerializer(serializers.Serializer):
    """A run, without its candidates."""

    id = serializers.UUIDField()
    url = UrlField("extraction-run", help_text="The URL with all fields.")
    agent = AgentNameField(help_text="The agent's name.")
    agent_id = serializers.UUIDField()
    user_id = serializers.CharField()
    thread_id = serializers.CharField(help_text=_help("thread_id"))
    state = serializers.ChoiceField(choices=RunState.choices, help_text=_help("state"))
    message_ids = serializers.ListField(
        child=serializers.UUIDField(), help_text=_help("message_ids")
    )
    replay_of = serializers.UUIDField(allow_null=True, help_text=_help("replay_of"))
    requested_by = serializers.CharField(help_text=_help("requested_by"))
    model = serializers.CharField(help_text=_help("model"))
    endpoint = serializers.CharField(help_text=_help("endpoint"))
    response_format = serializers.CharField(help_text=_help("response_format"))
    prompt_digest = serializers.CharField(help_text=_help("prompt_digest"))
    prompt_tokens = serializers.IntegerField(help_text=_help("prompt_tokens"))
    completion_tokens = serializers.IntegerField(help_text=_help("completion_tokens"))
    cost = serializers.DecimalField(max_digits=12, decimal_places=6, help_text=_help("cost"))
    result = serializers.DictField(help_text=_help("result"))
    error = serializers.CharField(help_text=_help("error"))
    created_at = serializers.DateTimeField(help_text=_help("created_at"))
    ended_at = serializers.DateTimeField(allow_null=True, help_text=_help("ended_at"))


class ExtractionRunInFullSerializer(ExtractionRunSerializer):
    """A run with its candidates and the answer of the language model."""

    candidates = serializers.ListField(child=serializers.DictField(), help_text=_help("candidates"))
    output = serializers.CharField(help_text=_help("output"))


class ComparisonSerializer(serializers.Serializer):
    """The accepted candidates of two runs, by subject, slot and value."""

    both = serializers.ListField(
        child=serializers.DictField(), help_text="Candidates of both runs, as the first has them."
    )
    only_first = serializers.ListField(
        child=serializers.DictField(), help_text="Candidates of this run alone."
    )
    only_second = serializers.ListField(
        child=serializers.DictField(), help_text="Candidates of the other run alone."
    )
    changed = serializers.ListField(
        child=serializers.ListField(child=serializers.DictField()),
        help_text="Pairs of candidates with the same subject and slot, and different values.",
    )


class ExtractionRunQuery(lists.AgentUserQuery, lists.TimeRangeQuery, lists.PageQuerySerializer):
    """Query parameters of the list of runs."""

    thread_id = ChannelIdField(required=False, help_text="Only of this conversation.")
    state = serializers.ChoiceField(
        choices=RunState.choices, required=False, help_text="Only runs in this state."
    )
    ordering = lists.ordering_field(lists.ByCreation)


class ComparisonQuery(StrictSerializer):
    """Query parameters of a comparison."""

    other = serializers.UUIDField(help_text="Id of the other run, such as a replay of this one.")


@route("extraction-runs/", name="extraction-runs")
class ExtractionRunsView(ApiView):
    """Extraction runs. Bound keys have no access: a run has the unchanged answer of a model."""

    @operation(
        Action.LIST,
        "extraction runs",
        permission=VIEW,
        query=ExtractionRunQuery,
        id="list_extraction_runs",
        page=ExtractionRunSerializer,
    )
    def get(self, request: Request) -> Response:
        """List extraction runs, newest first."""
        rows = lists.apply_filters(ExtractionRun.objects.all(), self.query, self.caller)
        return self.page(
            rows.defer("candidates", "output"), lists.ByCreation(), ExtractionRunSerializer
        )

    @operation(
        Action.CREATE,
        "extraction run",
        permission=(PREVIEW, VIEW),
        body=NewRunSerializer,
        own_transaction=True,
        id="preview_extraction",
        returns={201: ExtractionRunInFullSerializer},
        errors=(409, 422),
        headers=[LOCATION],
    )
    def post(self, request: Request) -> Response:
        """Preview the facts of a conversation.

        Extracts the facts of the messages that the next run would process, and returns a run that
        shows the changes. No fact changes until the run is applied. The response arrives when the
        language model has answered.
        """
        fields = self.fields
        messages = runs.new_messages(
            self.caller.agent(fields["agent"]).id,
            self.caller.user(fields["user_id"]),
            fields["thread_id"],
        )
        run = runs.preview(
            messages=messages, requested_by=self.caller.author.address, model=fields.get("model")
        )
        return _created(self, run)


@route("extraction-runs/<uuid:run_id>/", name="extraction-run")
class ExtractionRunView(ApiView):
    """One extraction run."""

    @operation(
        Action.VIEW,
        "extraction run",
        scope=(KeyScope.READ, KeyScope.WRITE),
        permission=VIEW,
        id="get_extraction_run",
        returns=ExtractionRunInFullSerializer,
    )
    def get(self, request: Request, run_id: UUID) -> Response:
        """Get an extraction run.

        Returns each candidate with its outcome, its fact or the reason of the refusal, and the
        unchanged answer of the language model.
        """
        return self.show(ExtractionRun.objects.all(), ExtractionRunInFullSerializer, run_id)


@route("extraction-runs/<uuid:run_id>/replay/", name="replay-extraction-run")
class ReplayView(ApiView):
    """The input of a run, asked for again."""

    @operation(
        Action.CREATE,
        "extraction run",
        permission=(PREVIEW, VIEW),
        body=ModelSerializer,
        own_transaction=True,
        id="replay_extraction_run",
        returns={201: ExtractionRunInFullSerializer},
        errors=(409, 422),
        headers=[LOCATION],
    )
    def post(self, request: Request, run_id: UUID) -> Response:
        """Preview the input of a run again.

        Creates a preview of the same messages, such as with another language model, to compare with
        the run.
        """
        run = runs.replay(
            run_id, requested_by=self.caller.author.address, model=self.fields.get("model")
        )
        return _created(self, run)


@route("extraction-runs/<uuid:run_id>/apply/", name="apply-extraction-run")
class ApplicationView(ApiView):
    """The application of a preview."""

    @operation(
        Action.DECIDE,
        "extraction run",
        permission=CHANGE,
        id="apply_extraction_run",
        returns=ExtractionRunInFullSerializer,
        errors=(409, 422),
    )
    def post(self, request: Request, run_id: UUID) -> Response:
        """Apply a preview.

        Records the facts like a run of the worker: facts that need a review are proposed. A run
        that is not a preview is a 409 `wrong-state`.
        """
        before = row_state(runs.get_run(run_id))
        run = runs.apply(run_id)
        return self.changed(run, before, ExtractionRunInFullSerializer, decision="apply")


@route("extraction-runs/<uuid:run_id>/roll-back/", name="roll-back-extraction-run")
class RollBackView(ApiView):
    """The undoing of a run."""

    @operation(
        Action.DECIDE,
        "extraction run",
        permission=CHANGE,
        id="roll_back_extraction_run",
        returns=ExtractionRunInFullSerializer,
        errors=(409,),
    )
    def post(self, request: Request, run_id: UUID) -> Response:
        """Roll a run back.

        Removes the facts and the evidence of the run, and restores what they superseded. A fact
        with evidence of another run stays, and so does one that a person or a program changed or
        confirmed. `result.rolled_back` has the counts. A run that was not applied is a 409
        `wrong-state`.
        """
        before = row_state(runs.get_run(run_id))
        runs.roll_back(run_id, author=self.caller.author)
        run = runs.get_run(run_id)
        return self.changed(run, before, ExtractionRunInFullSerializer, decision="roll_back")


@route("extraction-runs/<uuid:run_id>/comparison/", name="compare-extraction-runs")
class ComparisonView(ApiView):
    """Two runs side by side."""

    @operation(
        Action.VIEW,
        "extraction run",
        permission=VIEW,
        query=ComparisonQuery,
        id="compare_extraction_runs",
        returns=ComparisonSerializer,
    )
    def get(self, request: Request, run_id: UUID) -> Response:
        """Compare a run with another one.

        Compares two runs, such as a run and its replay by another language model.
        """
        first = get_object_or_404(ExtractionRun, pk=run_id)
        second = get_object_or_404(ExtractionRun, pk=self.query["other"])
        self.log(first, other=second.pk)
        document: dict[str, Any] = runs.compare(first, second)
        return Response(ComparisonSerializer(document).data)


def _created(view: ApiView, run: ExtractionRun) -> Response:
    view.log(run, after=row_state(run))
    document = view.document(run, ExtractionRunInFullSerializer)
    return Response(document, status=201, headers={"Location": document["url"]})
