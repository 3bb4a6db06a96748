"""Assignment of escalations, reviewers' marks on replies, and activity by day."""

import uuid

import django.contrib.postgres.fields
import django.contrib.postgres.functions
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import tenants.postgresql.expressions
from tenants.operations.comments import CommentOnTables
from tenants.operations.policies import ForceRowLevelSecurity, GrantToApp


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0030_keep_names_of_people"),
        ("orchestrator", "0016_extract_facts"),
    ]

    operations = [
        migrations.AddField(
            model_name="escalation",
            name="assigned_to",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="Username of the colleague who takes care of it; empty: unassigned.",
            ),
        ),
        migrations.CreateModel(
            name="DailyActivity",
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
                        blank=True, help_text="The agent.", null=True, verbose_name="agent"
                    ),
                ),
                (
                    "channel",
                    models.TextField(
                        blank=True, db_default="", default="", help_text="The channel."
                    ),
                ),
                (
                    "messages",
                    models.PositiveIntegerField(
                        db_default=0, default=0, help_text="Users' messages."
                    ),
                ),
                (
                    "replies",
                    models.PositiveIntegerField(
                        db_default=0,
                        default=0,
                        help_text="Replies of agents that have a recall event.",
                    ),
                ),
                (
                    "from_facts",
                    models.PositiveIntegerField(
                        db_default=0, default=0, help_text="Replies with facts in their prompt."
                    ),
                ),
                (
                    "from_memories",
                    models.PositiveIntegerField(
                        db_default=0,
                        default=0,
                        help_text="Replies with recalled messages and without facts.",
                    ),
                ),
                (
                    "from_turns",
                    models.PositiveIntegerField(
                        db_default=0, default=0, help_text="Replies with recent turns alone."
                    ),
                ),
                (
                    "from_nothing",
                    models.PositiveIntegerField(
                        db_default=0, default=0, help_text="Replies without any of them."
                    ),
                ),
                (
                    "prompt_tokens",
                    models.BigIntegerField(
                        db_default=0,
                        default=0,
                        help_text="Tokens sent, as the language model reported them.",
                    ),
                ),
                (
                    "completion_tokens",
                    models.BigIntegerField(
                        db_default=0,
                        default=0,
                        help_text="Tokens received, as the language model reported them.",
                    ),
                ),
                (
                    "reply_times",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.PositiveIntegerField(),
                        db_default=models.Value(
                            [],
                            output_field=django.contrib.postgres.fields.ArrayField(
                                base_field=models.PositiveIntegerField(), size=None
                            ),
                        ),
                        default=list,
                        help_text="Numbers of replies by their time: activity.py has the limits.",
                        size=None,
                    ),
                ),
            ],
            options={
                "verbose_name": "daily activity",
                "verbose_name_plural": "daily activity",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("day", "agent_id", "channel"),
                        name="daily_activity_day",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ReplyReview",
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
                    "mark",
                    models.TextField(
                        choices=[("right", "right"), ("wrong", "wrong"), ("unsure", "unsure")],
                        help_text="right, wrong or unsure.",
                    ),
                ),
                (
                    "note",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The reviewer's note; may be empty.",
                    ),
                ),
                (
                    "reviewer_kind",
                    models.TextField(help_text="person, or program with an API key."),
                ),
                ("reviewer_id", models.TextField(help_text="Id of the person, or of the API key.")),
                ("reviewer_name", models.TextField(help_text="Their name at that time.")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        help_text="When the mark was set.",
                    ),
                ),
                (
                    "reply",
                    models.ForeignKey(
                        db_index=False,
                        help_text="The reply.",
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reviews",
                        to="memory.message",
                    ),
                ),
            ],
            options={
                "verbose_name": "reply review",
                "indexes": [
                    models.Index(fields=["-created_at", "id"], name="reply_review_newest"),
                    models.Index(fields=["user_id", "-created_at"], name="reply_review_user"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("reply", "reviewer_kind", "reviewer_id"),
                        name="reply_review_reviewer",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("mark__in", ["right", "wrong", "unsure"])),
                        name="reply_review_mark",
                    ),
                ],
            },
        ),
        ForceRowLevelSecurity("orchestrator_dailyactivity"),
        GrantToApp("orchestrator_dailyactivity", "INSERT", "DELETE"),
        ForceRowLevelSecurity("orchestrator_replyreview"),
        GrantToApp(
            "orchestrator_replyreview", "INSERT", "UPDATE (mark, note, reviewer_name, created_at)"
        ),
        GrantToApp("orchestrator_escalation", "UPDATE (assigned_to)"),
        CommentOnTables(
            {
                "DailyActivity": "Counts of one ended day (UTC), agent and channel.",
                "Escalation": "That a person or another agent answers in a thread, from when it"
                " was opened until it ends.",
                "ReplyReview": "A reviewer's mark on a reply. A reviewer has one mark on each"
                " reply.",
            }
        ),
    ]
