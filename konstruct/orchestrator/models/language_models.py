"""Tables of a tenant's language models and rerankers, of calls of models, and of counts by day."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core import validators
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext

from memory.models import Message
from tenants import fields
from tenants.models import TenantModel
from tenants.personal_data import NoPersonalData


class ModelKind(models.TextChoices):
    """What a model is for."""

    LANGUAGE_MODEL = "language_model", "language model: answers and extracts facts"
    RERANKER = "reranker", "reranker: sorts recalled memories"


class LanguageModel(TenantModel):
    """A language model of the tenant: its server, key, prices and limits."""

    id = fields.random_id()
    name = models.CharField(
        max_length=120,
        validators=[
            validators.ProhibitNullCharactersValidator(),
            validators.RegexValidator(r"^\S(.*\S)?$"),
        ],
        help_text="The name by which agents refer to it. Unique in the tenant.",
    )
    kind = fields.choice(
        ModelKind.LANGUAGE_MODEL,
        help_text="A reranker sorts the memories of agents that name it. Its server is asked at "
        "/rerank below the address.",
    )
    endpoint = fields.optional_char(
        "address",
        max_length=2000,
        help_text="Address of an OpenAI-compatible server, such as https://api.example.com/v1, or "
        "of a pool. Blank: the deployment's server, with its key and its prices.",
    )
    secret_key = fields.optional_text(editable=False, help_text="The key, encrypted.")
    model = fields.optional_char(
        max_length=200,
        validators=[validators.ProhibitNullCharactersValidator()],
        help_text="Name of the model for the server. Blank: the agent's model, or else its tier.",
    )
    prompt_price = fields.money(
        max_digits=12,
        validators=[validators.MinValueValidator(0)],
        help_text="Price of a million input tokens.",
    )
    completion_price = fields.money(
        max_digits=12,
        validators=[validators.MinValueValidator(0)],
        help_text="Price of a million output tokens.",
    )
    timeout_seconds = fields.optional_number(
        help_text="Seconds for an answer, at most the deployment's LLM_TIMEOUT. A model that has a "
        "next one gets at most half of the time that is left. Blank: LLM_TIMEOUT."
    )
    max_tokens_per_day = fields.optional_number(
        "maximum tokens a day",
        help_text="After this many tokens of a day (UTC) the next model is called. Blank: no "
        "limit.",
    )
    position = fields.optional_small_number(
        help_text="Place among the models of agents without own ones, lowest first. Blank: it is "
        "only for agents that name it."
    )
    min_score = models.FloatField(
        "minimum score",
        null=True,
        blank=True,
        help_text="Of a reranker: memories with a lower score are left out. Blank: none are.",
    )
    is_active = fields.flag("active", default=True, help_text="Whether it is called.")
    created_at = models.DateTimeField(
        db_default=Now(), editable=False, help_text="Time of creation."
    )

    personal_data = NoPersonalData("addresses and keys of the tenant's language models")

    class Meta:
        verbose_name = "language model"
        ordering = ["position", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["name"],
                name="language_model_name",
                violation_error_message="This tenant has a language model of that name already.",
            ),
            models.CheckConstraint(
                condition=models.Q(kind=ModelKind.LANGUAGE_MODEL)
                | (models.Q(kind=ModelKind.RERANKER, position=None) & ~models.Q(endpoint="")),
                name="language_model_kind",
                violation_error_message="A reranker has an address and no position.",
            ),
            models.CheckConstraint(
                condition=models.Q(timeout_seconds__gt=0) | models.Q(timeout_seconds=None),
                name="language_model_timeout",
                violation_error_message="timeout_seconds: Give 1 or more, or leave it out.",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Raise ValidationError for an address that no request is sent to, or a long timeout."""
        from konstruct.outgoing import AddressRefused, check_url  # httpx

        if (self.timeout_seconds or 0) > settings.LLM_TIMEOUT:
            raise ValidationError(
                {"timeout_seconds": f"Give at most {settings.LLM_TIMEOUT} (LLM_TIMEOUT)."}
            )
        if not self.endpoint:
            if not settings.LLM_POOL_URL:
                raise ValidationError({"endpoint": "This deployment has no server of its own."})
            return
        try:
            check_url(self.endpoint)
        except AddressRefused as error:
            raise ValidationError({"endpoint": str(error)}) from error
        if "?" in self.endpoint:
            raise ValidationError({"endpoint": "An address with a query is refused."})


class CallOutcome(models.TextChoices):
    """The outcome of a call of a language model. Empty: unknown, the caller did not come back."""

    UNKNOWN = "", "unknown"
    DONE = "done", "done"
    FAILED = "failed", "failed"


