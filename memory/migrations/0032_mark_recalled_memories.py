"""Marks of reviewers on recalled memories."""

import uuid

import django.contrib.postgres.functions
import django.db.models.deletion
from django.db import migrations, models

import tenants.postgresql.expressions
from tenants.operations.comments import CommentOnTables
from tenants.operations.policies import ForceRowLevelSecurity, GrantToApp


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0031_index_postings_by_word"),
    ]

    operations = [
        migrations.CreateModel(
            name="RecallMark",
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
                    "relevance",
                    models.TextField(
                        choices=[
                            ("relevant", "Relevant"),
                            ("not_relevant", "Not relevant"),
                            ("unsure", "Unsure"),
                        ],
                        help_text="The reviewer's opinion.",
                    ),
                ),
                (
                    "probability",
                    models.FloatField(
                        help_text="Probability that the memory is relevant by the product's own"
                        " calibration."
                    ),
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
                        blank=True, default="", help_text="Id of the person or the API key."
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
                        help_text="When it was marked.",
                    ),
                ),
                (
                    "message",
                    models.ForeignKey(
                        help_text="The memory.",
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="marks_as_memory",
                        to="memory.message",
                    ),
                ),
                (
                    "reply",
                    models.ForeignKey(
                        db_index=False,
                        help_text="The reply that the memory was recalled for.",
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="recall_marks",
                        to="memory.message",
                    ),
                ),
            ],
            options={
                "verbose_name": "recall mark",
                "indexes": [
                    models.Index(fields=["agent_id", "user_id"], name="recall_mark_scope"),
                    models.Index(fields=["-created_at", "id"], name="recall_mark_newest"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("reply", "message"), name="recall_mark_memory"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("relevance__in", ["relevant", "not_relevant", "unsure"])
                        ),
                        name="recall_mark_relevance",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("probability__gte", 0), ("probability__lte", 1)),
                        name="recall_mark_probability",
                    ),
                ],
            },
        ),
        ForceRowLevelSecurity("memory_recallmark"),
        GrantToApp("memory_recallmark", "INSERT", "UPDATE", "DELETE"),
        CommentOnTables(
            {
                "RecallMark": "A reviewer's mark on a memory that was recalled for a reply, given"
                " or left out."
            }
        ),
    ]
