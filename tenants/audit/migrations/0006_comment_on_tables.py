"""Say in the database what each table and column is."""

from django.db import migrations

from tenants.operations.comments import CommentOnTables


class Migration(migrations.Migration):
    dependencies = [("audit", "0005_record_addresses_logins_and_refusals")]

    operations = [
        CommentOnTables(
            {
                "AccessEvent": "Who did what with what of a tenant, when and from where. Append-only.",
                "ErasureRequest": "That a person is to be forgotten. Only the owner's process can do it, and notes what it did.",
                "RetentionRule": "How long conversations are kept: of one agent, or of all that have no rule of their own.",
            }
        )
    ]
