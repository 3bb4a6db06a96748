"""Say in the database what each table and column is."""

from django.db import migrations

from tenants.operations.comments import CommentOnTables


class Migration(migrations.Migration):
    dependencies = [("api", "0005_refuse_ids_that_cannot_be_seen")]

    operations = [
        CommentOnTables(
            {
                "ApiKey": "A program's access to its tenant's API. The key itself is shown once and never stored.",
                "Creation": "What a POST with an Idempotency-Key made: the same again makes nothing. Append-only.",
            }
        )
    ]
