"""Name in the code what the column `card` is: `packed_row`. The database stays as it is."""

from django.db import migrations, models

import memory.fields


class Migration(migrations.Migration):
    dependencies = [("memory", "0022_index_lexemes_of_turns")]

    operations = [
        # Recall of the version before names the column, which a renamed one would fail.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveIndex("IndexedMessage", "indexed_message_turns"),
                migrations.RenameField("IndexedMessage", "card", "packed_row"),
                migrations.AlterField(
                    "IndexedMessage",
                    "packed_row",
                    models.GeneratedField(
                        db_column="card",
                        db_persist=True,
                        expression=memory.fields.packed(
                            message_number="int8send",
                            message_id="uuid_send",
                            session="int8send",
                            created_at="timestamptz_send",
                            subject="int8send",
                            words="int4send",
                            has_time="boolsend",
                            asks="boolsend",
                            by_user="boolsend",
                        ),
                        help_text="All of that as it is sent, for a whole scope to be one value.",
                        output_field=models.BinaryField(),
                    ),
                ),
                migrations.AddIndex(
                    "IndexedMessage",
                    models.Index(
                        fields=["scope_id", "session", "created_at", "message_number"],
                        include=["packed_row", "words", "lexemes", "tenant_id"],
                        name="indexed_message_turns",
                    ),
                ),
            ]
        ),
    ]
