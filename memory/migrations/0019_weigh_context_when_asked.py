"""Postings of a message's own words alone: those of the turns before it are weighed when asked for.

How many lexemes a message has comes along with its turn. What stands has 0, and is read as it was
written.
"""

from django.db import migrations, models

import memory.fields


class Migration(migrations.Migration):
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
        migrations.AlterField(
            "Posting",
            "w",
            memory.fields.RealField(help_text="Saturated weight of the lexeme in the message."),
        ),
    ]
