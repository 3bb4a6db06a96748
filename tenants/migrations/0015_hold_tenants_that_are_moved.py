"""A tenant that is being moved to another server is held until it is there."""

from django.db import migrations, models

from tenants.operations.comments import CommentOnTables


class Migration(migrations.Migration):
    dependencies = [("tenants", "0014_place_tenants_on_servers")]

    operations = [
        migrations.AddField(
            "Tenant",
            "moving_to",
            models.CharField(
                db_default="",
                default="",
                editable=False,
                help_text="Database server to which it is being moved; it is not served meanwhile.",
                max_length=32,
            ),
        ),
        CommentOnTables(
            {
                "Tenant": "A customer: one schema, one set of users, agents and memories, unseen by"
                " all others.",
            }
        ),
    ]
