"""Notifications: recipients, and what they are notified of."""

import uuid

import django.contrib.postgres.fields
import django.contrib.postgres.functions
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import tenants.postgresql.expressions
from tenants.operations.comments import CommentOnTables
from tenants.operations.policies import ForceRowLevelSecurity, GrantToApp


class Migration(migrations.Migration):
    dependencies = [
        ("orchestrator", "0020_name_extractions"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="NotificationRecipient",
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
                    "destination",
                    models.TextField(
                        choices=[
                            ("member", "mail to a member of the team"),
                            ("mail", "mail to another address"),
                            ("slack", "Slack channel"),
                        ],
                        db_default="member",
                        default="member",
                        help_text="Where notifications are sent.",
                    ),
                ),
                (
                    "email",
                    models.EmailField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The address.",
                        max_length=254,
                        verbose_name="address",
                    ),
                ),
                (
                    "workspace",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Slack's id of a connected workspace.",
                        max_length=50,
                    ),
                ),
                (
                    "slack_channel",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Slack's id of the channel, such as C024BE7LR. Invite the bot to"
                        " it.",
                        max_length=50,
                        verbose_name="Slack channel",
                    ),
                ),
                (
                    "events",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(
                            choices=[
                                ("escalation_opened", "A user waits for a person"),
                                ("escalation_waits", "A user waits too long for a person"),
                                (
                                    "consent_waits",
                                    "A tool call waits too long for the user's consent",
                                ),
                                ("job_failed", "A reply, delivery or other job failed for good"),
                                ("erasure_due", "An erasure was requested and is not done"),
                                ("review_queue", "Many proposed facts wait for a review"),
                            ]
                        ),
                        help_text="What is notified.",
                        size=None,
                    ),
                ),
                (
                    "wait_minutes",
                    models.PositiveIntegerField(
                        db_default=15,
                        default=15,
                        help_text="After how many minutes a user waits too long for a person, a"
                        " tool call for consent, and an erasure for its end.",
                        verbose_name="minutes that are too long",
                    ),
                ),
                (
                    "review_threshold",
                    models.PositiveIntegerField(
                        db_default=20,
                        default=20,
                        help_text="From how many proposed facts on, once a day (UTC).",
                        verbose_name="proposed facts",
                    ),
                ),
                (
                    "digest_minutes",
                    models.PositiveIntegerField(
                        db_default=5,
                        default=5,
                        help_text="At most one notification in so many minutes, which lists all"
                        " that is new. 0: at once.",
                        verbose_name="minutes between two notifications",
                    ),
                ),
                (
                    "quiet_from",
                    models.TimeField(
                        blank=True,
                        help_text="Nothing is sent from this time of day on …",
                        null=True,
                    ),
                ),
                (
                    "quiet_until",
                    models.TimeField(
                        blank=True, help_text="… until this one. It is sent then.", null=True
                    ),
                ),
                (
                    "time_zone",
                    models.TextField(
                        db_default="UTC",
                        default="UTC",
                        help_text="Of these times, such as Europe/Berlin.",
                    ),
                ),
                (
                    "includes_question",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Include what the user wrote last. Otherwise there is a link, and"
                        " nothing of a conversation.",
                        verbose_name="include the question",
                    ),
                ),
                (
                    "is_active",
                    models.BooleanField(
                        db_default=True,
                        default=True,
                        help_text="Whether anything is sent.",
                        verbose_name="active",
                    ),
                ),
                (
                    "last_sent_at",
                    models.DateTimeField(
                        blank=True,
                        editable=False,
                        help_text="When a notification was sent last.",
                        null=True,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                        help_text="Since when. Jobs that failed before are not notified.",
                    ),
                ),
                (
                    "member",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        help_text="The member of the team, at the address of their account.",
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "notification recipient",
                "verbose_name_plural": "notifications",
                "ordering": ["created_at", "id"],
            },
        ),
        migrations.CreateModel(
            name="Notification",
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
                    "event",
                    models.TextField(
                        choices=[
                            ("escalation_opened", "A user waits for a person"),
                            ("escalation_waits", "A user waits too long for a person"),
                            ("consent_waits", "A tool call waits too long for the user's consent"),
                            ("job_failed", "A reply, delivery or other job failed for good"),
                            ("erasure_due", "An erasure was requested and is not done"),
                            ("review_queue", "Many proposed facts wait for a review"),
                        ],
                        help_text="Of what.",
                    ),
                ),
                (
                    "subject_id",
                    models.UUIDField(help_text="The escalation, tool call, job or erasure."),
                ),
                ("occurred_at", models.DateTimeField(help_text="Since when it is so.")),
                (
                    "agent_id",
                    models.UUIDField(
                        blank=True, help_text="The agent.", null=True, verbose_name="agent"
                    ),
                ),
                (
                    "user_id",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The user that it is about.",
                        verbose_name="user",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        help_text="When it was noticed.",
                    ),
                ),
                (
                    "batch",
                    models.UUIDField(
                        blank=True,
                        help_text="Those that are sent together. Empty: not yet begun.",
                        null=True,
                    ),
                ),
                (
                    "sent_at",
                    models.DateTimeField(blank=True, help_text="When it was sent.", null=True),
                ),
                (
                    "recipient",
                    models.ForeignKey(
                        db_index=False,
                        help_text="Who.",
                        on_delete=django.db.models.deletion.CASCADE,
                        to="orchestrator.notificationrecipient",
                    ),
                ),
            ],
            options={
                "verbose_name": "notification",
            },
        ),
        migrations.AddConstraint(
            model_name="notificationrecipient",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("destination", "member"), ("member__isnull", False)),
                    models.Q(("destination", "mail"), models.Q(("email", ""), _negated=True)),
                    models.Q(
                        ("destination", "slack"),
                        models.Q(("workspace", ""), _negated=True),
                        models.Q(("slack_channel", ""), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="notification_destination",
            ),
        ),
        migrations.AddConstraint(
            model_name="notificationrecipient",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("quiet_from__isnull", True), ("quiet_until__isnull", True)),
                    models.Q(("quiet_from__isnull", False), ("quiet_until__isnull", False)),
                    _connector="OR",
                ),
                name="notification_quiet_hours",
            ),
        ),
        migrations.AddConstraint(
            model_name="notificationrecipient",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("wait_minutes__range", (1, 10080)),
                    ("digest_minutes__lte", 10080),
                    ("review_threshold__range", (1, 10000)),
                ),
                name="notification_limits",
            ),
        ),
        migrations.AddIndex(
            model_name="notification",
            index=models.Index(
                condition=models.Q(("sent_at__isnull", True)),
                fields=["recipient", "created_at"],
                name="notification_pending",
            ),
        ),
        migrations.AddIndex(
            model_name="notification",
            index=models.Index(fields=["user_id"], name="notification_user"),
        ),
        migrations.AddConstraint(
            model_name="notification",
            constraint=models.UniqueConstraint(
                fields=("recipient", "event", "subject_id", "occurred_at"), name="notification_once"
            ),
        ),
        ForceRowLevelSecurity("orchestrator_notificationrecipient"),
        GrantToApp("orchestrator_notificationrecipient", "INSERT", "UPDATE", "DELETE"),
        ForceRowLevelSecurity("orchestrator_notification"),
        GrantToApp("orchestrator_notification", "INSERT", "UPDATE", "DELETE"),
        CommentOnTables(
            {
                "NotificationRecipient": "A person or a Slack channel, of what they are notified,"
                " and when.",
                "Notification": "That a recipient is notified of an event, once. It has nothing of"
                " what was said.",
            }
        ),
    ]
