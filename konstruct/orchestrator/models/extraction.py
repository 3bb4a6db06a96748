"""Tables of fact extraction: how far conversations are processed, runs, and calls of models."""

from typing import Final, Self

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext

from memory.models import AgentUserModel, Message
from tenants import fields
from tenants.models import TenantModel, job_columns
from tenants.personal_data import Export, Merge, NoPersonalData, rows_of_user

# The common conversation of merged users is processed from the earlier of the two positions:
# messages that are processed twice change nothing, and none is skipped.
_MERGE_CURSORS: Final = (
    """
    UPDATE orchestrator_extractioncursor AS kept
    SET last_number = least(kept.last_number, moved.last_number)
    FROM orchestrator_extractioncursor AS moved
    WHERE moved.user_id = %(from)s
      AND (kept.agent_id, kept.user_id, kept.thread_id)
        = (moved.agent_id, %(to)s, moved.thread_id)
    """,
    """
    DELETE FROM orchestrator_extractioncursor AS moved WHERE user_id = %(from)s AND EXISTS (
        SELECT FROM orchestrator_extractioncursor AS other
        WHERE (other.agent_id, other.user_id, other.thread_id)
            = (moved.agent_id, %(to)s, moved.thread_id)
    )
    """,
    "UPDATE orchestrator_extractioncursor SET user_id = %(to)s WHERE user_id = %(from)s",
)


class ExtractionCursorQuerySet(models.QuerySet):
    """Cursors of conversations."""

    def behind(self) -> Self:
        """Cursors of conversations with messages that are still to be processed."""
        later = Message.objects.filter(
            agent_id=models.OuterRef("agent_id"),
            user_id=models.OuterRef("user_id"),
            thread_id=models.OuterRef("thread_id"),
            number__gt=models.OuterRef("last_number"),
        )
        return self.filter(models.Exists(later))

    def with_jobs(self) -> Self:
        """Annotate each cursor with the columns of its job; None for processed ones."""
        return self.annotate(**job_columns("extraction", models.OuterRef("pk")))


class ExtractionCursor(AgentUserModel):
    """The last message of a conversation from which facts were extracted.

    The job of the kind "extraction" has its id as a key.
    """

    id = fields.random_id()
    thread_id = models.TextField("thread", help_text="The conversation.")
    last_number = models.BigIntegerField(
        default=0, db_default=0, help_text="Number of the last message that was processed."
    )
    processed_at = fields.optional_time(help_text="When the last run ended.")

    objects = ExtractionCursorQuerySet.as_manager()

    personal_data = rows_of_user(
        merge=Merge(for_user=_MERGE_CURSORS),
    )

    class Meta:
        verbose_name = "extraction"
        constraints = [
            models.UniqueConstraint(
                fields=["user_id", "agent_id", "thread_id"], name="extraction_cursor_thread"
            ),
        ]

    def __str__(self) -> str:
        return gettext("%(user)s with %(agent)s, up to message %(number)s") % {
            "user": self.user_id,
            "agent": self.agent_id,
            "number": self.last_number,
        }


class RunState(models.TextChoices):
    """The state of an extraction run."""

    RUNNING = "running", "running"
    PREVIEW = "preview", "preview"
    APPLIED = "applied", "applied"
    FAILED = "failed", "failed"
    ROLLED_BACK = "rolled_back", "rolled back"


class ExtractionRun(AgentUserModel):
    """One request for the facts of a part of a conversation, with its answer and its result."""

    id = fields.random_id()
    thread_id = models.TextField("thread", help_text="The conversation.")
    state = fields.choice(RunState.RUNNING, help_text="A preview changes no facts.")
    message_ids = ArrayField(
        models.UUIDField(), help_text="The messages that were processed, in their order."
    )
    replay_of = fields.optional_id(help_text="The run that this one replays.")
    requested_by = fields.optional_text(
        help_text="The person or key that requested it. Empty: the platform."
    )
    model = fields.optional_text(help_text="The language model.")
    endpoint = fields.optional_text(help_text="Host and port of the language model's server.")
    response_format = fields.optional_text(
        help_text="json_schema, json_object or text: what the endpoint supports."
    )
    prompt_digest = fields.optional_text(help_text="SHA-256 of the instructions.")
    output = fields.optional_text(help_text="The answer of the model, verbatim.")
    prompt_tokens = fields.count(help_text="Tokens sent.")
    completion_tokens = fields.count(help_text="Tokens received.")
    cost = fields.money(
        max_digits=12, help_text="Cost, by the prices of the language models at that time."
    )
    result = fields.json_object(
        help_text="Counts: proposed, active, confirmed, superseded, and refused by reason."
    )
    candidates = fields.json_list(
        help_text="Each candidate with its outcome and the fact that it led to."
    )
    error = fields.optional_text(help_text="Why it failed.")
    created_at = models.DateTimeField(db_default=Now(), help_text="Time of the first message.")
    ended_at = fields.optional_time(help_text="When it ended.")

    # The access log outlives messages, which these fields quote.
    unlogged_fields = frozenset({"output", "candidates", "error"})
    # The answer quotes messages: the run is deleted with any of them.
    personal_data = rows_of_user(
        derived="user_id IN (SELECT user_id FROM memory_message WHERE id = ANY(%(ids)s))"
        " AND message_ids && %(ids)s::uuid[]",
        merge=Merge(
            for_user=(
                "UPDATE orchestrator_extractionrun SET user_id = %(to)s WHERE user_id = %(from)s",
            )
        ),
        export=Export(kind="extraction_runs", position=20, is_mutable=True),
    )

    class Meta:
        verbose_name = "extraction run"
        constraints = [
            fields.one_of("state", RunState, "extraction_run_state"),
        ]
        indexes = [
            models.Index(fields=["-created_at", "id"], name="extraction_run_newest"),
            models.Index(fields=["user_id", "-created_at"], name="extraction_run_user"),
        ]

    def __str__(self) -> str:
        return gettext("%(count)s messages of %(user)s") % {
            "count": len(self.message_ids),
            "user": self.user_id,
        }


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
    model = models.TextField(blank=True, default="", help_text="The language model.")
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
        constraints = [
            fields.one_of("outcome", CallOutcome, "model_call_outcome"),
        ]
        indexes = [
            models.Index(
                fields=["created_at", "agent_id"], include=["tenant_id"], name="model_call_time"
            ),
            models.Index(
                fields=["created_at"],
                condition=models.Q(outcome=""),
                name="model_call_unknown",
            ),
            models.Index(
                fields=["message", "created_at"],
                condition=models.Q(message__isnull=False),
                name="model_call_of_message",
            ),
        ]

    def __str__(self) -> str:
        return f"{gettext(self.purpose)}, {self.created_at:%Y-%m-%d %H:%M %Z}"
