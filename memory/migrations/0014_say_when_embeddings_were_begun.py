"""An embedding that waits says when a worker began with it: one that ends workers is found.

The keys of messages are those of a channel and its caller from now on; nothing changes in Postgres.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memory", "0013_say_which_agent_answered")]

    operations = [
        migrations.AddField(
            "PendingEmbedding",
            "begun_at",
            models.DateTimeField(
                blank=True,
                help_text="When a worker began with it; empty when none has.",
                null=True,
            ),
        ),
        migrations.AlterField(
            "Message",
            "idempotency_key",
            models.CharField(
                blank=True,
                help_text="Of the sender, after the channel: the same again is the same message.",
                max_length=255,
                null=True,
            ),
        ),
    ]
