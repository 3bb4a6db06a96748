"""What people are called in Slack, behind the tenant's policy; and lists of deliveries by time."""

import uuid

import django.contrib.postgres.functions
import django.db.models.functions.datetime
from django.db import migrations, models

import tenants.postgresql.expressions
from tenants.operations.policies import ForceRowLevelSecurity, GrantToApp


class Migration(migrations.Migration):
    dependencies = [
        ("channels", "0001_initial"),
        ("memory", "0009_drop_index_message_time"),
    ]

    operations = [
        migrations.CreateModel(
            name="SlackUser",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(
                        db_default=tenants.postgresql.expressions.CurrentTenant(), editable=False
                    ),
                ),
                (
                    "id",
                    models.UUIDField(
                        db_default=django.contrib.postgres.functions.RandomUUID(),
                        default=uuid.uuid4,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "workspace",
                    models.CharField(help_text="Slack's id of the workspace.", max_length=255),
                ),
                ("slack_id", models.CharField(help_text="Slack's id of the user.", max_length=255)),
                (
                    "user_id",
                    models.TextField(
                        help_text="Whose memory what they say becomes.", verbose_name="user"
                    ),
                ),
                (
                    "name",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="What they are called there.",
                    ),
                ),
                (
                    "looked_up_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        help_text="When Slack was asked.",
                    ),
                ),
            ],
            options={
                "verbose_name": "Slack user",
            },
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(fields=["created_at", "message"], name="delivery_created"),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(
                condition=models.Q(("failed_at__isnull", False)),
                fields=["created_at"],
                name="delivery_failed",
            ),
        ),
        migrations.AddConstraint(
            model_name="slackuser",
            constraint=models.UniqueConstraint(fields=("workspace", "slack_id"), name="slack_user"),
        ),
        ForceRowLevelSecurity("channels_slackuser"),
        GrantToApp("channels_slackuser", "INSERT", "UPDATE"),
    ]
