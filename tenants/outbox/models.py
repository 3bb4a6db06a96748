"""Tables of the outbox: events, webhooks, and the deliveries of events to webhooks."""

from typing import Final, Self

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext

from tenants import fields
from tenants.exceptions import KonstructError
from tenants.jobs import JobKind
from tenants.models import TenantModel
from tenants.personal_data import Merge, NoPersonalData, PersonalData, rows_of_user


class ReceiverRefused(KonstructError):
    """A webhook that no attempt can reach, or that wants no more events."""


# The key is the id of the delivery. Attempts 1 to 11 take less than two hours, all take a day.
WEBHOOKS: Final = JobKind(
    name="webhook",
    # Given by name: it needs the channels, which import this module.
    do="konstruct.channels.webhooks.send",
    queue="deliveries",
    max_attempts=34,
    first_backoff=5.0,
    max_backoff=3600.0,
    is_final=lambda error: isinstance(error, ReceiverRefused),
)


class EventType(models.TextChoices):
    """The type of an event. `subject_id` is the id of the object before the dot."""

    MESSAGE_ANSWERED = "message.answered", "A message was answered"
    MESSAGE_FAILED = "message.failed", "The reply to a message failed for good"
    MESSAGE_CLOSED = "message.closed", "A message was closed without a reply"
    ESCALATION_OPENED = "escalation.opened", "A user waits for a person"
    ESCALATION_ANSWERED = "escalation.answered", "A person answered a user"
    ESCALATION_RESOLVED = "escalation.resolved", "An escalation was resolved"
    TOOL_CALL_WAITING = "tool_call.waiting", "A tool call waits for consent, or for a program"
    FACT_PROPOSED = "fact.proposed", "A fact waits for a review"
    FACT_ACTIVE = "fact.active", "A fact is active"
    FACT_SUPERSEDED = "fact.superseded", "A fact was superseded by a newer one"
    FACT_RETRACTED = "fact.retracted", "A fact was retracted"
    ERASURE_DONE = "erasure.done", "An erasure is done"
    QUOTA_REACHED = "quota.reached", "A quota is at its soft or hard limit"


class OutboxEvent(TenantModel):
    """An event, written in the transaction of its change. It has ids, and no content."""

    id = fields.random_id()
    number = models.BigIntegerField(
        null=True,
        unique=True,
        editable=False,
        help_text="Place in the order of events, given when the event is first read.",
    )
    type = models.TextField(choices=EventType, help_text="The type.")
    subject_id = models.UUIDField(help_text="Id of the message, escalation, fact …")
    agent_id = fields.optional_id("agent", help_text="The agent.")
    user_id = fields.optional_text("user", help_text="The user.")
    thread_id = fields.optional_text("thread", help_text="The conversation.")
    detail = fields.optional_text(
        help_text="Id of the message with an answer; or name of the quota."
    )
    created_at = models.DateTimeField(db_default=Now(), help_text="When it happened.")

    personal_data = rows_of_user(
        derived="subject_id = ANY(%(ids)s)",
    )

    class Meta:
        verbose_name = "event"
        ordering = ["-created_at", "id"]
        indexes = [
            models.Index(
                fields=["created_at", "id"],
                condition=models.Q(number__isnull=True),
                name="event_without_number",
            ),
            models.Index(fields=["user_id"], name="event_user"),
            models.Index(fields=["subject_id"], name="event_subject"),
            models.Index(fields=["-created_at", "id"], name="event_newest"),
        ]

    def __str__(self) -> str:
        return self.get_type_display()


class WebhookQuerySet(models.QuerySet["Webhook"]):
    """Webhooks of a tenant."""

    def active(self) -> Self:
        """Those that get events."""
        return self.filter(is_active=True)


class Webhook(TenantModel):
    """An address of a program that gets events, signed by its secret."""

    id = fields.random_id()
    url = models.URLField(
        "URL",
        max_length=2000,
        help_text="Address of the program. It gets a POST for each event.",
    )
    types = ArrayField(
        models.TextField(choices=EventType),
        verbose_name="events",
        blank=True,
        default=list,
        db_default=models.Value([], output_field=ArrayField(models.TextField())),
        help_text="Types of events that are sent. None: all.",
    )
    includes_content = fields.flag(
        "include content",
        default=False,
        help_text="Whether texts of messages and facts are sent too. Otherwise only ids are.",
    )
    is_active = fields.flag("active", default=True, help_text="Whether events are sent.")
    description = fields.optional_text(help_text="What the program does.")
    secret = models.TextField(editable=False, help_text="The secret, encrypted.")
    previous_secret = fields.optional_text(
        editable=False, help_text="The secret before the last rotation, encrypted."
    )
    previous_until = fields.optional_time(
        editable=False, help_text="Until then events are signed by the previous secret too."
    )
    created_at = models.DateTimeField(
        db_default=Now(), editable=False, help_text="Time of creation. Earlier events are not sent."
    )

    objects = WebhookQuerySet.as_manager()

    personal_data = NoPersonalData("addresses of the tenant's programs")

    class Meta:
        verbose_name = "webhook"
        ordering = ["created_at", "id"]

    def __str__(self) -> str:
        return self.url


_OF_PERSON: Final = (
    f"event_id IN (SELECT id FROM outbox_outboxevent WHERE {OutboxEvent.personal_data.of_person})"  # noqa: S608
)

_OF_MESSAGES: Final = (
    "event_id IN (SELECT id FROM outbox_outboxevent WHERE subject_id = ANY(%(ids)s))"
)


class WebhookDelivery(TenantModel):
    """An event for a webhook. Until it is delivered or given up, it has a job with its id."""

    id = fields.random_id()
    webhook = models.ForeignKey(
        Webhook, on_delete=models.CASCADE, db_index=False, help_text="The webhook."
    )
    event = models.ForeignKey(
        OutboxEvent, on_delete=models.CASCADE, related_name="deliveries", help_text="The event."
    )
    status = fields.optional_number(help_text="HTTP status of the last response.")
    created_at = models.DateTimeField(db_default=Now(), help_text="When it was enqueued.")
    delivered_at = fields.optional_time(help_text="When the webhook accepted it.")

    personal_data = PersonalData(
        where=_OF_PERSON,
        derived=_OF_MESSAGES,
        key="id",
        merge=Merge(unchanged="the event has the user's id"),
    )

    class Meta:
        verbose_name = "webhook delivery"
        verbose_name_plural = "webhook deliveries"
        ordering = ["-created_at", "id"]
        indexes = [
            models.Index(fields=["webhook", "-created_at"], name="webhook_delivery_newest"),
            models.Index(fields=["-created_at", "id"], name="webhook_delivery_all"),
        ]

    def __str__(self) -> str:
        return gettext("%(event)s to %(webhook)s") % {"event": self.event, "webhook": self.webhook}
