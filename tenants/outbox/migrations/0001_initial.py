"""Outbox: events for programs, webhooks and their deliveries, each table with its policy and grants."""

import uuid

import django.contrib.postgres.fields
import django.contrib.postgres.functions
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import tenants.postgresql.expressions
from tenants.operations import CommentOnTables, protect_tables

# What the application may do besides SELECT.
PRIVILEGES = {
    "outbox_outboxevent": ["INSERT", "UPDATE", "DELETE"],
    "outbox_webhook": ["INSERT", "UPDATE", "DELETE"],
    "outbox_webhookdelivery": ["INSERT", "UPDATE", "DELETE"],
}


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Webhook",
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
                    "url",
                    models.URLField(
                        help_text="Address of the program. It gets a POST for each event.",
                        max_length=2000,
                        verbose_name="URL",
                    ),
                ),
                (
                    "types",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(
                            choices=[
                                ("message.answered", "A message was answered"),
                                ("message.failed", "The reply to a message failed for good"),
                                (
                                    "message.closed",
                                    "A message was closed without a reply",
                                ),
                                ("escalation.opened", "A user waits for a person"),
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
                                ("erasure.done", "An erasure is done"),
                                ("quota.reached", "A quota is at its soft or hard limit"),
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
                        help_text="Whether texts of messages and facts are sent too. Otherwise only ids are.",
                        verbose_name="include content",
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
                ("secret", models.TextField(editable=False, help_text="The secret, encrypted.")),
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
                "verbose_name": "webhook",
                "ordering": ["created_at", "id"],
            },
        ),
        migrations.CreateModel(
            name="OutboxEvent",
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
                            ("erasure.done", "An erasure is done"),
                            ("quota.reached", "A quota is at its soft or hard limit"),
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
                        help_text="Id of the message with an answer; or name of the quota.",
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
            name="WebhookDelivery",
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
                        blank=True, help_text="When the webhook accepted it.", null=True
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
                    "webhook",
                    models.ForeignKey(
                        db_index=False,
                        help_text="The webhook.",
                        on_delete=django.db.models.deletion.CASCADE,
                        to="outbox.webhook",
                    ),
                ),
            ],
            options={
                "verbose_name": "webhook delivery",
                "verbose_name_plural": "webhook deliveries",
                "ordering": ["-created_at", "id"],
                "indexes": [
                    models.Index(fields=["webhook", "-created_at"], name="webhook_delivery_newest"),
                    models.Index(fields=["-created_at", "id"], name="webhook_delivery_all"),
                ],
            },
        ),
        *protect_tables(PRIVILEGES),
        CommentOnTables(
            tables={
                "OutboxEvent": "An event, written in the transaction of its change. It has ids, and no content.",
                "Webhook": "An address of a program that gets events, signed by its secret.",
                "WebhookDelivery": "An event for a webhook. Until it is delivered or given up, it has a job with its id.",
            },
        ),
    ]
