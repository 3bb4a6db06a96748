"""Requests to erase one message, or a conversation."""

import uuid

from django.contrib.postgres.functions import RandomUUID
from django.db import migrations, models
from django.db.models.functions import Now

from tenants.operations.comments import CommentOnTables
from tenants.operations.policies import ForceRowLevelSecurity, GrantToApp
from tenants.postgresql.expressions import CurrentTenant


class Migration(migrations.Migration):
    dependencies = [("audit", "0006_comment_on_tables")]

    operations = [
        migrations.CreateModel(
            name="MessageErasure",
            fields=[
                ("tenant_id", models.UUIDField(db_default=CurrentTenant(), editable=False)),
                (
                    "id",
                    models.UUIDField(
                        db_default=RandomUUID(),
                        default=uuid.uuid4,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "agent_id",
                    models.UUIDField(help_text="The agent that forgets it.", verbose_name="agent"),
                ),
                (
                    "user_id",
                    models.TextField(
                        help_text="The user whose conversation it is.", verbose_name="user"
                    ),
                ),
                (
                    "thread_id",
                    models.TextField(help_text="The conversation.", verbose_name="thread"),
                ),
                (
                    "message_id",
                    models.UUIDField(
                        blank=True,
                        help_text="The message; none: the whole conversation.",
                        null=True,
                        verbose_name="message",
                    ),
                ),
                (
                    "reason",
                    models.TextField(
                        blank=True, db_default="", default="", help_text="Why, or on whose word."
                    ),
                ),
                ("requested_by", models.TextField(help_text="Who asked for it.")),
                (
                    "created_at",
                    models.DateTimeField(db_default=Now(), help_text="When it was asked for."),
                ),
                (
                    "last_error",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Why it could not be finished yet.",
                    ),
                ),
                (
                    "done_at",
                    models.DateTimeField(blank=True, help_text="When it was done.", null=True),
                ),
                (
                    "receipt",
                    models.JSONField(
                        blank=True,
                        help_text="How much was removed from where, with digests of the ids.",
                        null=True,
                    ),
                ),
            ],
            options={
                "verbose_name": "erasure of messages",
                "verbose_name_plural": "erasures of messages",
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("done_at__isnull", True)),
                        fields=("agent_id", "user_id", "thread_id", "message_id"),
                        name="message_erasure_one_open",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
        ForceRowLevelSecurity("audit_messageerasure"),
        GrantToApp("audit_messageerasure", "INSERT"),
        CommentOnTables(
            {
                "MessageErasure": "That one message, or a conversation, is to be erased. As"
                " ErasureRequest, but of no person."
            }
        ),
    ]
