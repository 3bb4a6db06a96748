"""Tables of agents, their versions and saved questions, and the checks of an agent's fields."""

import re
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any, Self
from uuid import UUID

from django.core.exceptions import ValidationError
from django.core.validators import ProhibitNullCharactersValidator
from django.db import models
from django.db.models import Exists, OuterRef, Subquery
from django.db.models.functions import Now
from django.utils.translation import get_language_info, gettext, gettext_lazy as _

from konstruct.orchestrator.models.language_models import LanguageModel, ModelKind
from konstruct.orchestrator.tool_catalog import TOOLS
from memory.arguments import id_problem, is_blank, time_zone_argument
from memory.exceptions import InvalidArgument
from memory.models import server_now
from memory.recall.policy import RecallPolicy, RecallWeights
from memory.text.lexical import LATIN_BY_CODE
from tenants import fields
from tenants.models import TenantModel
from tenants.personal_data import Export, NoPersonalData, rows_of_user

UUID_PATTERN = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
UUID_TEXT = re.compile(UUID_PATTERN, re.IGNORECASE)
NAME_READS_AS_ID = "This name reads as an id. Choose one that is not a UUID."
MAX_PHRASES = 100


class AgentQuerySet(models.QuerySet["Agent"]):
    """Agents of a tenant."""

    def active(self) -> Self:
        """Those that accept messages."""
        return self.filter(is_active=True)

    def with_version(self) -> Self:
        """With the number of the last version of each as `version`, and whether the tenant has
        language models as `has_models`.
        """
        versions = AgentVersion.objects.filter(agent_id=OuterRef("pk")).order_by("-number")
        return self.annotate(
            version=Subquery(versions.values("number")[:1]),
            has_models=Exists(LanguageModel.objects.all()),
        )

    def named(self, name_or_id: str) -> Self:
        """The agent of that name or id; no name reads as an id, so one value is one agent."""
        if UUID_TEXT.fullmatch(name_or_id):
            return self.filter(pk=UUID(name_or_id))
        return self.filter(name=name_or_id)


def validate_rules(agent: "Agent") -> None:
    """Raise ValidationError for blank phrases and unknown agents; normalize the agents' ids."""
    phrases = agent.hand_over_on
    if not isinstance(phrases, dict) or len(phrases) > MAX_PHRASES:
        raise ValidationError(
            {"hand_over_on": f"Give an object of at most {MAX_PHRASES} phrases with agents' ids."}
        )
    for field in ("escalate_on", "hand_over_on", "hand_back_on"):
        if any(is_blank(phrase) or "\0" in phrase for phrase in getattr(agent, field)):
            raise ValidationError(
                {field: "Give phrases that say something, without NUL characters."}
            )
    _require_other_agents(agent, "hands_to", agent.hands_to)
    _require_other_agents(agent, "hand_over_on", phrases.values())
    agent.hand_over_on = {phrase: str(UUID(str(to))) for phrase, to in phrases.items()}


def _require_other_agents(agent: "Agent", field: str, given: Iterable[Any]) -> None:
    """Raise ValidationError for ids that are no other agent of the current tenant."""
    try:
        ids = {value if isinstance(value, UUID) else UUID(value) for value in given}
    except (ValueError, AttributeError, TypeError):
        raise ValidationError({field: "Give the ids of agents."}) from None
    if agent.pk in ids:
        raise ValidationError({field: "An agent cannot hand a conversation to itself."})
    known = set(type(agent)._default_manager.filter(pk__in=ids).values_list("pk", flat=True))
    if unknown := sorted(str(agent_id) for agent_id in ids - known):
        raise ValidationError({field: f"This tenant has no agent of the id {unknown[0]}."})


class ModelTier(models.TextChoices):
    """The class of an agent's language model: its token budget is WorkingContextCompiler's."""

    FAST = "fast"
    REASONING = "reasoning"


class RecallMode(models.TextChoices):
    """Which channels recall uses."""

    HYBRID = "hybrid", "hybrid: meaning and words"
    VECTOR = "vector", "vector: cosine similarity alone"


