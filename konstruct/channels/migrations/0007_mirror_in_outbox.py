"""Drop the index by which deliveries were swept. Triggers that were made here are gone."""

from django.db import migrations, models
from django.db.models.functions import Now

from tenants.operations.comments import CommentOnTables


def sweep_at(model_name):
    return migrations.AlterField(
        model_name=model_name,
        name="sweep_at",
        field=models.DateTimeField(
            db_column="ring_at",
            db_default=Now(),
            help_text="From when on a worker may claim it, which the outbox is told.",
        ),
    )


class Migration(migrations.Migration):
    dependencies = [
        ("channels", "0006_name_sweep_at"),
        ("tenants", "0012_mirror_in_outbox"),
    ]

    operations = [
        migrations.RemoveIndex(model_name="delivery", name="delivery_ring"),
        migrations.SeparateDatabaseAndState(
            state_operations=[sweep_at("arrival"), sweep_at("delivery")]
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
