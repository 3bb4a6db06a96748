"""What recall weighs of a message stands in one column too: a scope is read as one value."""

from django.db import migrations, models

from memory.fields import packed


class Migration(migrations.Migration):
    dependencies = [("memory", "0009_drop_index_message_time")]

    operations = [
        migrations.RemoveIndex("IndexedMessage", "indexed_message_scope"),
        migrations.AddField(
            "IndexedMessage",
            "card",
            models.GeneratedField(
                expression=packed(
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
                output_field=models.BinaryField(),
                db_persist=True,
                help_text="All of that as it is sent, for a whole scope to be one value.",
            ),
        ),
        migrations.AddIndex(
            "IndexedMessage",
            models.Index(
                fields=["scope_id", "session", "created_at", "message_number"],
                include=["card", "words", "tenant_id"],
                name="indexed_message_scope",
            ),
        ),
    ]
