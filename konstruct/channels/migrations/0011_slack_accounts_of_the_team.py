"""Slack accounts of the team, who answer users from Slack."""

import uuid

import django.contrib.postgres.functions
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import tenants.postgresql.expressions
from tenants.operations.comments import CommentOnTables
from tenants.operations.policies import ForceRowLevelSecurity, GrantToApp


class Migration(migrations.Migration):
    dependencies = [
        ("channels", "0010_move_retries_to_jobs"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="SlackMember",
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
                    "slack_id",
                    models.CharField(
                        help_text="Slack's id of the person: Profile, Copy member ID, such as"
                        " U024BE7LH.",
                        max_length=50,
                        verbose_name="Slack user",
                    ),
                ),
                (
                    "installation",
                    models.ForeignKey(
                        db_index=False,
                        help_text="The workspace.",
                        on_delete=django.db.models.deletion.CASCADE,
                        to="channels.slackinstallation",
                        verbose_name="workspace",
                    ),
                ),
                (
                    "member",
                    models.ForeignKey(
                        db_index=False,
                        help_text="What they do in Slack is recorded as this member, with this"
                        " member's permissions.",
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "Slack account of the team",
                "verbose_name_plural": "Slack accounts of the team",
                "ordering": ["slack_id"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("installation", "slack_id"), name="slack_member"
                    )
                ],
            },
        ),
        ForceRowLevelSecurity("channels_slackmember"),
        GrantToApp("channels_slackmember", "INSERT", "UPDATE", "DELETE"),
        CommentOnTables(
            {
                "SlackMember": "Which member of the team a Slack user is, so that they can answer"
                " users from Slack.",
            }
        ),
    ]
