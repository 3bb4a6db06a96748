"""Tables of fact extraction (how far conversations are processed, and runs), and of imports."""

from typing import Final, Self

from django.contrib.postgres.fields import ArrayField
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext

from memory.models import AgentUserModel, Message
from tenants import fields, jobs, transaction
from tenants.audit.models import ActorKind
from tenants.models import TenantModel, job_columns
from tenants.personal_data import OF_EVERY_PERSON, Export, Merge, PersonalData, rows_of_user

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

    personal_data = rows_of_user(merge=Merge(for_user=_MERGE_CURSORS))

    class Meta:
        verbose_name = "extraction"
        constraints = [
            models.UniqueConstraint(
                fields=["user_id", "agent_id", "thread_id"], name="extraction_cursor_thread"
            )
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
        constraints = [fields.one_of("state", RunState, "extraction_run_state")]
        indexes = [
            models.Index(fields=["-created_at", "id"], name="extraction_run_newest"),
            models.Index(fields=["user_id", "-created_at"], name="extraction_run_user"),
        ]

    def __str__(self) -> str:
        return gettext("%(count)s messages of %(user)s") % {
            "count": len(self.message_ids),
            "user": self.user_id,
        }


# Previews or imports a file, and deletes it after a day. The key is the id of the import.
HISTORY_IMPORTS: Final = jobs.JobKind(
    name="history_import",
    do="konstruct.orchestrator.history_import.importing.run",
    queue="extractions",
    max_attempts=3,
)


class HistoryImportQuerySet(models.QuerySet["HistoryImport"]):
    """Imports of the tenant."""

    def remove(self) -> None:
        """Delete imports with their jobs. The jobs are first, as in a batch of an import."""
        with transaction.atomic():
            keys = list(self.values_list("pk", flat=True))
            HISTORY_IMPORTS.finish_many(keys)
            HistoryImport.objects.filter(pk__in=keys).delete()


class HistoryImport(TenantModel):
    """A file with history of another system: its options, its preview and its import.

    Each erasure removes all of them, because a file may hold data of the person.
    """

    id = fields.random_id()
    created_at = models.DateTimeField(db_default=Now(), help_text="When the file was sent.")
    file_name = models.TextField("file", help_text="Name of the file.")
    content = models.BinaryField(help_text="The file, until it is imported.")
    options = fields.json_object(help_text="How it is read, and who is who in it.")
    is_dry_run = fields.flag("preview", default=False, help_text="Whether nothing is stored.")
    requested_by = models.TextField(help_text="Name of the person or the API key.")
    actor_kind = models.TextField(choices=ActorKind, editable=False, help_text="Kind of the actor.")
    actor_id = models.TextField(editable=False, help_text="Id of the actor.")
    report = models.JSONField(
        null=True,
        blank=True,
        encoder=DjangoJSONEncoder,
        help_text="Conversations, authors, and what is left out.",
    )
    finished_at = fields.optional_time(help_text="When the preview or the import ended.")
    error = fields.optional_text(help_text="Why it failed.")

    unlogged_fields = frozenset({"content", "options", "report", "error"})

    objects = HistoryImportQuerySet.as_manager()

    personal_data = PersonalData(where=OF_EVERY_PERSON)

    class Meta:
        verbose_name = "history import"

    def __str__(self) -> str:
        return self.file_name

    @property
    def state(self) -> str:
        """One of waiting, previewed, imported and failed."""
        if self.finished_at is None:
            return "waiting"
        return "failed" if self.error else "previewed" if self.is_dry_run else "imported"
