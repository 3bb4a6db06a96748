"""Tokens that a language model reports of its reply.

A column that may be empty is added without a look at the rows.
"""

from django.db import migrations, models

from tenants.operations.comments import CommentOnTables


class Migration(migrations.Migration):
    dependencies = [("memory", "0020_keep_items_of_conversations")]

    operations = [
        migrations.AddField(
            "Message",
            "usage",
            models.JSONField(
                blank=True,
                help_text="Tokens that the language model has reported of a reply.",
                null=True,
            ),
        ),
        CommentOnTables(
            {
                "Message": "One turn of the transcript, verbatim, written before anything else"
                " happens. Append-only.",
            }
        ),
    ]
