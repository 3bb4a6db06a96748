"""Channels: what arrives, what is shown where, and Slack, each table with its policy and grants."""

import uuid

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID
from django.core.validators import RegexValidator
from django.db import migrations, models
from django.db.models import deletion
from django.db.models.functions import Now

from tenants.fields import CurrentTenant
from tenants.operations import CommentOnTables, protect_tables

# What the application may do besides SELECT. A table with INSERT alone is append-only.
PRIVILEGES = {
    "channels_delivery": ["INSERT", "UPDATE"],
    "channels_slackinstallation": ["INSERT", "UPDATE"],
    "channels_arrival": ["INSERT", "UPDATE", "DELETE"],
    "channels_slackmember": ["INSERT", "UPDATE", "DELETE"],
}


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("memory", "0001_initial"),
        ("orchestrator", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Delivery",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                (
                    "message",
                    models.OneToOneField(
                        on_delete=deletion.PROTECT,
                        primary_key=True,
                        related_name="delivery",
                        serialize=False,
                        to="memory.message",
                    ),
                ),
                ("channel", models.TextField(help_text="slack …")),
                (
                    "address",
                    models.JSONField(help_text="Where it is shown, in the channel's own format."),
                ),
                (
                    "posted",
                    models.JSONField(
                        blank=True,
                        db_default=models.Value([], output_field=models.JSONField()),
                        default=list,
                        help_text="Posts that show it: their ids, and digests of their content.",
                    ),
                ),
                (
                    "intent",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="The post that was being created. It may exist in the channel with an unknown id.",
                        null=True,
                    ),
                ),
                (
                    "delivered_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="Since when the channel shows the current state of the message. Empty: a delivery is pending.",
                        null=True,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=Now(),
                        help_text="When the message was accepted.",
                    ),
                ),
            ],
            options={
                "verbose_name": "delivery",
                "verbose_name_plural": "deliveries",
                "indexes": [
                    models.Index(fields=["created_at", "message"], name="delivery_created")
                ],
            },
        ),
        migrations.CreateModel(
            name="SlackInstallation",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                (
                    "id",
                    models.UUIDField(
                        db_default=RandomUUID(),
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
                        help_text="Slack's user id of the bot, used in mentions.",
                        max_length=255,
                    ),
                ),
                (
                    "scopes",
                    ArrayField(
                        base_field=models.TextField(),
                        blank=True,
                        db_default=models.Value(
                            [],
                            output_field=ArrayField(base_field=models.TextField(), size=None),
                        ),
                        default=list,
                        help_text="OAuth scopes that Slack granted to the bot.",
                        size=None,
                    ),
                ),
                (
                    "state",
                    models.TextField(
                        choices=[("connected", "Connected"), ("disconnected", "Disconnected")],
                        db_default="connected",
                        default="connected",
                        help_text="Events of a disconnected workspace are ignored.",
                    ),
                ),
                ("installed_by", models.TextField(help_text="The person who connected it.")),
                (
                    "installed_at",
                    models.DateTimeField(
                        db_default=Now(),
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
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Reason of the disconnection.",
                    ),
                ),
                (
                    "agent",
                    models.ForeignKey(
                        db_index=False,
                        help_text="The agent that answers in this workspace.",
                        on_delete=deletion.PROTECT,
                        related_name="slack_installations",
                        to="orchestrator.agent",
                    ),
                ),
                (
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
                                models.Q(("encrypted_token", ""), _negated=True),
                            ),
                            models.Q(
                                ("encrypted_token", ""),
                                ("ended_at__isnull", False),
                                ("state", "disconnected"),
                            ),
                            _connector="OR",
                        ),
                        name="slack_token_while_connected",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Arrival",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                (
                    "id",
                    models.UUIDField(
                        help_text="It is derived from the deduplication key.",
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("channel", models.TextField(help_text="slack …")),
                (
                    "workspace",
                    models.TextField(
                        help_text="The workspace in the channel. Its events are processed in order."
                    ),
                ),
                (
                    "key",
                    models.CharField(
                        help_text="Deduplication key: an event can arrive more than once.",
                        max_length=255,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=Now(),
                        help_text="When it arrived.",
                    ),
                ),
                (
                    "event",
                    models.JSONField(
                        db_column="heard",
                        help_text="The event: the message, its sender and its place.",
                    ),
                ),
            ],
            options={
                "verbose_name": "arrival",
                "constraints": [models.UniqueConstraint(fields=("key",), name="arrival_key")],
            },
        ),
        migrations.CreateModel(
            name="SlackMember",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                (
                    "id",
                    models.UUIDField(
                        db_default=RandomUUID(),
                        default=uuid.uuid4,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "slack_id",
                    models.CharField(
                        help_text="Slack's id of the person: Profile, Copy member ID, such as U024BE7LH.",
                        max_length=50,
                        validators=[
                            RegexValidator(
                                "^[UW][A-Z0-9]{5,49}\\Z",
                                "This is not the id of a Slack user, such as U024BE7LH. Slack copies it in the person's profile: More, Copy member ID.",
                            )
                        ],
                        verbose_name="Slack user",
                    ),
                ),
                (
                    "installation",
                    models.ForeignKey(
                        db_index=False,
                        help_text="The workspace.",
                        on_delete=deletion.CASCADE,
                        to="channels.slackinstallation",
                        verbose_name="workspace",
                    ),
                ),
                (
                    "member",
                    models.ForeignKey(
                        db_index=False,
                        help_text="Actions of this account have this member's permissions and are logged under this member's name.",
                        on_delete=deletion.DO_NOTHING,
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
        *protect_tables(PRIVILEGES),
        CommentOnTables(
            tables={
                "Arrival": "An event of a channel: stored before the channel is answered, removed when it is processed.",
                "Delivery": "A message that is shown in a channel: where it is shown, and by which posts.",
                "SlackInstallation": "A Slack workspace of the tenant, with its agent and the token of the bot.",
                "SlackMember": "The Slack account of a member of the team, who can answer users from Slack.",
            },
        ),
    ]
