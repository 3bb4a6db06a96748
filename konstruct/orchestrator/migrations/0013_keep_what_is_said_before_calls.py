"""A column with a default of the database: no row is written anew, and code from before goes on."""

from django.db import migrations, models

from tenants.operations.comments import CommentOnTables


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0012_check_states_of_tool_calls")]

    operations = [
        migrations.AddField(
            model_name="toolcall",
            name="content",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="What the agent said before it asked; with the first call of an answer.",
                verbose_name="said before",
            ),
        ),
        CommentOnTables(
            {"ToolCall": "Something that an agent asked to do while it answered a message."}
        ),
    ]
