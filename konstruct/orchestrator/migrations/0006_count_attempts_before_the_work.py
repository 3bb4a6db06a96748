"""Work that waits says when a worker began with it: an attempt counts before it is made."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0005_check_who_opened_escalations")]

    operations = [
        migrations.AddField(
            "PendingReply",
            "begun_at",
            models.DateTimeField(
                blank=True,
                help_text="When a worker began with it; empty when none is at work.",
                null=True,
            ),
        ),
        migrations.AlterField(
            "PendingReply",
            "attempts",
            models.PositiveIntegerField(
                db_default=0, default=0, help_text="How often it was begun."
            ),
        ),
    ]
