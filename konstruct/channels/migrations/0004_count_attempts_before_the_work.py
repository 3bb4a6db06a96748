"""Work that waits says when a worker began with it: an attempt counts before it is made."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("channels", "0003_write_down_what_arrives")]

    operations = [
        migrations.AddField(
            "Arrival",
            "begun_at",
            models.DateTimeField(
                blank=True,
                help_text="When a worker began with it; empty when none is at work.",
                null=True,
            ),
        ),
        migrations.AlterField(
            "Arrival",
            "attempts",
            models.PositiveIntegerField(
                db_default=0, default=0, help_text="How often it was begun."
            ),
        ),
        migrations.AddField(
            "Delivery",
            "begun_at",
            models.DateTimeField(
                blank=True,
                help_text="When a worker began with it; empty when none is at work.",
                null=True,
            ),
        ),
        migrations.AlterField(
            "Delivery",
            "attempts",
            models.PositiveIntegerField(
                db_default=0, default=0, help_text="How often it was begun."
            ),
        ),
    ]