class RecallPreset(models.TextChoices):
    """The threshold of relevance for recalled messages."""

    PRECISE = "precise", "precise: fewer memories, fewer irrelevant ones"
    BALANCED = "balanced", "balanced"
    THOROUGH = "thorough", "thorough: more memories, more irrelevant ones"


class FactReview(models.TextChoices):
    """Which extracted facts wait for a person's review."""

    NONE = "none", "none: use all facts at once"
    DOUBTFUL = "doubtful", "doubtful: conflicts, conclusions, sensitive topics"
    ALL = "all", "all"


def _not_zero(field: str) -> models.CheckConstraint:
    return models.CheckConstraint(
        condition=~models.Q((field, 0)),
        name=f"agent_{field}",
        violation_error_message=f"{field}: Give 1 or more, or leave it out.",
    )


class Agent(TenantModel):
    """An AI agent of a tenant: its identity, language model and memory settings."""

    id = fields.random_id()
    name = models.CharField(
        max_length=120,
        validators=[ProhibitNullCharactersValidator()],
        help_text="The name for programs and people. Unique in the tenant, and not a UUID.",
    )
    system_prompt = fields.optional_text(
        help_text="The agent's purpose and instructions. Every prompt begins with them."
    )
    identity = fields.optional_text(
        help_text="The agent's identity: “You are Ada, the librarian …”"
    )
    persona = fields.optional_text(help_text="The agent's style: tone, language, manners.")
    model = fields.optional_char(
        max_length=200,
        help_text="Name of the language model for the deployment's server, and for language models "
        "of the tenant without a name of a model. Blank: the deployment's model of the tier.",
    )
    model_tier = fields.choice(
        ModelTier.FAST, help_text="fast: short contexts and low cost. reasoning: long contexts."
    )
    language_models = fields.text_list(
        blank=True,
        help_text="Names of the tenant's language models that answer, in this order: the next one "
        "is called if one fails. None: the tenant's default models.",
    )
    reranker = fields.optional_char(
        max_length=120,
        help_text="Name of the tenant's reranker, which sorts recalled memories. Blank: none.",
    )
    accepts_client_instructions = fields.flag(
        "accepts instructions of applications",
        default=True,
        help_text="Follow the system and developer messages that an application sends through "
        "OpenAI's interface, after the agent's own instructions. Those of a bound key are never "
        "followed.",
    )
    max_completion_tokens = fields.optional_number(
        "most tokens of an answer",
        help_text="Maximum number of tokens in one answer of the language model. An application "
        "may ask for fewer. Blank: only the model's own limit.",
    )
    max_tokens_per_day = fields.optional_number(
        "maximum tokens of replies a day",
        help_text="After this many tokens of replies in a day (UTC) the agent's replies fail. "
        "Blank: no limit.",
    )
    is_active = fields.flag(
        default=True, help_text="An inactive agent accepts no messages; its memory stays."
    )
    conversation_pause_hours = fields.number(
        12,
        help_text="After this many hours without a message, a new conversation begins: earlier "
        "turns are recalled, instead of being turns of the prompt.",
    )
    language = fields.optional_char(
        choices=[(code, _(get_language_info(code)["name"])) for code in LATIN_BY_CODE],
        max_length=2,
        help_text="Language in which all Latin words of messages and questions are searched. "
        "Blank: that of the user, or else of each text, by its frequent words.",
    )
    time_zone = fields.optional_char(
        max_length=64,
        help_text="Time zone of users without one of their own, such as Europe/Berlin, for times "
        "in prompts and the days of messages. Blank: UTC.",
    )
    recall_mode = fields.choice(RecallMode.HYBRID, help_text="How the agent searches memories.")
    recall_top_k = fields.optional_small_number(
        help_text="Maximum number of memories in a prompt, 1 to 100. Blank: as measured (10)."
    )
    recall_gate = fields.flag(
        default=True,
        help_text="Leave out memories that are probably irrelevant, all of them if necessary.",
    )
    recall_preset = fields.choice(
        RecallPreset.BALANCED,
        help_text="With the gate: how strict recall is. Choosing a preset clears the agent's "
        "own thresholds.",
    )
    recall_open_at = models.FloatField(
        null=True,
        blank=True,
        help_text="Own threshold instead of the preset's, 0 to 1: no memory is used unless the "
        "best one has at least this gate value. Blank: the preset's.",
    )
    recall_keep_at = models.FloatField(
        null=True,
        blank=True,
        help_text="Own threshold instead of the preset's, 0 to 1: each memory must have at least "
        "this gate value. Blank: the preset's.",
    )
    recall_neighbours = fields.optional_small_number(
        help_text="Number of turns before and after a memory that are included with it, 0 to 10. "
        "Blank: as measured (0)."
    )
    recall_weights = fields.json_object(
        blank=True,
        help_text='Weights of the ranking that differ from the measured ones, such as {"time": 1}.',
    )
    tools = fields.text_list(
        blank=True,
        help_text="Tools that the agent may use. remember_fact stores a fact about the user, "
        "after the user consents.",
    )
    escalate_on = fields.text_list(
        blank=True,
        help_text="Words or phrases in a message that call for a person, in addition to plain "
        "requests such as “talk to a human”.",
    )
    escalate_after_failures = fields.optional_small_number(
        help_text="Number of failed replies in a row in a thread after which a person is called. "
        "Blank: never."
    )
    hands_to = fields.id_list(
        blank=True,
        help_text="Agents to which the language model may hand a conversation, with the tool "
        "hand_to_agent.",
    )
    hand_over_on = fields.json_object(
        blank=True,
        help_text="Words or phrases in a message that hand the conversation to another agent, each "
        'with that agent\'s id: {"invoice": "0b6ef0bd-…"}.',
    )
    hand_back_on = fields.text_list(
        blank=True,
        help_text="Words or phrases in a message that return a conversation to the previous agent.",
    )
    extracts_facts = fields.flag(
        "extracts facts",
        default=False,
        help_text="Extract facts from idle conversations. "
        "The deployment must have a language model.",
    )
    extraction_model = fields.optional_char(
        max_length=200, help_text="Model that extracts facts. Blank: the agent's model."
    )
    extraction_idle_seconds = fields.number(
        600, help_text="A conversation is idle after this many seconds without a message."
    )
    extraction_batch_size = models.PositiveSmallIntegerField(
        default=40,
        db_default=40,
        help_text="Maximum number of messages in one request to the language model, 1 to 200. A "
        "conversation with this many new messages is processed at once.",
    )
    extraction_max_tokens_per_day = fields.optional_number(
        "maximum tokens for facts a day",
        help_text="Maximum number of tokens that extraction may use for this agent in a day "
        "(UTC). Blank: no limit.",
    )
    fact_review = fields.choice(
        FactReview.DOUBTFUL,
        "review of facts",
        help_text="Which extracted facts a person confirms before agents use them.",
    )
    fact_review_by_slot = fields.json_object(
        "review by slot",
        blank=True,
        help_text='Different rules for single slots, such as {"diet": "all", "hobby": "none"}.',
    )
    created_at = models.DateTimeField(
        db_default=server_now(), editable=False, help_text="Time of creation."
    )

    # Set by `with_version`.
    version: int | None = None
    has_models: bool = True

    objects = AgentQuerySet.as_manager()

    personal_data = NoPersonalData(
        "what the tenant's people write of an agent",
        export=Export(
            kind="agents",
            position=1,
            is_mutable=True,
            without=("language_models", "reranker"),  # another tenant has other ones
            where="%(user)s::text IS NULL"
            " OR id IN (SELECT agent_id FROM memory_message WHERE user_id = %(user)s)"
            " OR id IN (SELECT agent_id FROM memory_memoryentry WHERE user_id = %(user)s)"
            " OR id IN (SELECT agent_id FROM orchestrator_savedquestion WHERE user_id = %(user)s)",
        ),
    )

    class Meta:
        verbose_name = "agent"
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["name"],
                name="agent_name",
                violation_error_message="This tenant has an agent of that name already.",
            ),
            models.CheckConstraint(
                # The API takes a name or an id in the same place.
                condition=~models.Q(name__iregex=UUID_PATTERN),
                name="agent_name_is_no_id",
                violation_error_message=NAME_READS_AS_ID,
            ),
            fields.one_of("model_tier", ModelTier, "agent_model_tier"),
            fields.one_of("recall_mode", RecallMode, "agent_recall_mode"),
            fields.one_of("recall_preset", RecallPreset, "agent_recall_preset"),
            _not_zero("escalate_after_failures"),
            _not_zero("max_completion_tokens"),
            fields.one_of("fact_review", FactReview, "agent_fact_review"),
            models.CheckConstraint(
                condition=models.Q(extraction_batch_size__range=(1, 200)),
                name="agent_extraction_batch_size",
                violation_error_message="extraction_batch_size: Give 1 to 200.",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @classmethod
    def locales_of(cls, agent_ids: Collection[UUID]) -> dict[UUID, tuple[str, str]]:
        """Return the languages and time zones of these agents, or ""."""
        agents = cls.objects.filter(pk__in=agent_ids).values_list("pk", "language", "time_zone")
        return {agent_id: (language, time_zone) for agent_id, language, time_zone in agents}

    @property
    def recall_policy(self) -> RecallPolicy:
        """The recall policy. A threshold of the agent's own overrides the preset.

        Raises InvalidArgument, which names the invalid value.
        """
        if not isinstance(self.recall_weights, dict):
            raise InvalidArgument(
                f'weights={self.recall_weights!r} is not an object like {{"time": 0.5}}'
            )
        try:
            weights = RecallWeights(**self.recall_weights)
        except TypeError:
            known = ", ".join(RecallWeights.__dataclass_fields__)
            raise InvalidArgument(
                f"weights={self.recall_weights!r} names an unknown weight; known are {known}"
            ) from None
        given = {
            "mode": self.recall_mode,
            "top_k": self.recall_top_k,
            "open_at": self.recall_open_at,
            "keep_at": self.recall_keep_at,
            "neighbours": self.recall_neighbours,
        }
        chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        policy = RecallPolicy(
            gate=self.recall_gate, weights=weights, language=self.language, time_zone=self.time_zone
        )
        return replace(policy.with_preset(self.recall_preset), **chosen)

    def clean(self) -> None:
        """Raise ValidationError for an invalid name, tool, phrase, rule or recall setting."""
        if UUID_TEXT.fullmatch(self.name):
            raise ValidationError({"name": NAME_READS_AS_ID})
        if problem := id_problem(self.name):
            raise ValidationError({"name": f"This {problem}."})
        try:
            time_zone_argument("time_zone", self.time_zone)
        except InvalidArgument as error:
            raise ValidationError({"time_zone": f"{error}."}) from error
        if unknown := [name for name in self.tools if name not in TOOLS]:
            known = ", ".join(sorted(TOOLS))
            raise ValidationError(
                {"tools": f"There is no tool {unknown[0]!r}. There are: {known}."}
            )
        validate_rules(self)
        named = {
            "language_models": (ModelKind.LANGUAGE_MODEL, self.language_models),
            "reranker": (ModelKind.RERANKER, [self.reranker] if self.reranker else []),
        }
        for field, (kind, names) in named.items():
            found = LanguageModel.objects.filter(kind=kind, name__in=names) if names else ()
            existing = {model.name for model in found}
            if missing := [name for name in names if name not in existing]:
                words = kind.replace("_", " ")
                raise ValidationError({field: f"This tenant has no {words} {missing[0]!r}."})
        rules = self.fact_review_by_slot
        if not isinstance(rules, dict) or not {*rules.values()} <= {*FactReview.values}:
            raise ValidationError(
                {"fact_review_by_slot": 'Give an object of slots with "none", "doubtful" or "all".'}
            )
        try:
            _ = self.recall_policy
        except InvalidArgument as error:
            raise ValidationError(f"This is not a recall mode: {error}.") from error


class AgentVersion(TenantModel):
    """The settings of an agent after a change. Never changed."""

    id = fields.random_id()
    agent_id = models.UUIDField("agent", help_text="The agent.")
    number = models.PositiveIntegerField(help_text="1 for the first version of the agent.")
    settings = models.JSONField(help_text="All settings of the agent, by the names of its columns.")
    changed = fields.text_list(
        blank=True, help_text="Names of the settings that differ from the version before."
    )
    restores = fields.optional_number(help_text="Number of the version that this one restores.")
    note = fields.optional_text(help_text="The author's note on the change.")
    author = models.TextField(
        help_text="Kind and id of the author, such as person:7; system: for the platform."
    )
    author_name = fields.optional_text(help_text="Name of the author at that time.")
    created_at = models.DateTimeField(db_default=Now(), help_text="When the agent changed.")

    personal_data = NoPersonalData(
        "what the tenant's people write of an agent",
        # A tenant that has imported an agent numbers its own changes from there.
        export=Export(
            kind="agent_versions",
            position=24,
            key=("agent_id", "number"),
            is_mutable=True,
            where="%(user)s::text IS NULL",
        ),
    )

    class Meta:
        verbose_name = "version of an agent"
        verbose_name_plural = "versions of agents"
        constraints = [
            models.UniqueConstraint(fields=["agent_id", "number"], name="agent_version_number")
        ]

    def __str__(self) -> str:
        return gettext("version %(number)s of %(agent)s") % {
            "number": self.number,
            "agent": self.agent_id,
        }


class SavedQuestion(TenantModel):
    """A question that an agent is asked again after each change."""

    id = fields.random_id()
    agent_id = models.UUIDField("agent", help_text="The agent that is asked.")
    user_id = models.TextField(  # noqa: DJ001  (null: no single user; '' would be a user)
        "person", null=True, blank=True, help_text="The person who asks. Empty: none."
    )
    content = models.TextField("question", help_text="The message.")
    created_at = models.DateTimeField(db_default=Now(), help_text="When it was saved.")

    personal_data = rows_of_user(
        # Questions that name the person.
        also="content ~* ANY(%(names)s::text[])"
        " AND (%(agent)s::uuid IS NULL OR agent_id = %(agent)s)",
        export=Export(kind="saved_questions", position=25),
    )

    class Meta:
        verbose_name = "saved question"
        indexes = [models.Index(fields=["agent_id", "created_at"], name="saved_question_agent")]

    def __str__(self) -> str:
        return self.content[:60]


class QuestionAnswer(TenantModel):
    """An agent's answer to a saved question, by one version of the agent."""

    id = fields.random_id()
    question = models.ForeignKey(
        SavedQuestion,
        on_delete=models.CASCADE,
        related_name="answers",
        db_index=False,
        help_text="The question.",
    )
    agent_id = models.UUIDField("agent", help_text="The agent that answered.")
    user_id = models.TextField(  # noqa: DJ001  (null: no single user; '' would be a user)
        "person", null=True, blank=True, help_text="The person who asks. Empty: none."
    )
    version = models.PositiveIntegerField(
        help_text="Number of the agent's version. 0: before its first version."
    )
    content = fields.optional_text("answer", help_text="The answer; may be empty.")
    steps = fields.text_list(help_text="The decision and its reason.")
    problem = fields.optional_text(help_text="Why there is no answer.")
    message_ids = fields.id_list(
        help_text="The messages in the prompt: recalled ones and recent turns."
    )
    source_count = fields.count(help_text="Recalled messages and facts in the prompt.")
    created_at = models.DateTimeField(db_default=Now(), help_text="When it was answered.")

    # The answer quotes messages: it is deleted with any of them.
    personal_data = rows_of_user(
        derived="message_ids && %(ids)s::uuid[]",
        also="question_id IN (SELECT id FROM orchestrator_savedquestion WHERE "  # noqa: S608
        f"{SavedQuestion.personal_data.of_person})",
        # Another run replaces the answer of a version.
        export=Export(
            kind="question_answers", position=26, key=("question_id", "version"), is_mutable=True
        ),
    )

    class Meta:
        verbose_name = "answer to a saved question"
        verbose_name_plural = "answers to saved questions"
        constraints = [
            models.UniqueConstraint(fields=["question", "version"], name="question_answer_version")
        ]

    def __str__(self) -> str:
        return f"version {self.version}: {self.content[:60]}"
