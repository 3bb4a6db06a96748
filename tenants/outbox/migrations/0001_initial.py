"""Outbox: events for programs, their subscriptions and deliveries, each table with its policy and grants."""

import uuid

import django.contrib.postgres.fields
import django.contrib.postgres.functions
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import tenants.fields
from tenants.operations import CommentOnTables, protect_tables

# What the application may do besides SELECT.
PRIVILEGES = {
    "outbox_outboxevent": ["INSERT", "UPDATE", "DELETE"],
    "outbox_subscription": ["INSERT", "UPDATE", "DELETE"],
    "outbox_eventdelivery": ["INSERT", "UPDATE", "DELETE"],
}


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Subscription",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=tenants.fields.CurrentTenant(), editable=False),
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
                    "target",
                    models.TextField(
                        choices=[
                            ("webhook", "program"),
                            ("mail", "mail"),
                            ("slack", "Slack channel"),
                        ],
                        db_default="webhook",
                        default="webhook",
                        help_text="Where events are sent.",
                        verbose_name="destination",
                    ),
                ),
                (
                    "url",
                    models.URLField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Address of the program. It gets a POST for each event.",
                        max_length=2000,
                        verbose_name="URL",
                    ),
                ),
                (
                    "addresses",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.EmailField(max_length=254),
                        blank=True,
                        db_default=models.Value(
                            [],
                            output_field=django.contrib.postgres.fields.ArrayField(
                                base_field=models.EmailField(max_length=254), size=None
                            ),
                        ),
                        default=list,
                        help_text="Mail addresses, separated by commas. A deactivated member of the team gets no mail.",
                        size=20,
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
                        help_text="Slack's id of the channel, such as C024BE7LR. Invite the bot to it.",
                        max_length=50,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[CG][A-Z0-9]{5,49}\\Z",
                                "This is not the id of a Slack channel, such as C024BE7LR. Slack shows it at the end of the channel's details.",
                            )
                        ],
                        verbose_name="Slack channel",
                    ),
                ),
                (
                    "types",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(
                            choices=[
                                ("message.answered", "A message was answered"),
                                ("message.failed", "The reply to a message failed for good"),
                                ("message.closed", "A message was closed without a reply"),
                                ("escalation.opened", "A user waits for a person"),
                                ("escalation.waiting", "A message waits for a person"),
                                ("escalation.answered", "A person answered a user"),
                                ("escalation.resolved", "An escalation was resolved"),
                                (
                                    "tool_call.waiting",
                                    "A tool call waits for consent, or for a program",
                                ),
                                ("fact.proposed", "A fact waits for a review"),
                                ("fact.active", "A fact is active"),
                                ("fact.superseded", "A fact was superseded by a newer one"),
                                ("fact.retracted", "A fact was retracted"),
                                ("erasure.requested", "An erasure was requested"),
                                ("erasure.done", "An erasure is done"),
                                ("import.done", "An import of history is done"),
                                ("quota.reached", "A quota is at its soft or hard limit"),
                                ("job.failed", "A reply, delivery or other job failed for good"),
                            ]
                        ),
                        blank=True,
                        db_default=models.Value(
                            [],
                            output_field=django.contrib.postgres.fields.ArrayField(
                                base_field=models.TextField(), size=None
                            ),
                        ),
                        default=list,
                        help_text="Types of events that are sent. None: all.",
                        size=None,
                        verbose_name="events",
                    ),
                ),
                (
                    "includes_content",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Whether texts are sent too: of messages and facts to programs, and the user's last message to people. Otherwise only ids or a link are.",
                        verbose_name="include content",
                    ),
                ),
                (
                    "wait_minutes",
                    models.PositiveIntegerField(
                        db_default=15,
                        default=15,
                        help_text="Maximum wait in minutes: of a message for a person, of a tool call for consent, of an erasure for its end. People are notified of what waits longer.",
                        verbose_name="maximum wait in minutes",
                    ),
                ),
                (
                    "review_threshold",
                    models.PositiveIntegerField(
                        db_default=20,
                        default=20,
                        help_text="Minimum number of proposed facts, at most one notification a day (UTC).",
                        verbose_name="proposed facts",
                    ),
                ),
                (
                    "is_active",
                    models.BooleanField(
                        db_default=True,
                        default=True,
                        help_text="Whether events are sent.",
                        verbose_name="active",
                    ),
                ),
                (
                    "description",
                    models.TextField(
                        blank=True, db_default="", default="", help_text="What the program does."
                    ),
                ),
                (
                    "secret",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        editable=False,
                        help_text="The secret, encrypted.",
                    ),
                ),
                (
                    "previous_secret",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        editable=False,
                        help_text="The secret before the last rotation, encrypted.",
                    ),
                ),
                (
                    "previous_until",
                    models.DateTimeField(
                        blank=True,
                        editable=False,
                        help_text="Until then events are signed by the previous secret too.",
                        null=True,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                        help_text="Time of creation. Earlier events are not sent.",
                    ),
                ),
            ],
            options={
                "verbose_name": "subscription",
                "verbose_name_plural": "notifications and webhooks",
                "ordering": ["created_at", "id"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("target", "webhook"),
                                models.Q(("url", ""), _negated=True),
                                models.Q(("secret", ""), _negated=True),
                            ),
                            models.Q(("addresses__len__gte", 1), ("target", "mail")),
                            models.Q(
                                ("target", "slack"),
                                models.Q(("workspace", ""), _negated=True),
                                models.Q(("slack_channel", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="subscription_target",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("wait_minutes__range", (1, 10080)),
                            ("review_threshold__range", (1, 10000)),
                        ),
                        name="subscription_limits",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="OutboxEvent",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=tenants.fields.CurrentTenant(), editable=False),
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
                    "number",
                    models.BigIntegerField(
                        editable=False,
                        help_text="Place in the order of events, given when the event is first read.",
                        null=True,
                        unique=True,
                    ),
                ),
                (
                    "type",
                    models.TextField(
                        choices=[
                            ("message.answered", "A message was answered"),
                            ("message.failed", "The reply to a message failed for good"),
                            ("message.closed", "A message was closed without a reply"),
                            ("escalation.opened", "A user waits for a person"),
                            ("escalation.waiting", "A message waits for a person"),
                            ("escalation.answered", "A person answered a user"),
                            ("escalation.resolved", "An escalation was resolved"),
                            (
                                "tool_call.waiting",
                                "A tool call waits for consent, or for a program",
                            ),
                            ("fact.proposed", "A fact waits for a review"),
                            ("fact.active", "A fact is active"),
                            ("fact.superseded", "A fact was superseded by a newer one"),
                            ("fact.retracted", "A fact was retracted"),
                            ("erasure.requested", "An erasure was requested"),
                            ("erasure.done", "An erasure is done"),
                            ("import.done", "An import of history is done"),
                            ("quota.reached", "A quota is at its soft or hard limit"),
                            ("job.failed", "A reply, delivery or other job failed for good"),
                        ],
                        help_text="The type.",
                    ),
                ),
                ("subject_id", models.UUIDField(help_text="Id of the message, escalation, fact …")),
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
                        help_text="The user.",
                        verbose_name="user",
                    ),
                ),
                (
                    "thread_id",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The conversation.",
                        verbose_name="thread",
                    ),
                ),
                (
                    "detail",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Id of the message with an answer or a tool call; or name of the quota.",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        help_text="When it happened.",
                    ),
                ),
            ],
            options={
                "verbose_name": "event",
                "ordering": ["-created_at", "id"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("number__isnull", True)),
                        fields=["created_at", "id"],
                        name="event_without_number",
                    ),
                    models.Index(fields=["user_id"], name="event_user"),
                    models.Index(fields=["subject_id"], name="event_subject"),
                    models.Index(fields=["-created_at", "id"], name="event_newest"),
                ],
            },
        ),
        migrations.CreateModel(
            name="EventDelivery",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=tenants.fields.CurrentTenant(), editable=False),
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
                    "status",
                    models.PositiveIntegerField(
                        blank=True, help_text="HTTP status of the last response.", null=True
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        help_text="When it was enqueued.",
                    ),
                ),
                (
                    "delivered_at",
                    models.DateTimeField(
                        blank=True, help_text="When it was sent and accepted.", null=True
                    ),
                ),
                (
                    "event",
                    models.ForeignKey(
                        help_text="The event.",
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="outbox.outboxevent",
                    ),
                ),
                (
                    "subscription",
                    models.ForeignKey(
                        db_index=False,
                        help_text="The webhook, the mail addresses or the Slack channel.",
                        on_delete=django.db.models.deletion.CASCADE,
                        to="outbox.subscription",
                        verbose_name="recipient",
                    ),
                ),
            ],
            options={
                "verbose_name": "sent event",
                "ordering": ["-created_at", "id"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("subscription", "event"), name="event_delivery_once"
                    )
                ],
                "indexes": [
                    models.Index(
                        fields=["subscription", "-created_at"], name="event_delivery_newest"
                    ),
                    models.Index(fields=["-created_at", "id"], name="event_delivery_all"),
                ],
            },
        ),
        *protect_tables(PRIVILEGES),
        CommentOnTables(
            tables={
                "OutboxEvent": "An event, written in the transaction of its change. It has ids, and no content.",
                "Subscription": "Types of events that are sent to a program, by mail, or to a Slack channel.",
                "EventDelivery": "An event for a subscription. Until it is delivered, it has a job with its id.",
            },
        ),
    ]
