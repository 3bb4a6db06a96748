"""Operators ask in their admin for a tenant to be migrated; the owner's worker does it."""

from django.db import migrations, models

from tenants.operations.comments import CommentOnTables

COLUMN = "UPDATE (migration_asked_at) ON public.tenants_tenant"


class Migration(migrations.Migration):
    dependencies = [("tenants", "0012_mirror_in_outbox")]

    operations = [
        migrations.AddField(
            "Tenant",
            "migration_asked_at",
            models.DateTimeField(
                editable=False,
                help_text="When an operator asked for its schema to be made or migrated, until it"
                " is tried.",
                null=True,
            ),
        ),
        migrations.RunSQL(
            f"GRANT {COLUMN} TO konstruct_app", f"REVOKE {COLUMN} FROM konstruct_app"
        ),
        CommentOnTables(
            {
                "Tenant": "A customer: one schema, one set of users, agents and memories, unseen by"
                " all others.",
            }
        ),
    ]
