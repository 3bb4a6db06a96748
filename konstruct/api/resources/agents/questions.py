"""Saved questions of agents by REST, with the answers of each version."""

from typing import Any
from uuid import UUID

from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from konstruct.api.http.bodies import ChannelIdField, StrictSerializer, TextField
from konstruct.api.http.idempotency import IDEMPOTENCY_KEY, create_once
from konstruct.api.http.lists import ByCreation, PageQuerySerializer, TimeRangeQuery, apply_filters
from konstruct.api.http.routes import route
from konstruct.api.http.schema import response_header
from konstruct.api.http.views import ApiView, no_content, operation
from konstruct.api.models import KeyScope
from konstruct.api.resources.agents.dry_runs import TRY
from konstruct.orchestrator.agents import QUESTIONS
from konstruct.orchestrator.models import Agent, QuestionAnswer, SavedQuestion
from konstruct.orchestrator.saved_questions import (
    MAX_QUESTIONS,
    MAX_VERSIONS,
    enqueue_questions,
    save_question,
    version_of,
)
from tenants.audit.changes import row_state
from tenants.audit.models import Action

MAX_INTEGER = 2**31 - 1


class NewQuestionSerializer(StrictSerializer):
    """A question to save."""

    content = TextField(help_text="The message.")
    user_id = ChannelIdField(
        required=False,
        allow_null=True,
        help_text="The user who asks. null: a user without memories.",
    )


class SavedQuestionSerializer(serializers.ModelSerializer):
    """A saved question."""

    url = serializers.SerializerMethodField(help_text="Where it is.")

    class Meta:
        model = SavedQuestion
        fields = ["id", "url", "agent_id", "content", "user_id", "created_at"]

    def get_url(self, question: SavedQuestion) -> str:
        """Return the URL of the question."""
        arguments = [question.agent_id, question.pk]
        return str(reverse("question", args=arguments, request=self.context["request"]))


class QuestionAnswerSerializer(serializers.ModelSerializer):
    """The answer of a version of an agent to a saved question."""

    question_id = serializers.UUIDField()

    class Meta:
        model = QuestionAnswer
        fields = [
            *("id", "question_id", "version", "user_id", "content", "steps", "problem"),
            *("source_count", "message_ids", "created_at"),
        ]


class QuestionRunSerializer(serializers.Serializer):
    """The state of an agent's saved questions."""

    state = serializers.ChoiceField(
        choices=["answered", "queued", "failed"],
        help_text="queued: a worker asks them; failed: no further attempt is made; answered: the"
        " current version has answered the questions.",
    )
    version = serializers.IntegerField(
        help_text="Number of the agent's current version. 0: before its first version."
    )
    attempts = serializers.IntegerField(help_text="Attempts since the last success.")
    last_error = serializers.CharField(help_text="Why the last attempt failed.")


class AnswerQuery(TimeRangeQuery, PageQuerySerializer):
    """Query parameters of the list of answers."""

    question_id = serializers.UUIDField(required=False, help_text="Only answers to this question.")
    version = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=MAX_INTEGER,
        help_text="Only answers of the version with this number.",
    )


@route("agents/<uuid:agent_id>/questions/", name="questions")
class QuestionsView(ApiView):
    """The saved questions of an agent. Bound keys have no access."""

    @operation(
        Action.LIST,
        "saved questions",
        permission=TRY,
        query=PageQuerySerializer,
        id="list_saved_questions",
        page=SavedQuestionSerializer,
    )
    def get(self, request: Request, agent_id: UUID) -> Response:
        """List the saved questions of an agent, the newest first."""
        agent = get_object_or_404(Agent.objects.only("pk"), pk=agent_id)
        rows = SavedQuestion.objects.filter(agent_id=agent.pk)
        return self.page(rows, ByCreation(), SavedQuestionSerializer)

    @operation(
        Action.CREATE,
        "saved question",
        permission=TRY,
        body=NewQuestionSerializer,
        id="save_question",
        returns={201: SavedQuestionSerializer},
        errors=(402, 409, 422),
        headers=[
            IDEMPOTENCY_KEY,
            response_header("Location", "The URL of the question.", 201),
        ],
        description="A worker asks the agent this question now and after each change, in dry "
        "runs. An agent"
        f" has at most {MAX_QUESTIONS} saved questions: one more is a 409 `too-many-questions`. A"
        " question that names a person is erased with the person.",
    )
    def post(self, request: Request, agent_id: UUID) -> Response:
        """Save a question to an agent."""
        agent = get_object_or_404(Agent, pk=agent_id)
        if (user_id := self.fields.get("user_id")) is not None:
            self.caller.user(user_id)

        def create() -> UUID:
            question_id = save_question(agent, **self.fields).pk
            enqueue_questions(agent.pk)
            return question_id

        question_id, is_new = create_once(request, create)
        question = get_object_or_404(SavedQuestion, pk=question_id)
        self.log_created(question, is_new=is_new)
        document = self.document(question, SavedQuestionSerializer)
        return Response(document, status=201, headers={"Location": document["url"]})