class ModelCall(TenantModel):
    """A request to a language model, recorded before it is sent: the meter of tokens and money."""

    id = fields.random_id()
    agent_id = fields.optional_id("agent", help_text="The agent.")
    agent_version = fields.optional_number(
        help_text="Number of the agent's version that answered. Empty: it has none, or no reply "
        "was asked for."
    )
    message = models.ForeignKey(
        Message,
        # Postgres sets it to NULL when the message is erased: the call stays in the meter.
        on_delete=models.DO_NOTHING,
        null=True,
        blank=True,
        db_constraint=False,
        db_index=False,
        related_name="model_calls",
        help_text="The message that the call answers. Empty: none, or it was erased.",
    )
    purpose = models.TextField(help_text="Purpose of the call, such as reply or extraction.")
    model = fields.optional_text(help_text="The language model.")
    language_model = fields.optional_text(
        help_text="Name of the tenant's language model. Empty: the deployment's."
    )
    endpoint = fields.optional_text(help_text="Host and port of the language model's server.")
    requests = models.PositiveSmallIntegerField(
        default=1,
        db_default=1,
        help_text="HTTP requests that were sent: a failed one is repeated up to twice.",
    )
    outcome = fields.choice(
        CallOutcome.UNKNOWN,
        blank=True,
        help_text="Empty: the process ended before the answer came.",
    )
    error = fields.optional_text("reason", help_text="The reason of a failure.")
    prompt_tokens = fields.count(help_text="Tokens sent.")
    completion_tokens = fields.count(help_text="Tokens received.")
    prompt_price = fields.money(max_digits=12, help_text="Price of a million tokens sent.")
    completion_price = fields.money(max_digits=12, help_text="Price of a million tokens received.")
    cost = fields.money(max_digits=12, help_text="Cost of the tokens, by these prices.")
    created_at = models.DateTimeField(db_default=Now(), help_text="When it was sent.")

    personal_data = NoPersonalData("counts of tokens by agent, without a user or a text")

    class Meta:
        verbose_name = "call of a language model"
        verbose_name_plural = "calls of language models"
        constraints = [fields.one_of("outcome", CallOutcome, "model_call_outcome")]
        indexes = [
            models.Index(
                fields=["created_at", "agent_id"], include=["tenant_id"], name="model_call_time"
            ),
            models.Index(
                fields=["created_at"], condition=models.Q(outcome=""), name="model_call_unknown"
            ),
            models.Index(
                fields=["message", "created_at"],
                condition=models.Q(message__isnull=False),
                name="model_call_of_message",
            ),
        ]

    def __str__(self) -> str:
        return f"{gettext(self.purpose)}, {self.created_at:%Y-%m-%d %H:%M %Z}"


class DailyUsage(TenantModel):
    """Counts of one day (UTC).

    Nothing is subtracted: an erasure removes messages, and not that they were accepted. A call of a
    language model is counted when its outcome is known.
    """

    day = models.DateField(primary_key=True, help_text="The day (UTC).")
    messages = fields.big_count(help_text="Messages of users that were accepted.")
    replies = fields.big_count(help_text="Replies of agents that were written.")
    memories = fields.big_count(help_text="Messages, replies, imported turns and facts, together.")
    calls = fields.big_count(help_text="Calls of language models with a known outcome.")
    failed = fields.big_count(help_text="Calls of language models that failed.")
    prompt_tokens = fields.big_count(help_text="Tokens sent.")
    completion_tokens = fields.big_count(help_text="Tokens received.")
    cost = fields.money(
        max_digits=18, help_text="Cost, by the prices of the language models at that time."
    )

    personal_data = NoPersonalData("counts by day, without a user or a text")

    class Meta:
        verbose_name = "usage by day"
        verbose_name_plural = "usage by day"

    def __str__(self) -> str:
        return str(self.day)


class DailyActivity(TenantModel):
    """Counts of one ended day (UTC), agent and channel.

    A day that was counted also has a row without an agent, with zeros.
    """

    id = fields.random_id()
    day = models.DateField(help_text="The day (UTC).")
    agent_id = fields.optional_id("agent", help_text="The agent.")
    channel = fields.optional_text(help_text="The channel.")
    messages = fields.count(help_text="Users' messages.")
    replies = fields.count(help_text="Replies of agents that have a recall event.")
    from_facts = fields.count(help_text="Replies with facts in their prompt.")
    from_memories = fields.count(help_text="Replies with recalled messages and without facts.")
    from_turns = fields.count(help_text="Replies with recent turns alone.")
    from_nothing = fields.count(help_text="Replies without any of them.")
    prompt_tokens = fields.big_count(help_text="Tokens sent, as the language model reported them.")
    completion_tokens = fields.big_count(
        help_text="Tokens received, as the language model reported them."
    )
    reply_times = ArrayField(
        models.PositiveIntegerField(),
        default=list,
        db_default=models.Value([], output_field=ArrayField(models.PositiveIntegerField())),
        help_text="Numbers of replies by their time: activity.py has the limits.",
    )

    personal_data = NoPersonalData("counts by day, agent and channel, without a user or a text")

    class Meta:
        verbose_name = "daily activity"
        verbose_name_plural = "daily activity"
        constraints = [
            models.UniqueConstraint(
                fields=["day", "agent_id", "channel"],
                nulls_distinct=False,
                name="daily_activity_day",
            )
        ]

    def __str__(self) -> str:
        return f"{self.day}"
