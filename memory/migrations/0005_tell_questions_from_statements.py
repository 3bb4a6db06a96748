"""Recall knows which messages only ask: they answer nothing."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memory", "0004_langgraph_checkpoints")]

    operations = [
        migrations.AddField(
            "IndexedMessage",
            "asks",
            models.BooleanField(db_default=False, help_text="Only asks, and says nothing."),
        ),
        migrations.RemoveIndex("IndexedMessage", "indexed_message_scope"),
        migrations.AddIndex(
            "IndexedMessage",
            models.Index(
                fields=["scope_id", "session", "created_at", "message_number"],
                include=[
                    "message_id",
                    "subject",
                    "by_user",
                    "words",
                    "has_time",
                    "asks",
                    "tenant_id",
                ],
                name="indexed_message_scope",
            ),
        ),
    ]
