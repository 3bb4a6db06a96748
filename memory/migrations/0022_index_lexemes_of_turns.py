"""The number of a message's lexemes comes along with its turn, from the index alone.

Apart from the column, since what is no transaction is run again from its beginning.
"""

from django.db import migrations, models

from tenants.operations.indexes import AddIndexConcurrently, RemoveIndexConcurrently


class Migration(migrations.Migration):
    atomic = False  # indexes are built concurrently

    dependencies = [("memory", "0021_keep_usage_of_replies")]

    operations = [
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
    ]
