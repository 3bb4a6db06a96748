"""Tenants are backed up, and not served while a backup of them is restored."""

from django.db import migrations, models

from tenants.operations.comments import CommentOnTables

STATES = ["provisioning", "active", "suspended", "restoring"]


class Migration(migrations.Migration):
    """See the module."""

    dependencies = [("tenants", "0020_trace_jobs")]

    operations = [
        migrations.AddField(
            "Tenant",
            "backed_up_at",
            models.DateTimeField(
                editable=False,
                help_text="As of when its last backup is; empty: there is none.",
                null=True,
            ),
        ),
        migrations.AlterField(
            "Tenant",
            "state",
            models.CharField(
                choices=[(state, state.title()) for state in STATES],
                default="provisioning",
                help_text="Only an active tenant is served.",
                max_length=12,
            ),
        ),
        migrations.AlterField(
            "Tenant",
            "state_before",
            models.CharField(
                db_default="",
                default="",
                editable=False,
                help_text="State to which it returns when its deletion is taken back, or its backup"
                " is restored; empty: neither is going on.",
                max_length=12,
            ),
        ),
        migrations.RemoveConstraint("Tenant", "tenant_state_is_known"),
        migrations.AddConstraint(
            "Tenant",
            models.CheckConstraint(
                condition=models.Q(state__in=STATES), name="tenant_state_is_known"
            ),
        ),
        CommentOnTables(
            {
                "Tenant": "A customer: one schema, one set of users, agents and memories, unseen by"
                " all others.",
            }
        ),
    ]
