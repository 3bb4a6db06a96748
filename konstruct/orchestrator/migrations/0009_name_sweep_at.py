"""Name in the code what the column `ring_at` is: `sweep_at`. The database stays as it is."""

from django.db import migrations, models

from tenants.operations.comments import CommentOnTables


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0008_rename_history_merge")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveIndex(model_name="pendingreply", name="pending_reply_ring"),
                migrations.RenameField("pendingreply", "ring_at", "sweep_at"),
                migrations.AlterField(
                    model_name="pendingreply",
                    name="sweep_at",
                    field=models.DateTimeField(
                        db_column="ring_at",
                        db_default=models.Func(function="now", output_field=models.DateTimeField()),
                        help_text="When the sweeper enqueues it (again).",
                    ),
                ),
                migrations.AddIndex(
                    model_name="pendingreply",
                    index=models.Index(
                        condition=models.Q(("failed_at__isnull", True), ("held_for", "")),
                        fields=["sweep_at"],
                        name="pending_reply_ring",
                    ),
                ),
            ]
        ),
        CommentOnTables(
            {
                "PendingReply": "A message that waits for its reply: the outbox, removed when the "
                "reply is delivered."
            }
        ),
    ]
