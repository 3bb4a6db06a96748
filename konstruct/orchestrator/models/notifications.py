"""Tables of notifications: their recipients, and sent and pending notifications."""

from typing import Final, Self

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext

from tenants import fields
from tenants.models import TenantModel
from tenants.personal_data import NoPersonalData, rows_of_user

MAX_WAIT_MINUTES: Final = 7 * 24 * 60


class Event(models.TextChoices):
    """An event that causes notifications."""

    ESCALATION_OPENED = "escalation_opened", "A user waits for a person"
    ESCALATION_WAITS = "escalation_waits", "A user waits too long for a person"
    CONSENT_WAITS = "consent_waits", "A tool call waits too long for the user's consent"
    JOB_FAILED = "job_failed", "A reply, delivery or other job failed for good"
    ERASURE_DUE = "erasure_due", "An erasure was requested and is not done"
    REVIEW_QUEUE = "review_queue", "Many proposed facts wait for a review"
    QUOTA_REACHED = "quota_reached", "A quota is reached, or nearly"


class Destination(models.TextChoices):
    """How a recipient is reached."""

    MEMBER = "member", "mail to a member of the team"
    MAIL = "mail", "mail to another address"
    SLACK = "slack", "Slack channel"


class NotificationRecipientQuerySet(models.QuerySet["NotificationRecipient"]):
    """Recipients of a tenant."""

    def active(self) -> Self:
        """Those that are notified: switched on, and not a member who was deactivated."""
        is_gone = models.Q(destination=Destination.MEMBER, member__is_active=False)
        return self.filter(is_active=True).exclude(is_gone)


class NotificationRecipient(TenantModel):
    """A person or a Slack channel that receives notifications, with its events."""

    id = fields.random_id()
    destination = fields.choice(Destination.MEMBER, help_text="Where notifications are sent.")
    member = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        # Members are deactivated, not deleted. Operators are users too, and have no such table.
        on_delete=models.DO_NOTHING,
        null=True,
        blank=True,
        db_index=False,  # a tenant has few recipients
        related_name="+",
        help_text="The member of the team, at the address of their account.",
    )
    email = models.EmailField(
        "address", blank=True, default="", db_default="", help_text="The address."
    )
    workspace = fields.optional_char(
        max_length=50, help_text="Slack's id of a connected workspace."
    )
    slack_channel = fields.optional_char(
        "Slack channel",
        max_length=50,
        help_text="Slack's id of the channel, such as C024BE7LR. Invite the bot to it.",
    )
    events = ArrayField(
        models.TextField(choices=Event), help_text="Events that cause a notification."
    )
    wait_minutes = fields.number(
        15,
        "maximum wait in minutes",
        help_text="Maximum wait in minutes: of a user for a person, of a tool call for consent, "
        "of an erasure for its end.",
    )
    review_threshold = fields.number(
        20,
        "proposed facts",
        help_text="Minimum number of proposed facts, at most one notification a day (UTC).",
    )
    includes_question = fields.flag(
        "include the question",
        default=False,
        help_text="Include the user's last message. Otherwise a notification has only a link.",
    )
    is_active = fields.flag("active", default=True, help_text="Whether anything is sent.")
    created_at = models.DateTimeField(
        db_default=Now(),
        editable=False,
        help_text="Time of creation. Jobs that failed earlier cause no notification.",
    )

    objects = NotificationRecipientQuerySet.as_manager()

    personal_data = NoPersonalData("addresses of the tenant's own people, and channels")

    class Meta:
        verbose_name = "notification recipient"
        verbose_name_plural = "notifications"
        ordering = ["created_at", "id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(destination=Destination.MEMBER, member__isnull=False)
                | (models.Q(destination=Destination.MAIL) & ~models.Q(email=""))
                | (
                    models.Q(destination=Destination.SLACK)
                    & ~models.Q(workspace="")
                    & ~models.Q(slack_channel="")
                ),
                name="notification_destination",
            ),
            models.CheckConstraint(
                condition=models.Q(wait_minutes__range=(1, MAX_WAIT_MINUTES))
                & models.Q(review_threshold__range=(1, 10_000)),
                name="notification_limits",
            ),
        ]

    def __str__(self) -> str:
        if self.destination == Destination.SLACK:
            return gettext("%(channel)s in %(workspace)s") % {
                "channel": self.slack_channel,
                "workspace": self.workspace,
            }
        return str(self.member) if self.destination == Destination.MEMBER else self.email


class Notification(TenantModel):
    """A notification of a recipient about an event, once. It has no content of messages.

    The job that sends it, of the kind "notification", has its id as a key.
    """

    id = fields.random_id()
    recipient = models.ForeignKey(
        NotificationRecipient, on_delete=models.CASCADE, db_index=False, help_text="The recipient."
    )
    event = models.TextField(choices=Event, help_text="The event.")
    subject_id = models.UUIDField(help_text="The escalation, tool call, job or erasure.")
    occurred_at = models.DateTimeField(help_text="When it began.")
    agent_id = fields.optional_id("agent", help_text="The agent.")
    user_id = fields.optional_text("user", help_text="The user of the event.")
    created_at = models.DateTimeField(db_default=Now(), help_text="When the event was detected.")
    sent_at = fields.optional_time(help_text="When it was sent.")

    personal_data = rows_of_user()

    class Meta:
        verbose_name = "notification"
        constraints = [
            models.UniqueConstraint(
                fields=["recipient", "event", "subject_id", "occurred_at"],
                name="notification_once",
            )
        ]
        indexes = [models.Index(fields=["user_id"], name="notification_user")]

    def __str__(self) -> str:
        return self.get_event_display()
