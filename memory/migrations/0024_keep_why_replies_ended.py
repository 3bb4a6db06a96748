"""Why a language model ended its reply.

A column with a constant default is added without a look at the rows, and code from before goes on.
"""

from django.db import migrations, models

from tenants.operations.comments import CommentOnTables


class Migration(migrations.Migration):
    dependencies = [("memory", "0023_name_packed_row")]

    operations = [
        migrations.AddField(
            "Message",
            "finish_reason",
            models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="Why the language model ended a reply, by OpenAI's names: stop, length or"
                " content_filter. Empty: no language model wrote it, or it was written before this"
                " was kept.",
            ),
        ),
        CommentOnTables(
            {
                "Message": "One turn of the transcript, verbatim, written before anything else"
                " happens. Append-only.",
            }
        ),
    ]
