"""A shorter retention waits: the days that come, and from when on."""

from django.db import migrations, models

from tenants.operations.comments import CommentOnTables


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0010_drop_an_index_of_erased_ids"),
    ]

    operations = [
        migrations.AddField(
            model_name="retentionrule",
            name="effective_at",
            field=models.DateTimeField(
                blank=True, editable=False, help_text="When these days take effect.", null=True
            ),
        ),
        migrations.AddField(
            model_name="retentionrule",
            name="next_days",
            field=models.PositiveIntegerField(
                blank=True,
                editable=False,
                help_text="Fewer days that wait; empty: no change waits.",
                null=True,
            ),
        ),
        migrations.AddConstraint(
            model_name="retentionrule",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("effective_at__isnull", True), ("next_days__isnull", True)),
                    models.Q(("effective_at__isnull", False), ("next_days__gt", 0)),
                    _connector="OR",
                ),
                name="retention_next_days",
            ),
        ),
        CommentOnTables(
            {
                "RetentionRule": "How long conversations are kept: of one agent, or of all that"
                " have no rule of their own."
            }
        ),
    ]
