"""Dry runs of agents, in which nothing is stored, and questions that are asked by dry runs."""

from typing import Any
from uuid import UUID

from django.shortcuts import get_object_or_404
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from konstruct.api.http import bodies, lists, schema, views
from konstruct.api.resources.agents.agents import AgentFields
from konstruct.api.resources.memory.recall_events import RecallTraceSerializer
from konstruct.orchestrator import agents, dry_runs, models, usage
from tenants.audit.models import Action

MAX_INTEGER = 2**31 - 1
TRY = "audit.try_agent"
# The settings of an agent that change what it answers.
DRAFT_FIELDS = frozenset(
    {
        *("system_prompt", "identity", "persona", "model_tier", "model", "max_completion_tokens"),
        *("language_models", "tools", "escalate_on", "hands_to", "hand_over_on", "hand_back_on"),
        *("recall_mode", "recall_top_k", "recall_neighbours", "recall_gate", "recall_preset"),
        *("recall_open_at", "recall_keep_at", "recall_weights", "reranker"),
    }
)


class DraftFields(AgentFields):
    """Settings of a draft of an agent. Omitted settings are the agent's."""

    def get_fields(self) -> dict[str, serializers.Field]:
        """Return the settings that change an answer."""
        fields = super().get_fields()
        return {name: field for name, field in fields.items() if name in DRAFT_FIELDS}


class NewDryRunSerializer(bodies.StrictSerializer):
    """A message to an agent."""

    content = bodies.TextField(help_text="The message.")
    user_id = bodies.ChannelIdField(
        required=False,
        allow_null=True,
        help_text="The user who writes. Default: a user without memories.",
    )
    draft = DraftFields(required=False, help_text="Settings of a draft; it gets the same message.")


class DryTraceSerializer(RecallTraceSerializer):
    """The recall and the prompt of a reply, as in a recall event."""

    query = serializers.CharField(help_text="The query.")
    abstained = serializers.BooleanField(help_text="No memory was relevant enough.")
    embedding_model = serializers.CharField()
    milliseconds = serializers.FloatField(help_text="Duration of the recall.")


class DryReplySerializer(serializers.Serializer):
    """The result of a dry run."""

    reply = serializers.CharField(help_text="The reply. Empty: no reply, or none yet.")
    agent = serializers.CharField(source="agent.name", help_text="Name of the agent that answers.")
    agent_id = serializers.UUIDField(source="agent.pk")
    steps = bodies.TextsField(help_text="Decision and reason.")
    problem = serializers.CharField(
        help_text="Why the language model gave no usable answer. Empty: there was no problem."
    )
    asked_at = serializers.DateTimeField(help_text="When the message was sent.")
    answered_at = serializers.DateTimeField(help_text="When the reply was there.")
    recall = DryTraceSerializer(source="trace", allow_null=True, help_text="null: no model call.")


class DryRunSerializer(serializers.Serializer):
    """The replies of an agent and of its draft."""

    user_id = serializers.CharField(allow_null=True, help_text="The person who writes.")
    changes = bodies.TextsField(help_text="Names of the settings in which the draft differs.")
    live = DryReplySerializer(help_text="The result of the current agent.")
    draft = DryReplySerializer(
        allow_null=True,
        help_text="The result of the draft. null: no draft, or one without changes.",
    )


class DryRunViewSet(views.ApiViewSet):
    """Dry runs of an agent. Bound keys have no access: a dry run shows prompts."""

    subject = "agent"

    @views.operation(
        Action.TRY,
        permission=TRY,
        body=NewDryRunSerializer,
        own_transaction=True,
        id="dry_run_agent",
        returns={200: DryRunSerializer},
        errors=(422,),
    )
    def create(self, request: Request, agent_id: UUID) -> Response:
        """Send a message to an agent in a dry run.

        Applies the rules of a channel (for people and other agents), and calls the language model
        with the prompt, the memory and the tools of a reply. It stores only the usage of the
        language model and an entry in the access log, and describes tool calls instead of running
        them. `draft` shows the effect of other settings. The response arrives when the language
        model has answered; the agent and the draft may each take as long as a reply. If there is no
        answer, `problem` has the reason.
        """
        agent = get_object_or_404(models.Agent, pk=agent_id)
        content, user_id = self.fields["content"], self.fields.get("user_id")
        if user_id is not None:
            self.caller.user(user_id)
        draft = agents.draft_of(agent, **self.fields["draft"]) if "draft" in self.fields else agent
        live_settings, draft_settings = agents.settings_of(agent), agents.settings_of(draft)
        changes = [name for name in live_settings if draft_settings[name] != live_settings[name]]
        usage.require_room(usage.MODEL_CALL_QUOTAS)
        self.log(agent)
        live = dry_runs.dry_run(agent, content, user_id=user_id)
        document = {
            "user_id": user_id,
            "changes": changes,
            "live": live,
            "draft": dry_runs.dry_run(draft, content, user_id=user_id) if changes else None,
        }
        return Response(DryRunSerializer(document).data)


