"""A tenant is on one of several database servers; those that exist are on the one there was."""

from django.db import migrations, models

from tenants.operations.comments import CommentOnTables


class Migration(migrations.Migration):
    dependencies = [("tenants", "0013_let_operators_ask_for_a_migration")]

    operations = [
        migrations.AddField(
            "Tenant",
            "server",
            models.CharField(
                db_default="default",
                editable=False,
                help_text="Database server that has its schema.",
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
