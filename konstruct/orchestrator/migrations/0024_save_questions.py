"""Agents have saved questions, which they are asked again after each change."""

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
        ("orchestrator", "0023_keep_versions_of_agents"),
    ]

    operations = [
        migrations.CreateModel(
            name="SavedQuestion",
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
                    models.UUIDField(help_text="The agent that is asked.", verbose_name="agent"),
                ),
                (
                    "user_id",
                    models.TextField(
                        blank=True,
                        help_text="The person who asks. Empty: nobody.",
                        null=True,
                        verbose_name="person",
                    ),
                ),
                ("content", models.TextField(help_text="The message.", verbose_name="question")),
                (
                    "expected",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(),
                        blank=True,
                        db_default=models.Value(
                            [],
                            output_field=django.contrib.postgres.fields.ArrayField(
                                base_field=models.TextField(), size=None
                            ),
                        ),
                        default=list,
                        help_text="Words or phrases that the answer should have, all of them.",
                        size=None,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        help_text="When it was saved.",
                    ),
                ),
            ],
            options={
                "verbose_name": "saved question",
                "indexes": [
                    models.Index(fields=["agent_id", "created_at"], name="saved_question_agent")
                ],
            },
        ),
        migrations.CreateModel(
            name="QuestionAnswer",
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
                    models.UUIDField(help_text="The agent that answered.", verbose_name="agent"),
                ),
                (
                    "user_id",
                    models.TextField(
                        blank=True,
                        help_text="The person who asked. Empty: nobody.",
                        null=True,
                        verbose_name="person",
                    ),
                ),
                (
                    "version",
                    models.PositiveIntegerField(
                        help_text="Number of the agent's version. 0: before its first version."
                    ),
                ),
                (
                    "content",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The answer; may be empty.",
                        verbose_name="answer",
                    ),
                ),
                (
                    "steps",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(),
                        db_default=models.Value(
                            [],
                            output_field=django.contrib.postgres.fields.ArrayField(
                                base_field=models.TextField(), size=None
                            ),
                        ),
                        default=list,
                        help_text="What was decided, and why.",
                        size=None,
                    ),
                ),
                (
                    "problem",
                    models.TextField(
                        blank=True, db_default="", default="", help_text="Why there is no answer."
                    ),
                ),
                (
                    "is_expected",
                    models.BooleanField(
                        help_text="Whether it has all expected words. Empty: none are expected.",
                        null=True,
                    ),
                ),
                (
                    "message_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.UUIDField(),
                        db_default=models.Value(
                            [],
                            output_field=django.contrib.postgres.fields.ArrayField(
                                base_field=models.UUIDField(), size=None
                            ),
                        ),
                        default=list,
                        help_text="The messages that the prompt had: recalled ones and recent"
                        " turns.",
                        size=None,
                    ),
                ),
                (
                    "source_count",
                    models.PositiveIntegerField(
                        db_default=0,
                        default=0,
                        help_text="Recalled messages and facts in the prompt.",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        help_text="When it was answered.",
                    ),
                ),
                (
                    "question",
                    models.ForeignKey(
                        db_index=False,
                        help_text="The question.",
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="answers",
                        to="orchestrator.savedquestion",
                    ),
                ),
            ],
            options={
                "verbose_name": "answer to a saved question",
                "verbose_name_plural": "answers to saved questions",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("question", "version"), name="question_answer_version"
                    )
                ],
            },
        ),
        ForceRowLevelSecurity("orchestrator_savedquestion"),
        GrantToApp("orchestrator_savedquestion", "INSERT", "DELETE", "UPDATE (content)"),
        ForceRowLevelSecurity("orchestrator_questionanswer"),
        GrantToApp("orchestrator_questionanswer", "INSERT", "DELETE"),
        CommentOnTables(
            {
                "QuestionAnswer": "What an agent answers to a saved question in one of its"
                " versions.",
                "SavedQuestion": "A question that an agent is asked again after each change.",
            }
        ),
    ]