class NewQuestionSerializer(bodies.StrictSerializer):
    """A question to save."""

    content = bodies.TextField(help_text="The message.")
    user_id = bodies.ChannelIdField(
        required=False,
        allow_null=True,
        help_text="The user who asks. null: a user without memories.",
    )


class SavedQuestionSerializer(serializers.ModelSerializer):
    """A saved question."""

    url = serializers.SerializerMethodField(help_text="Where it is.")

    class Meta:
        model = models.SavedQuestion
        fields = ["id", "url", "agent_id", "content", "user_id", "created_at"]

    def get_url(self, question: models.SavedQuestion) -> str:
        """Return the URL of the question."""
        arguments = [question.agent_id, question.pk]
        return str(reverse("question-detail", args=arguments, request=self.context["request"]))


class QuestionAnswerSerializer(serializers.ModelSerializer):
    """The answer of a version of an agent to a saved question."""

    question_id = serializers.UUIDField()

    class Meta:
        model = models.QuestionAnswer
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


class AnswerFilter(lists.TimeRangeFilter):
    """Filters of the list of answers."""

    question_id = lists.Filter(serializers.UUIDField, "Only answers to this question.")
    version = lists.Filter(
        serializers.IntegerField,
        "Only answers of the version with this number.",
        min_value=0,
        max_value=MAX_INTEGER,
    )


class QuestionViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, views.ApiViewSet):
    """The saved questions of an agent, the newest first. Bound keys have no access."""

    queryset = models.SavedQuestion.objects.all()
    serializer_class = SavedQuestionSerializer
    subject = "saved question"
    lookup_url_kwarg = "question_id"
    permission = TRY

    def get_queryset(self) -> Any:
        """Return the questions, or the answers, of the agent in the address."""
        agent_id = self.kwargs["agent_id"] if self.detail else self.agent().pk
        return super().get_queryset().filter(agent_id=agent_id)

    def agent(self) -> models.Agent:
        """Return the agent in the address. Raises Http404."""
        return get_object_or_404(models.Agent.objects.only("pk"), pk=self.kwargs["agent_id"])

    @views.operation(
        Action.CREATE,
        body=NewQuestionSerializer,
        id="save_question",
        errors=(402, 409, 422),
        headers=[schema.IDEMPOTENCY_KEY, schema.LOCATION],
    )
    def create(self, request: Request, agent_id: UUID) -> Response:
        """Save a question to an agent.

        A worker asks the agent this question now and after each change, in dry runs. An agent has
        at most 20 saved questions: one more is a 409 `too-many-questions`. A question that names a
        person is erased with the person.
        """
        agent = get_object_or_404(models.Agent, pk=agent_id)
        if (user_id := self.fields.get("user_id")) is not None:
            self.caller.user(user_id)

        def create() -> UUID:
            question_id = dry_runs.save_question(agent, **self.fields).pk
            dry_runs.enqueue_questions(agent.pk)
            return question_id

        return self.create_once(create)

    @views.operation(Action.DELETE)
    def destroy(self, request: Request, agent_id: UUID, question_id: UUID) -> Response:
        """Delete a saved question with its answers."""
        return self.delete_row(self.get_object(), lambda question: question.delete())

    @action(detail=False, url_path="answers", queryset=models.QuestionAnswer.objects.all())
    @views.operation(
        Action.LIST,
        "answers to saved questions",
        filters=AnswerFilter,
        page=QuestionAnswerSerializer,
    )
    def list_question_answers(self, request: Request, agent_id: UUID) -> Response:
        """List the answers to the saved questions of an agent, the newest first.

        Each question has one answer of each version of the agent that was asked. Answers of the
        last 20 versions are kept. An answer is erased with its person and with any message that was
        in its prompt.
        """
        return self.page(self.filter_queryset(self.get_queryset()), QuestionAnswerSerializer)

    @action(detail=False, url_path="run")
    @views.operation(Action.VIEW, "saved questions", returns=QuestionRunSerializer)
    def get_question_run(self, request: Request, agent_id: UUID) -> Response:
        """Get the state of an agent's saved questions."""
        agent = self.agent()
        self.log(agent)
        return Response(_run_of(agent))

    @get_question_run.mapping.post
    @views.operation(Action.TRY, "saved questions", returns={202: QuestionRunSerializer})
    def ask_saved_questions(self, request: Request, agent_id: UUID) -> Response:
        """Ask an agent its saved questions again.

        A worker asks the questions in dry runs. The answers replace the answers of the current
        version.
        """
        agent = self.agent()
        dry_runs.enqueue_questions(agent.pk)
        self.log(agent)
        return Response(_run_of(agent), status=202)


def _run_of(agent: models.Agent) -> dict[str, Any]:
    job = agents.QUESTIONS.jobs([agent.pk]).first()
    state = "answered" if job is None else "failed" if job.failed_at else "queued"
    document = {
        "state": state,
        "version": dry_runs.version_of(agent.pk),
        "attempts": job.attempts if job else 0,
        "last_error": job.last_error if job else "",
    }
    return dict(QuestionRunSerializer(document).data)