@route("agents/<uuid:agent_id>/questions/<uuid:question_id>/", name="question")
class QuestionView(ApiView):
    """One saved question."""

    @operation(
        Action.VIEW,
        "saved question",
        scope=(KeyScope.READ, KeyScope.WRITE),
        permission=TRY,
        id="get_saved_question",
        returns=SavedQuestionSerializer,
    )
    def get(self, request: Request, agent_id: UUID, question_id: UUID) -> Response:
        """Get a saved question."""
        rows = SavedQuestion.objects.filter(agent_id=agent_id)
        return self.show(rows, SavedQuestionSerializer, question_id)

    @operation(
        Action.DELETE,
        "saved question",
        permission=TRY,
        id="delete_saved_question",
        returns=no_content("The question and its answers are deleted."),
    )
    def delete(self, request: Request, agent_id: UUID, question_id: UUID) -> Response:
        """Delete a saved question with its answers."""
        rows = SavedQuestion.objects.filter(agent_id=agent_id)
        question = get_object_or_404(rows, pk=question_id)
        self.log(question, before=row_state(question))
        self.write_log_entry()
        question.delete()
        return Response(status=204)


@route("agents/<uuid:agent_id>/questions/answers/", name="question-answers")
class QuestionAnswersView(ApiView):
    """The answers to the saved questions of an agent."""

    @operation(
        Action.LIST,
        "answers to saved questions",
        permission=TRY,
        query=AnswerQuery,
        id="list_question_answers",
        page=QuestionAnswerSerializer,
        description="Each question has one answer of each version of the agent that was asked."
        f" Answers of the last {MAX_VERSIONS} versions are kept. An answer is erased with its "
        f"person"
        " and with any message that was in its prompt.",
    )
    def get(self, request: Request, agent_id: UUID) -> Response:
        """List the answers to the saved questions of an agent, the newest first."""
        agent = get_object_or_404(Agent.objects.only("pk"), pk=agent_id)
        rows = QuestionAnswer.objects.filter(agent_id=agent.pk)
        rows = apply_filters(rows, self.query, self.caller)
        return self.page(rows, ByCreation(), QuestionAnswerSerializer)


@route("agents/<uuid:agent_id>/questions/run/", name="question-run")
class QuestionRunView(ApiView):
    """The run of the saved questions of an agent."""

    @operation(
        Action.VIEW,
        "saved questions",
        permission=TRY,
        id="get_question_run",
        returns=QuestionRunSerializer,
    )
    def get(self, request: Request, agent_id: UUID) -> Response:
        """Get the state of an agent's saved questions."""
        agent = get_object_or_404(Agent.objects.only("pk"), pk=agent_id)
        self.log(agent)
        return Response(_run_of(agent))

    @operation(
        Action.TRY,
        "saved questions",
        permission=TRY,
        id="ask_saved_questions",
        returns={202: QuestionRunSerializer},
    )
    def post(self, request: Request, agent_id: UUID) -> Response:
        """Ask an agent its saved questions again.

        A worker asks the questions in dry runs. The answers replace the answers of the current
        version.
        """
        agent = get_object_or_404(Agent.objects.only("pk"), pk=agent_id)
        enqueue_questions(agent.pk)
        self.log(agent)
        return Response(_run_of(agent), status=202)


def _run_of(agent: Agent) -> dict[str, Any]:
    job = QUESTIONS.jobs([agent.pk]).first()
    state = "answered" if job is None else "failed" if job.failed_at else "queued"
    document = {
        "state": state,
        "version": version_of(agent.pk),
        "attempts": job.attempts if job else 0,
        "last_error": job.last_error if job else "",
    }
    return dict(QuestionRunSerializer(document).data)
