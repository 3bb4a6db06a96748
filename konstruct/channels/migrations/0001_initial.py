"""Slack workspaces and the outbox of posts, behind the tenant's policy.

Neither is removed by the application: a workspace that was disconnected stays without its token,
and a delivery says what is shown of its message.
"""

import uuid

import django.contrib.postgres.fields
import django.contrib.postgres.functions
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import tenants.postgresql.expressions
from tenants.operations.policies import ForceRowLevelSecurity, GrantToApp


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("memory", "0009_drop_index_message_time"),
        ("orchestrator", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Delivery",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(
                        db_default=tenants.postgresql.expressions.CurrentTenant(), editable=False
                    ),
                ),
                (
                    "message",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="delivery",
                        serialize=False,
                        to="memory.message",
                    ),
                ),
                ("channel", models.TextField(help_text="slack …")),
                (
                    "address",
                    models.JSONField(help_text="Where it is shown, in the channel's own terms."),
                ),
                (
                    "posted",
                    models.JSONField(
                        blank=True,
                        db_default=models.Value([], output_field=models.JSONField()),
                        default=list,
                        help_text="The posts that show it: their ids, and digests of what "
                        "they show.",
                    ),
                ),
                (
                    "intent",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="The post that was about to be made: it may stand though we do "
                        "not know its id.",
                        null=True,
                    ),
                ),
                (
                    "version",
                    models.PositiveBigIntegerField(
                        db_default=1,
                        default=1,
                        help_text="Counts the changes of what is to be shown.",
                    ),
                ),
                (
                    "attempts",
                    models.PositiveIntegerField(
                        db_default=0, default=0, help_text="How often it has failed."
                    ),
                ),
                (
                    "last_error",
                    models.TextField(
                        blank=True, db_default="", default="", help_text="Why it failed last."
                    ),
                ),
                (
                    "due_at",
                    models.DateTimeField(
                        blank=True,
                        db_default=django.db.models.functions.datetime.Now(),
                        help_text="From when on it may be tried (again); empty while what is "
                        "shown is right.",
                        null=True,
                    ),
                ),
                (
                    "ring_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        help_text="When the sweeper rings for a worker (again).",
                    ),
                ),
                (
                    "failed_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="When it was given up; empty while it is still tried.",
                        null=True,
                    ),
                ),
                (
                    "delivered_at",
                    models.DateTimeField(
                        blank=True, help_text="When what was shown was right last.", null=True
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        help_text="When the message was accepted.",
                    ),
                ),
            ],
            options={
                "verbose_name": "delivery",
                "verbose_name_plural": "deliveries",
                "indexes": [
                    models.Index(
                        condition=models.Q(("due_at__isnull", False), ("failed_at__isnull", True)),
                        fields=["ring_at"],
                        name="delivery_ring",
                    )
                ],
            },
        ),
        ForceRowLevelSecurity("channels_delivery"),
        GrantToApp("channels_delivery", "INSERT", "UPDATE"),
        migrations.CreateModel(
            name="SlackInstallation",
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
                    models.CharField(
                        help_text="Slack's id of the workspace, such as T024BE7LD.", max_length=255
                    ),
                ),
                (
                    "name",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The workspace's name in Slack.",
                    ),
                ),
                (
                    "bot_user_id",
                    models.CharField(
                        help_text="Slack's id of our bot there, by which it is mentioned.",
                        max_length=255,
                    ),
                ),
                (
                    "sealed_token",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        editable=False,
                        help_text="The bot's token, encrypted; empty once it is disconnected.",
                    ),
                ),
                (
                    "scopes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(),
                        blank=True,
                        db_default=models.Value(
                            [],
                            output_field=django.contrib.postgres.fields.ArrayField(
                                base_field=models.TextField(), size=None
                            ),
                        ),
                        default=list,
                        help_text="What Slack lets the bot do.",
                        size=None,
                    ),
                ),
                (
                    "state",
                    models.TextField(
                        choices=[("connected", "Connected"), ("disconnected", "Disconnected")],
                        db_default="connected",
                        default="connected",
                        help_text="A disconnected workspace is neither heard nor answered.",
                    ),
                ),
                ("installed_by", models.TextField(help_text="Who connected it.")),
                (
                    "installed_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        help_text="When it was connected (last).",
                    ),
                ),
                (
                    "ended_at",
                    models.DateTimeField(
                        blank=True, help_text="When it was disconnected.", null=True
                    ),
                ),
                (
                    "ended_because",
                    models.TextField(
                        blank=True, db_default="", default="", help_text="By whom, or by what."
                    ),
                ),
                (
                    "agent",
                    models.ForeignKey(
                        help_text="Who answers there.",
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="slack_installations",
                        to="orchestrator.agent",
                    ),
                ),
            ],
            options={
                "verbose_name": "Slack workspace",
                "ordering": ["workspace"],
                "constraints": [
                    models.UniqueConstraint(fields=("workspace",), name="slack_workspace"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("ended_at__isnull", True),
                                ("state", "connected"),
                                models.Q(("sealed_token", ""), _negated=True),
                            ),
                            models.Q(
                                ("ended_at__isnull", False),
                                ("sealed_token", ""),
                                ("state", "disconnected"),
                            ),
                            _connector="OR",
                        ),
                        name="slack_token_while_connected",
                    ),
                ],
            },
        ),
        ForceRowLevelSecurity("channels_slackinstallation"),
        GrantToApp("channels_slackinstallation", "INSERT", "UPDATE"),
    ]
