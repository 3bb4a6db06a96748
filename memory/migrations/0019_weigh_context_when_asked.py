"""Postings of a message's own words alone: those of the turns before it are weighed when asked for.

How many lexemes a message has comes along with its turn, from the index alone. What stands has 0,
and is read as it was written.
"""

from django.db import migrations, models

import memory.fields
from tenants.operations.indexes import AddIndexConcurrently, RemoveIndexConcurrently


class Migration(migrations.Migration):
    atomic = False  # indexes are built concurrently

    dependencies = [("memory", "0018_keep_metadata_of_messages")]

    operations = [
        migrations.AddField(
            "IndexedMessage",
            "lexemes",
            models.IntegerField(
                db_default=0,
                help_text="Number of its lexemes; 0 where its postings hold the turns before it"
                " too.",
            ),
        ),
        # Serves processes of the version before too.
        AddIndexConcurrently(
            "IndexedMessage",
            models.Index(
                fields=["scope_id", "session", "created_at", "message_number"],
                include=["card", "words", "lexemes", "tenant_id"],
                name="indexed_message_turns",
            ),
        ),
        RemoveIndexConcurrently("IndexedMessage", "indexed_message_scope"),
        migrations.AlterField(
            "Posting",
            "w",
            memory.fields.RealField(help_text="Saturated weight of the lexeme in the message."),
        ),
    ]
