"""Name in the code what the columns `heard` and `sealed_token` are. The database stays as it is."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("channels", "0008_drop_index_of_agent")]

    operations = [
        # Processes of the version before name the columns too, which a renamed one would fail.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RenameField("Arrival", "heard", "event"),
                migrations.AlterField(
                    "Arrival",
                    "event",
                    models.JSONField(
                        db_column="heard", help_text="What was said, by whom, and where."
                    ),
                ),
                migrations.RemoveConstraint("SlackInstallation", "slack_token_while_connected"),
                migrations.RenameField("SlackInstallation", "sealed_token", "encrypted_token"),
                migrations.AlterField(
                    "SlackInstallation",
                    "encrypted_token",
                    models.TextField(
                        blank=True,
                        db_column="sealed_token",
                        db_default="",
                        default="",
                        editable=False,
                        help_text="The bot's token, encrypted; empty once it is disconnected.",
                    ),
                ),
                migrations.AddConstraint(
                    "SlackInstallation",
                    models.CheckConstraint(
                        condition=models.Q(state="connected", ended_at__isnull=True)
                        & ~models.Q(encrypted_token="")
                        | models.Q(
                            state="disconnected", ended_at__isnull=False, encrypted_token=""
                        ),
                        name="slack_token_while_connected",
                    ),
                ),
            ]
        ),
    ]
