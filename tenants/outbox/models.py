"""Tables of the outbox: events, the programs and people that get them, and the deliveries."""

from django.contrib.postgres.fields import ArrayField
from django.core.validators import RegexValidator
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext, gettext_lazy as _

from tenants import exceptions, fields, jobs
from tenants.models import TenantModel
from tenants.personal_data import Merge, NoPersonalData, PersonalData, rows_of_user

MAX_WAIT_MINUTES = 7 * 24 * 60
MAX_ADDRESSES = 20


class ReceiverRefused(exceptions.KonstructError):
    """A receiver that no attempt can reach, or that wants no more events."""


# The key is the id of the delivery. Attempts 1 to 11 take less than two hours, all take a day.
NOTIFICATIONS = jobs.JobKind(
    name="notification",
    # Given by name: it needs the channels, which import this module.
    do="konstruct.channels.webhooks.send",
    queue="deliveries",
    max_attempts=34,
    first_backoff=5.0,
    max_backoff=3600.0,
    is_final=lambda error: isinstance(error, ReceiverRefused),
    # A channel's rate limit.
    is_busy=lambda error: hasattr(error, "retry_after"),
)


class EventType(models.TextChoices):
    """The type of an event. `subject_id` is the id of the object before the dot."""

    MESSAGE_ANSWERED = "message.answered", "A message was answered"
    MESSAGE_FAILED = "message.failed", "The reply to a message failed for good"
    MESSAGE_CLOSED = "message.closed", "A message was closed without a reply"
    ESCALATION_OPENED = "escalation.opened", "A user waits for a person"
    ESCALATION_WAITING = "escalation.waiting", "A message waits for a person"
    ESCALATION_ANSWERED = "escalation.answered", "A person answered a user"
    ESCALATION_RESOLVED = "escalation.resolved", "An escalation was resolved"
    TOOL_CALL_WAITING = "tool_call.waiting", "A tool call waits for consent, or for a program"
    FACT_PROPOSED = "fact.proposed", "A fact waits for a review"
    FACT_ACTIVE = "fact.active", "A fact is active"
    FACT_SUPERSEDED = "fact.superseded", "A fact was superseded by a newer one"
    FACT_RETRACTED = "fact.retracted", "A fact was retracted"
    ERASURE_REQUESTED = "erasure.requested", "An erasure was requested"
    ERASURE_DONE = "erasure.done", "An erasure is done"
    IMPORT_DONE = "import.done", "An import of history is done"
    QUOTA_REACHED = "quota.reached", "A quota is at its soft or hard limit"
    JOB_FAILED = "job.failed", "A reply, delivery or other job failed for good"


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
        help_text="Id of the message with an answer or a tool call; or name of the quota."
    )
    created_at = models.DateTimeField(db_default=Now(), help_text="When it happened.")

    personal_data = rows_of_user(derived="subject_id = ANY(%(ids)s)")

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


class Target(models.TextChoices):
    """How events are sent."""

    WEBHOOK = "webhook", "program"
    MAIL = "mail", "mail"
    SLACK = "slack", "Slack channel"


