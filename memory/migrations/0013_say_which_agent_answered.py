"""A reply says which agent wrote it: a thread can be handed to another than its own.

A column that may be empty is added without a look at the rows.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memory", "0012_vacuum_what_recall_reads")]

    operations = [
        migrations.AddField(
            "Message",
            "answered_by_id",
            models.UUIDField(
                blank=True,
                help_text="The agent that wrote this reply: another than the message's where the"
                " thread was handed over. Empty: a person, an import, or a reply from before this"
                " was kept.",
                null=True,
                verbose_name="answered by",
            ),
        ),
    ]
