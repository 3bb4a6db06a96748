"""Items of conversations, which frameworks add, read and take back."""

import uuid

import django.db.models.deletion
from django.db import migrations, models

import memory.fields
from tenants.operations.comments import CommentOnTables
from tenants.operations.policies import ForceRowLevelSecurity, GrantToApp
from tenants.postgresql.expressions import CurrentTenant


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0019_weigh_context_when_asked"),
    ]

    operations = [
        migrations.CreateModel(
            name="ConversationItem",
            fields=[
                ("tenant_id", models.UUIDField(db_default=CurrentTenant(), editable=False)),
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
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "number",
                    memory.fields.IdentityField(help_text="Order of insertion.", unique=True),
                ),
                (
                    "thread_id",
                    models.TextField(help_text="The conversation.", verbose_name="thread"),
                ),
                (
                    "item",
                    models.TextField(
                        help_text="JSON, as text: what jsonb cannot hold is kept, too."
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=models.Func(function="now", output_field=models.DateTimeField()),
                        help_text="When it was added.",
                    ),
                ),
                (
                    "message",
                    models.ForeignKey(
                        blank=True,
                        help_text="What it says, in the transcript. Empty: it is not remembered.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="items",
                        to="memory.message",
                    ),
                ),
            ],
            options={
                "verbose_name": "conversation item",
                "indexes": [
                    models.Index(
                        fields=["agent_id", "user_id", "thread_id", "created_at", "number"],
                        name="conversation_item_thread",
                    ),
                    models.Index(fields=["user_id"], name="conversation_item_user"),
                ],
            },
        ),
        ForceRowLevelSecurity("memory_conversationitem"),
        GrantToApp("memory_conversationitem", "INSERT", "DELETE"),
        CommentOnTables(
            {
                "ConversationItem": "What a framework keeps of a run: a message, a tool's call, its"
                " result. Never changed.",
                # Whose new column has none yet.
                "IndexedMessage": "What recall weighs of a message beside its words and vectors."
                " Append-only.",
            }
        ),
    ]
