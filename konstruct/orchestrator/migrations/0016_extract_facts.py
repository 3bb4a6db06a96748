"""Facts are extracted from conversations: settings of agents, runs, and a meter of calls."""

import uuid

import django.contrib.postgres.fields
import django.contrib.postgres.functions
import django.db.models.functions.datetime
from django.db import migrations, models

import tenants.postgresql.expressions
from tenants.operations.comments import CommentOnTables
from tenants.operations.policies import ForceRowLevelSecurity, GrantToApp


class Migration(migrations.Migration):
    dependencies = [
        ("orchestrator", "0015_word_note_of_escalations"),
    ]

    operations = [
        migrations.CreateModel(
            name="ExtractionCursor",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(
                        db_default=tenants.postgresql.expressions.CurrentTenant(), editable=False
                    ),
                ),
                (
                    "agent_id",
                    models.UUIDField(
                        help_text="The agent whose memory this is.", verbose_name="agent"
                    ),
                ),
                (
                    "user_id",
                    models.TextField(
                        help_text="The user as the channel knows them, such as a Slack user id.",
                        verbose_name="user",
                    ),
                ),
                (
                    "id",
                    models.UUIDField(
                        db_default=django.contrib.postgres.functions.RandomUUID(),
                        default=uuid.uuid4,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "thread_id",
                    models.TextField(help_text="The conversation.", verbose_name="thread"),
                ),
                (
                    "last_number",
                    models.BigIntegerField(
                        db_default=0,
                        default=0,
                        help_text="Number of the last message that was processed.",
                    ),
                ),
                (
                    "processed_at",
                    models.DateTimeField(
                        blank=True, help_text="When the last run ended.", null=True
                    ),
                ),
            ],
            options={
                "verbose_name": "extraction cursor",
            },
        ),
        migrations.CreateModel(
            name="ExtractionRun",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(
                        db_default=tenants.postgresql.expressions.CurrentTenant(), editable=False
                    ),
                ),
                (
                    "agent_id",
                    models.UUIDField(
                        help_text="The agent whose memory this is.", verbose_name="agent"
                    ),
                ),
                (
                    "user_id",
                    models.TextField(
                        help_text="The user as the channel knows them, such as a Slack user id.",
                        verbose_name="user",
                    ),
                ),
                (
                    "id",
                    models.UUIDField(
                        db_default=django.contrib.postgres.functions.RandomUUID(),
                        default=uuid.uuid4,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "thread_id",
                    models.TextField(help_text="The conversation.", verbose_name="thread"),
                ),
                (
                    "state",
                    models.TextField(
                        choices=[
                            ("running", "running"),
                            ("preview", "preview"),
                            ("applied", "applied"),
                            ("failed", "failed"),
                            ("rolled_back", "rolled back"),
                        ],
                        db_default="running",
                        default="running",
                        help_text="A preview changes no facts.",
                    ),
                ),
                (
                    "message_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.UUIDField(),
                        help_text="The messages that were processed, in their order.",
                        size=None,
                    ),
                ),
                (
                    "replay_of",
                    models.UUIDField(
                        blank=True,
                        help_text="The run of which this one repeats the input.",
                        null=True,
                    ),
                ),
                (
                    "requested_by",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Who asked for it. Empty: the platform.",
                    ),
                ),
                (
                    "model",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The language model. Empty: the rules.",
                    ),
                ),
                (
                    "endpoint",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Address of the language model.",
                    ),
                ),
                (
                    "response_format",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="json_schema, json_object or text: what the endpoint supports.",
                    ),
                ),
                (
                    "prompt_digest",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="SHA-256 of the instructions.",
                    ),
                ),
                (
                    "output",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The answer of the model, verbatim.",
                    ),
                ),
                (
                    "prompt_tokens",
                    models.PositiveIntegerField(db_default=0, default=0, help_text="Tokens sent."),
                ),
                (
                    "completion_tokens",
                    models.PositiveIntegerField(
                        db_default=0, default=0, help_text="Tokens received."
                    ),
                ),
                (
                    "cost",
                    models.DecimalField(
                        db_default=0,
                        decimal_places=6,
                        default=0,
                        help_text="By LLM_PRICE_….",
                        max_digits=12,
                    ),
                ),
                (
                    "result",
                    models.JSONField(
                        db_default=models.Value({}, output_field=models.JSONField()),
                        default=dict,
                        help_text="Counts: proposed, active, confirmed, superseded, and refused"
                        " by reason.",
                    ),
                ),
                (
                    "candidates",
                    models.JSONField(
                        db_default=models.Value([], output_field=models.JSONField()),
                        default=list,
                        help_text="Each candidate with its outcome and the fact that it led to.",
                    ),
                ),
                (
                    "error",
                    models.TextField(
                        blank=True, db_default="", default="", help_text="Why it failed."
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        help_text="When it began.",
                    ),
                ),
                (
                    "ended_at",
                    models.DateTimeField(blank=True, help_text="When it ended.", null=True),
                ),
            ],
            options={
                "verbose_name": "extraction run",
            },
        ),
        migrations.CreateModel(
            name="ModelCall",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(
                        db_default=tenants.postgresql.expressions.CurrentTenant(), editable=False
                    ),
                ),
                (
                    "id",
                    models.UUIDField(
                        db_default=django.contrib.postgres.functions.RandomUUID(),
                        default=uuid.uuid4,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "agent_id",
                    models.UUIDField(
                        blank=True, help_text="The agent.", null=True, verbose_name="agent"
                    ),
                ),
                (
                    "purpose",
                    models.TextField(help_text="What the call is for, such as extraction."),
                ),
                (
                    "model",
                    models.TextField(blank=True, default="", help_text="The language model."),
                ),
                (
                    "outcome",
                    models.TextField(
                        blank=True,
                        choices=[("", "unknown"), ("done", "done"), ("failed", "failed")],
                        db_default="",
                        default="",
                        help_text="Empty: the process ended before the answer came.",
                    ),
                ),
                (
                    "prompt_tokens",
                    models.PositiveIntegerField(db_default=0, default=0, help_text="Tokens sent."),
                ),
                (
                    "completion_tokens",
                    models.PositiveIntegerField(
                        db_default=0, default=0, help_text="Tokens received."
                    ),
                ),
                (
                    "cost",
                    models.DecimalField(
                        db_default=0,
                        decimal_places=6,
                        default=0,
                        help_text="By LLM_PRICE_….",
                        max_digits=12,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        help_text="When it was sent.",
                    ),
                ),
            ],
            options={
                "verbose_name": "call of a language model",
                "verbose_name_plural": "calls of language models",
            },
        ),
        migrations.AddField(
            model_name="agent",
            name="extraction_batch_size",
            field=models.PositiveSmallIntegerField(
                db_default=40,
                default=40,
                help_text="Messages that one request to the language model covers at most, 1 to"
                " 200. A conversation with so many new messages is not waited for.",
            ),
        ),
        migrations.AddField(
            model_name="agent",
            name="extraction_idle_seconds",
            field=models.PositiveIntegerField(
                db_default=600,
                default=600,
                help_text="A conversation is quiet after so many seconds without a message.",
            ),
        ),
        migrations.AddField(
            model_name="agent",
            name="extraction_max_tokens_per_day",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="Tokens that extraction may use for this agent on a day (UTC). Blank:"
                " no limit.",
                null=True,
                verbose_name="most tokens for facts a day",
            ),
        ),
        migrations.AddField(
            model_name="agent",
            name="extraction_model",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Model that extracts facts. Blank: the agent's model.",
                max_length=200,
            ),
        ),
        migrations.AddField(
            model_name="agent",
            name="extracts_facts",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Extract facts from conversations when they are quiet, with a "
                "language model, or by a few rules if there is none.",
                verbose_name="extracts facts",
            ),
        ),
        migrations.AddField(
            model_name="agent",
            name="fact_review",
            field=models.CharField(
                choices=[
                    ("none", "none: use all facts at once"),
                    (
                        "doubtful",
                        "doubtful: conflicts, conclusions, sensitive topics, low confidence",
                    ),
                    ("all", "all"),
                ],
                db_default="doubtful",
                default="doubtful",
                help_text="Which extracted facts a person confirms before agents use them.",
                max_length=20,
                verbose_name="review of facts",
            ),
        ),
        migrations.AddField(
            model_name="agent",
            name="fact_review_by_slot",
            field=models.JSONField(
                blank=True,
                db_default=models.Value({}, output_field=models.JSONField()),
                default=dict,
                help_text='Other rules for single slots, such as {"diet": "all", "hobby": "none"}.',
                verbose_name="review by slot",
            ),
        ),
        migrations.AddConstraint(
            model_name="agent",
            constraint=models.CheckConstraint(
                condition=models.Q(("fact_review__in", ["none", "doubtful", "all"])),
                name="agent_fact_review",
            ),
        ),
        migrations.AddConstraint(
            model_name="agent",
            constraint=models.CheckConstraint(
                condition=models.Q(("extraction_batch_size__range", (1, 200))),
                name="agent_extraction_batch_size",
                violation_error_message="extraction_batch_size: Give 1 to 200.",
            ),
        ),
        migrations.AddConstraint(
            model_name="extractioncursor",
            constraint=models.UniqueConstraint(
                fields=("user_id", "agent_id", "thread_id"), name="extraction_cursor_thread"
            ),
        ),
        migrations.AddIndex(
            model_name="extractionrun",
            index=models.Index(fields=["-created_at", "id"], name="extraction_run_newest"),
        ),
        migrations.AddIndex(
            model_name="extractionrun",
            index=models.Index(fields=["user_id", "-created_at"], name="extraction_run_user"),
        ),
        migrations.AddConstraint(
            model_name="extractionrun",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("state__in", ["running", "preview", "applied", "failed", "rolled_back"])
                ),
                name="extraction_run_state",
            ),
        ),
        migrations.AddIndex(
            model_name="modelcall",
            index=models.Index(
                fields=["created_at", "agent_id"], include=("tenant_id",), name="model_call_time"
            ),
        ),
        migrations.AddConstraint(
            model_name="modelcall",
            constraint=models.CheckConstraint(
                condition=models.Q(("outcome__in", ["", "done", "failed"])),
                name="model_call_outcome",
            ),
        ),
        ForceRowLevelSecurity("orchestrator_extractioncursor"),
        GrantToApp("orchestrator_extractioncursor", "INSERT", "UPDATE", "DELETE"),
        ForceRowLevelSecurity("orchestrator_extractionrun"),
        GrantToApp("orchestrator_extractionrun", "INSERT", "UPDATE"),
        ForceRowLevelSecurity("orchestrator_modelcall"),
        GrantToApp("orchestrator_modelcall", "INSERT", "UPDATE"),
        CommentOnTables(
            {
                "Agent": "An AI agent of a tenant: who it is, which model speaks for it, and how"
                " it remembers.",
                "ExtractionCursor": "Up to which message facts were extracted from a conversation.",
                "ExtractionRun": "One request for the facts of a part of a conversation, with its"
                " answer and its result.",
                "ModelCall": "A request to a language model, recorded before it is sent: the meter"
                " of tokens and money.",
            }
        ),
    ]
