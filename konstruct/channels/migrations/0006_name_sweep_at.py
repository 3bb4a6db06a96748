"""Name in the code what the column `ring_at` is: `sweep_at`. The database stays as it is."""

from django.db import migrations, models
from django.db.models.functions import Now

from tenants.operations.comments import CommentOnTables


def renamed(model_name):
    return [
        migrations.RenameField(model_name, "ring_at", "sweep_at"),
        migrations.AlterField(
            model_name=model_name,
            name="sweep_at",
            field=models.DateTimeField(
                db_column="ring_at",
                db_default=Now(),
                help_text="When the sweeper enqueues it (again).",
            ),
        ),
    ]


class Migration(migrations.Migration):
    dependencies = [("channels", "0005_comment_on_tables")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveIndex(model_name="delivery", name="delivery_ring"),
                *renamed("delivery"),
                migrations.AddIndex(
                    model_name="delivery",
                    index=models.Index(
                        condition=models.Q(("due_at__isnull", False), ("failed_at__isnull", True)),
                        fields=["sweep_at"],
                        name="delivery_ring",
                    ),
                ),
                *renamed("arrival"),
            ]
        ),
        CommentOnTables(
            {
                "Arrival": "Something that was said, as a channel told it: the inbox, removed "
                "when it is taken in.",
                "Delivery": "That the present state of a message is to be shown in its channel: "
                "the outbox of posts.",
            }
        ),
    ]
