"""Usage is counted by day, calls have their requests, and quotas are notified."""

import uuid

import django.contrib.postgres.fields
import django.contrib.postgres.functions
from django.db import migrations, models

import tenants.postgresql.expressions
from tenants.operations.comments import CommentOnTables
from tenants.operations.policies import ForceRowLevelSecurity, GrantToApp


class Migration(migrations.Migration):
    dependencies = [
        ("orchestrator", "0024_save_questions"),
    ]

    operations = [
        migrations.CreateModel(
            name="DailyUsage",
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
                ("day", models.DateField(help_text="The day (UTC).")),
                (
                    "agent_id",
                    models.UUIDField(
                        blank=True,
                        help_text="The agent of calls of language models.",
                        null=True,
                        verbose_name="agent",
                    ),
                ),
                (
                    "purpose",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Of the calls, such as reply.",
                    ),
                ),
                (
                    "model",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The language model that was called.",
                    ),
                ),
                (
                    "slot",
                    models.PositiveSmallIntegerField(
                        db_default=0, default=0, help_text="Which of the rows that are added up."
                    ),
                ),
                (
                    "messages",
                    models.PositiveBigIntegerField(
                        db_default=0, default=0, help_text="Messages of users that were accepted."
                    ),
                ),
                (
                    "replies",
                    models.PositiveBigIntegerField(
                        db_default=0, default=0, help_text="Replies of agents that were written."
                    ),
                ),
                (
                    "memories",
                    models.PositiveBigIntegerField(
                        db_default=0,
                        default=0,
                        help_text="Messages, replies, imported turns and facts, together.",
                    ),
                ),
                (
                    "calls",
                    models.PositiveBigIntegerField(
                        db_default=0,
                        default=0,
                        help_text="Calls of language models with a known outcome.",
                    ),
                ),
                (
                    "failed",
                    models.PositiveBigIntegerField(
                        db_default=0, default=0, help_text="Calls of language models that failed."
                    ),
                ),
                (
                    "prompt_tokens",
                    models.PositiveBigIntegerField(
                        db_default=0, default=0, help_text="Tokens sent."
                    ),
                ),
                (
                    "completion_tokens",
                    models.PositiveBigIntegerField(
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
                        max_digits=18,
                    ),
                ),
            ],
            options={
                "verbose_name": "usage by day",
                "verbose_name_plural": "usage by day",
            },
        ),
        migrations.AddField(
            model_name="modelcall",
            name="requests",
            field=models.PositiveSmallIntegerField(
                db_default=1,
                default=1,
                help_text="HTTP requests that were sent: a failed one is repeated up to twice.",
            ),
        ),
        migrations.AlterField(
            model_name="modelcall",
            name="purpose",
            field=models.TextField(help_text="What the call is for, such as reply or extraction."),
        ),
        migrations.AlterField(
            model_name="notification",
            name="event",
            field=models.TextField(
                choices=[
                    ("escalation_opened", "A user waits for a person"),
                    ("escalation_waits", "A user waits too long for a person"),
                    ("consent_waits", "A tool call waits too long for the user's consent"),
                    ("job_failed", "A reply, delivery or other job failed for good"),
                    ("erasure_due", "An erasure was requested and is not done"),
                    ("review_queue", "Many proposed facts wait for a review"),
                    ("quota_reached", "A quota is reached, or nearly"),
                ],
                help_text="Of what.",
            ),
        ),
        migrations.AlterField(
            model_name="notificationrecipient",
            name="events",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.TextField(
                    choices=[
                        ("escalation_opened", "A user waits for a person"),
                        ("escalation_waits", "A user waits too long for a person"),
                        ("consent_waits", "A tool call waits too long for the user's consent"),
                        ("job_failed", "A reply, delivery or other job failed for good"),
                        ("erasure_due", "An erasure was requested and is not done"),
                        ("review_queue", "Many proposed facts wait for a review"),
                        ("quota_reached", "A quota is reached, or nearly"),
                    ]
                ),
                help_text="What is notified.",
                size=None,
            ),
        ),
        migrations.AddConstraint(
            model_name="dailyusage",
            constraint=models.UniqueConstraint(
                fields=("day", "agent_id", "purpose", "model", "slot"),
                name="daily_usage_slot",
                nulls_distinct=False,
            ),
        ),
        ForceRowLevelSecurity("orchestrator_dailyusage"),
        GrantToApp("orchestrator_dailyusage", "INSERT", "UPDATE", "DELETE"),
        CommentOnTables(
            {
                "DailyUsage": "What was used on a day: messages, memories, calls, tokens, money.",
                "ModelCall": "A request to a language model, recorded before it is sent.",
            }
        ),
    ]
