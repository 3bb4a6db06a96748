"""Programs have tools of their own: what they ask of answers, and calls whose results they send."""

import django.db.models.deletion
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models

from tenants.operations.comments import CommentOnTables
from tenants.operations.policies import ForceRowLevelSecurity, GrantToApp
from tenants.postgresql.expressions import CurrentTenant

STATES = {
    "waiting": "waits for consent",
    "with_program": "with the program whose tool it is",
    "approved": "approved, and about to be done",
    "denied": "denied",
    "expired": "nobody answered in time",
    "done": "done",
    "failed": "failed",
}


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0016_mirror_embeddings_in_outbox"),
        ("orchestrator", "0010_move_replies_to_the_outbox"),
    ]

    operations = [
        migrations.CreateModel(
            "AnswerOptions",
            fields=[
                ("tenant_id", models.UUIDField(db_default=CurrentTenant(), editable=False)),
                (
                    "message",
                    models.OneToOneField(
                        help_text="The message that is to be answered.",
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="answer_options",
                        serialize=False,
                        to="memory.message",
                    ),
                ),
                (
                    "options",
                    models.JSONField(
                        help_text="In the words of OpenAI's API: tools, tool_choice, "
                        "parallel_tool_calls and response_format."
                    ),
                ),
            ],
            options={
                "verbose_name": "answer options",
                "verbose_name_plural": "answer options",
            },
        ),
        ForceRowLevelSecurity("orchestrator_answeroptions"),
        GrantToApp("orchestrator_answeroptions", "INSERT", "DELETE"),
        migrations.AlterField(
            "ToolCall",
            "expires_at",
            models.DateTimeField(
                help_text="Until when consent, or a program's result, can be given."
            ),
        ),
        migrations.AlterField(
            "ToolCall",
            "state",
            models.TextField(choices=list(STATES.items()), help_text="How far it is."),
        ),
        migrations.RemoveConstraint("ToolCall", "tool_call_state"),
        # On the way back there is no such word: whoever has the tool is not asked any more.
        migrations.RunSQL(
            migrations.RunSQL.noop,
            "UPDATE orchestrator_toolcall SET state = 'expired' WHERE state = 'with_program'",
        ),
        AddConstraintNotValid(
            "ToolCall",
            models.CheckConstraint(
                condition=models.Q(state__in=list(STATES)), name="tool_call_state"
            ),
        ),
        CommentOnTables(
            {
                "AnswerOptions": "What the program that sent a message asks of its answer.",
                "ToolCall": "Something that an agent asked to do while it answered a message.",
            }
        ),
    ]