class Subscription(TenantModel):
    """Types of events that are sent to a program, by mail, or to a Slack channel."""

    id = fields.random_id()
    target = fields.choice(Target.WEBHOOK, "destination", help_text="Where events are sent.")
    url = models.URLField(
        "URL",
        max_length=2000,
        blank=True,
        default="",
        db_default="",
        help_text="Address of the program. It gets a POST for each event.",
    )
    addresses = ArrayField(
        models.EmailField(),
        size=MAX_ADDRESSES,
        blank=True,
        default=list,
        db_default=models.Value([], output_field=ArrayField(models.EmailField())),
        help_text="Mail addresses, separated by commas. A deactivated member of the team gets no "
        "mail.",
    )
    workspace = fields.optional_char(
        max_length=50, help_text="Slack's id of a connected workspace."
    )
    slack_channel = fields.optional_char(
        "Slack channel",
        max_length=50,
        validators=[
            RegexValidator(
                r"^[CG][A-Z0-9]{5,49}\Z",
                _(
                    "This is not the id of a Slack channel, such as C024BE7LR. Slack shows it at"
                    " the end of the channel's details."
                ),
            )
        ],
        help_text="Slack's id of the channel, such as C024BE7LR. Invite the bot to it.",
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
        help_text="Whether texts are sent too: of messages and facts to programs, and the user's "
        "last message to people. Otherwise only ids or a link are.",
    )
    wait_minutes = fields.number(
        15,
        "maximum wait in minutes",
        help_text="Maximum wait in minutes: of a message for a person, of a tool call for consent, "
        "of an erasure for its end. People are notified of what waits longer.",
    )
    review_threshold = fields.number(
        20,
        "proposed facts",
        help_text="Minimum number of proposed facts, at most one notification a day (UTC).",
    )
    is_active = fields.flag("active", default=True, help_text="Whether events are sent.")
    description = fields.optional_text(help_text="What the program does.")
    secret = fields.optional_text(editable=False, help_text="The secret, encrypted.")
    previous_secret = fields.optional_text(
        editable=False, help_text="The secret before the last rotation, encrypted."
    )
    previous_until = fields.optional_time(
        editable=False, help_text="Until then events are signed by the previous secret too."
    )
    created_at = models.DateTimeField(
        db_default=Now(), editable=False, help_text="Time of creation. Earlier events are not sent."
    )

    personal_data = NoPersonalData("addresses of the tenant's programs, people and channels")

    class Meta:
        verbose_name = "subscription"
        verbose_name_plural = "notifications and webhooks"
        ordering = ["created_at", "id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(target=Target.WEBHOOK) & ~models.Q(url="") & ~models.Q(secret="")
                | models.Q(target=Target.MAIL, addresses__len__gte=1)
                | models.Q(target=Target.SLACK)
                & ~models.Q(workspace="")
                & ~models.Q(slack_channel=""),
                name="subscription_target",
            ),
            models.CheckConstraint(
                condition=models.Q(wait_minutes__range=(1, MAX_WAIT_MINUTES))
                & models.Q(review_threshold__range=(1, 10_000)),
                name="subscription_limits",
            ),
        ]

    def __str__(self) -> str:
        if self.target == Target.SLACK:
            return gettext("%(channel)s in %(workspace)s") % {
                "channel": self.slack_channel,
                "workspace": self.workspace,
            }
        return self.url or ", ".join(self.addresses)


_OF_PERSON = (
    f"event_id IN (SELECT id FROM outbox_outboxevent WHERE {OutboxEvent.personal_data.of_person})"  # noqa: S608
)

_OF_MESSAGES = "event_id IN (SELECT id FROM outbox_outboxevent WHERE subject_id = ANY(%(ids)s))"


class EventDelivery(TenantModel):
    """An event for a subscription. Until it is delivered, it has a job with its id."""

    id = fields.random_id()
    subscription = models.ForeignKey(
        Subscription,
        on_delete=models.CASCADE,
        db_index=False,
        verbose_name="recipient",
        help_text="The webhook, the mail addresses or the Slack channel.",
    )
    event = models.ForeignKey(
        OutboxEvent, on_delete=models.CASCADE, related_name="deliveries", help_text="The event."
    )
    status = fields.optional_number(help_text="HTTP status of the last response.")
    created_at = models.DateTimeField(db_default=Now(), help_text="When it was enqueued.")
    delivered_at = fields.optional_time(help_text="When it was sent and accepted.")

    personal_data = PersonalData(
        where=_OF_PERSON,
        derived=_OF_MESSAGES,
        key="id",
        merge=Merge(unchanged="the event has the user's id"),
    )

    class Meta:
        verbose_name = "sent event"
        ordering = ["-created_at", "id"]
        constraints = [
            models.UniqueConstraint(fields=["subscription", "event"], name="event_delivery_once")
        ]
        indexes = [
            models.Index(fields=["subscription", "-created_at"], name="event_delivery_newest"),
            models.Index(fields=["-created_at", "id"], name="event_delivery_all"),
        ]

    def __str__(self) -> str:
        return gettext("%(event)s to %(recipient)s") % {
            "event": self.event,
            "recipient": self.subscription,
        }
