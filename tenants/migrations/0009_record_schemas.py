"""The states of tenants' schemas, and the SQL that makes the latest, stand in the public schema."""

from django.db import migrations, models

from tenants.operations.comments import CommentOnTables
from tenants.operations.policies import HideFromTenants

# A tenant may read which migrations a state has. The owner runs what stands here.
READ_ONLY = "INSERT, UPDATE, DELETE ON public.tenants_schemastate"


class Migration(migrations.Migration):
    dependencies = [("tenants", "0008_let_tenants_write_no_public_rows")]

    operations = [
        migrations.AlterField(
            "Tenant",
            "migrated_to",
            models.CharField(
                db_default="",
                default="",
                editable=False,
                help_text="State in which its schema was left last.",
                max_length=33,
            ),
        ),
        migrations.CreateModel(
            "SchemaState",
            fields=[
                (
                    "name",
                    models.CharField(
                        help_text="What migrated_to is of such a tenant.",
                        max_length=33,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "migrations",
                    models.JSONField(help_text="Migrations that such a schema has."),
                ),
                (
                    "code",
                    models.CharField(
                        db_default="",
                        default="",
                        help_text="Digest of the code that the recording was made with.",
                        max_length=32,
                    ),
                ),
                (
                    "recording",
                    models.JSONField(help_text="The SQL that makes such a schema.", null=True),
                ),
            ],
        ),
        HideFromTenants("tenants_schemastate", own_rows="true"),
        migrations.RunSQL(
            f"REVOKE {READ_ONLY} FROM konstruct_app", f"GRANT {READ_ONLY} TO konstruct_app"
        ),
        CommentOnTables(
            {
                "SchemaState": "A state that tenants' schemas are or were in; of this code's also"
                " the SQL that makes it.",
                "Tenant": "A customer: one schema, one set of users, agents and memories, unseen by"
                " all others.",
            }
        ),
    ]
