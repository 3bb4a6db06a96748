"""Pseudonyms of erased users, which the access log looks up."""

from django.db import migrations, models

from tenants.operations.comments import CommentOnTables
from tenants.operations.policies import ForceRowLevelSecurity
from tenants.postgresql.expressions import CurrentTenant


class Migration(migrations.Migration):
    dependencies = [("audit", "0007_erase_messages")]

    operations = [
        migrations.CreateModel(
            name="ErasedId",
            fields=[
                ("tenant_id", models.UUIDField(db_default=CurrentTenant(), editable=False)),
                (
                    "digest",
                    models.TextField(
                        help_text="A keyed digest of the id, as in receipts.",
                        primary_key=True,
                        serialize=False,
                    ),
                ),
            ],
            options={"verbose_name": "erased id"},
        ),
        ForceRowLevelSecurity("audit_erasedid"),
        CommentOnTables(
            {
                "ErasedId": "The pseudonym of an erased user's id: the access log has it instead"
                " of the id."
            }
        ),
    ]
