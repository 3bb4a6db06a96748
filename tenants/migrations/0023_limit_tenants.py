"""Operators limit what a tenant may use, and its usage is kept where they can see it."""

from django.db import migrations, models

from tenants.operations.comments import CommentOnTables

COLUMNS = "UPDATE (quotas, usage) ON public.tenants_tenant"


class Migration(migrations.Migration):
    dependencies = [("tenants", "0022_comment_on_traces_of_jobs")]

    operations = [
        migrations.AddField(
            model_name="tenant",
            name="quotas",
            field=models.JSONField(
                db_default=models.Value({}, output_field=models.JSONField()),
                default=dict,
                editable=False,
                help_text="Its limits by quota: soft, hard or both. Without them: unlimited.",
            ),
        ),
        migrations.AddField(
            model_name="tenant",
            name="usage",
            field=models.JSONField(
                db_default=models.Value({}, output_field=models.JSONField()),
                default=dict,
                editable=False,
                help_text="What it used when that was measured last, and the limits it reached.",
            ),
        ),
        migrations.RunSQL(
            f"GRANT {COLUMNS} TO konstruct_app", f"REVOKE {COLUMNS} FROM konstruct_app"
        ),
        CommentOnTables(
            {
                "Tenant": "A customer: one schema, one set of users, agents and memories, unseen by"
                " all others.",
            }
        ),
    ]
