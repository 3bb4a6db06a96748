"""Exclusions of messages, and of words of messages, from recall."""

import uuid

import django.contrib.postgres.functions
import django.db.models.deletion
from django.db import migrations, models

import tenants.postgresql.expressions
from tenants.operations.comments import CommentOnTables
from tenants.operations.policies import ForceRowLevelSecurity, GrantToApp


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0028_review_facts"),
    ]

    operations = [
        migrations.CreateModel(
            name="RecallExclusion",
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
                    "start",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="First character of the excluded words. Empty: the whole message"
                        " is excluded.",
                        null=True,
                    ),
                ),
                (
                    "end",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Position after the last character of the excluded words.",
                        null=True,
                    ),
                ),
                (
                    "memory_id",
                    models.UUIDField(
                        blank=True,
                        help_text="The corrected fact, or its old version. Empty: the message was"
                        " excluded by itself.",
                        null=True,
                        verbose_name="corrected fact",
                    ),
                ),
                (
                    "reason",
                    models.TextField(blank=True, default="", help_text="The author's reason."),
                ),
                (
                    "author_kind",
                    models.TextField(
                        choices=[
                            ("person", "person"),
                            ("program", "program with an API key"),
                            ("operator", "operator's command"),
                            ("run", "extraction run"),
                            ("system", "the platform"),
                        ],
                        help_text="The kind of the author.",
                    ),
                ),
                (
                    "author_id",
                    models.TextField(
                        blank=True,
                        default="",
                        help_text="Id of the person, the API key or the extraction run.",
                    ),
                ),
                (
                    "author_name",
                    models.TextField(blank=True, default="", help_text="Name of the author."),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=models.Func(
                            function="clock_timestamp", output_field=models.DateTimeField()
                        ),
                        help_text="When it was excluded.",
                    ),
                ),
                (
                    "message",
                    models.ForeignKey(
                        db_index=False,
                        help_text="The message.",
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="recall_exclusions",
                        to="memory.message",
                    ),
                ),
            ],
            options={
                "verbose_name": "recall exclusion",
                "indexes": [
                    models.Index(fields=["agent_id", "user_id"], name="recall_exclusion_scope"),
                    models.Index(
                        condition=models.Q(("memory_id__isnull", False)),
                        fields=["memory_id"],
                        name="recall_exclusion_fact",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("message", "memory_id", "start", "end"),
                        name="recall_exclusion_words",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("end__isnull", True), ("start__isnull", True)),
                            models.Q(("end__gt", models.F("start")), ("start__isnull", False)),
                            _connector="OR",
                        ),
                        name="recall_exclusion_end",
                    ),
                ],
            },
        ),
        ForceRowLevelSecurity("memory_recallexclusion"),
        GrantToApp("memory_recallexclusion", "INSERT", "DELETE"),
        CommentOnTables(
            {
                "RecallExclusion": "A message, or some words of it, that recall leaves out until"
                " the exclusion is removed."
            }
        ),
    ]
