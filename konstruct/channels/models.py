"""Tables of the channels: workspaces that are connected, and what is to be shown in them."""

import uuid
from typing import Self

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID
from django.db import models
from django.db.models.functions import Now

from konstruct.orchestrator.models import Agent, ChannelIdentity
from memory.models import Message
from tenants.models import TenantModel
from tenants.personal_data import NoPersonalData, PersonalData


class SlackInstallationQuerySet(models.QuerySet["SlackInstallation"]):
    """Slack workspaces of a tenant."""

    def connected(self) -> Self:
        """Those that we hear and speak in."""
        return self.filter(state=SlackInstallation.State.CONNECTED)


class SlackInstallation(TenantModel):
    """A Slack workspace of the tenant's, the agent that answers there, and the right to speak.

    It stays when it is disconnected, without its token.
    """

    class State(models.TextChoices):
        CONNECTED = "connected"
        DISCONNECTED = "disconnected"

    id = models.UUIDField(
        primary_key=True, default=uuid.uuid4, db_default=RandomUUID(), editable=False
    )
    workspace = models.CharField(
        max_length=255, help_text="Slack's id of the workspace, such as T024BE7LD."
    )
    name = models.TextField(
        blank=True, default="", db_default="", help_text="The workspace's name in Slack."
    )
    agent = models.ForeignKey(
        Agent,
        on_delete=models.PROTECT,
        related_name="slack_installations",
        db_index=False,  # a tenant has few of them
        help_text="Who answers there.",
    )
    bot_user_id = models.CharField(
        max_length=255, help_text="Slack's id of our bot there, by which it is mentioned."
    )
    encrypted_token = models.TextField(
        db_column="sealed_token",
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="The bot's token, encrypted; empty once it is disconnected.",
    )
    scopes = ArrayField(
        models.TextField(),
        default=list,
        db_default=models.Value([], output_field=ArrayField(models.TextField())),
        blank=True,
        help_text="What Slack lets the bot do.",
    )
    state = models.TextField(
        choices=State,
        default=State.CONNECTED,
        db_default=State.CONNECTED,
        help_text="A disconnected workspace is neither heard nor answered.",
    )
    installed_by = models.TextField(help_text="Who connected it.")
    installed_at = models.DateTimeField(db_default=Now(), help_text="When it was connected (last).")
    ended_at = models.DateTimeField(null=True, blank=True, help_text="When it was disconnected.")
    ended_because = models.TextField(
        blank=True, default="", db_default="", help_text="By whom, or by what."
    )

    objects = SlackInstallationQuerySet.as_manager()

    personal_data = NoPersonalData(
        "workspaces, and who of the tenant's own people connected them", columns=("bot_user_id",)
    )

    class Meta:
        verbose_name = "Slack workspace"
        ordering = ["workspace"]
        constraints = [
            models.UniqueConstraint(fields=["workspace"], name="slack_workspace"),
            models.CheckConstraint(
                condition=models.Q(state="connected", ended_at__isnull=True)
                & ~models.Q(encrypted_token="")
                | models.Q(state="disconnected", ended_at__isnull=False, encrypted_token=""),
                name="slack_token_while_connected",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name or self.workspace}"


class SlackUser(TenantModel):
    """What somebody is called in a Slack workspace, looked up now and then."""

    id = models.UUIDField(
        primary_key=True, default=uuid.uuid4, db_default=RandomUUID(), editable=False
    )
    workspace = models.CharField(max_length=255, help_text="Slack's id of the workspace.")
    slack_id = models.CharField(max_length=255, help_text="Slack's id of the user.")
    user_id = models.TextField("user", help_text="Whose memory what they say becomes.")
    name = models.TextField(
        blank=True, default="", db_default="", help_text="What they are called there."
    )
    looked_up_at = models.DateTimeField(db_default=Now(), help_text="When Slack was asked.")

    # A name in a workspace belongs to no one agent. It is not exported: Slack is asked again.
    personal_data = PersonalData(subject="user_id", key="id")

    class Meta:
        verbose_name = "Slack user"
        constraints = [models.UniqueConstraint(fields=["workspace", "slack_id"], name="slack_user")]

    def __str__(self) -> str:
        return self.name or self.slack_id


class ArrivalQuerySet(models.QuerySet["Arrival"]):
    """What has arrived and is not taken in yet."""

    def waiting(self) -> Self:
        """Those that are still tried."""
        return self.filter(failed_at__isnull=True)

    def failed(self) -> Self:
        """Those that were given up."""
        return self.filter(failed_at__isnull=False)

    def due(self) -> Self:
        """Those that may be worked on now, in the order in which they came."""
        return self.waiting().filter(due_at__lte=Now()).order_by("id")


class Arrival(TenantModel):
    """Something that was said, as a channel told it: the inbox, removed when it is taken in.

    The channel is told that it has arrived once it stands here. A worker makes a message of it.
    """

    id = models.BigAutoField(primary_key=True)
    channel = models.TextField(help_text="slack …")
    workspace = models.TextField(help_text="Where in the channel. One after the other is taken in.")
    key = models.CharField(max_length=255, help_text="What it is once, however often it is told.")
    event = models.JSONField(db_column="heard", help_text="What was said, by whom, and where.")
    attempts = models.PositiveIntegerField(
        default=0, db_default=0, help_text="How often it was begun."
    )
    begun_at = models.DateTimeField(
        null=True, blank=True, help_text="When a worker began with it; empty when none is at work."
    )
    last_error = models.TextField(
        blank=True, default="", db_default="", help_text="Why it failed last."
    )
    due_at = models.DateTimeField(
        db_default=Now(), help_text="From when on it may be tried (again)."
    )
    sweep_at = models.DateTimeField(
        db_default=Now(),
        db_column="ring_at",
        help_text="From when on a worker may claim it, which the outbox is told.",
    )
    failed_at = models.DateTimeField(
        null=True, blank=True, help_text="When it was given up; empty while it is still tried."
    )
    created_at = models.DateTimeField(db_default=Now(), help_text="When it arrived.")

    objects = ArrivalQuerySet.as_manager()

    # Events of anybody who speaks as this user. Not exported: rows exist for a moment.
    personal_data = PersonalData(
        where="%(agent)s::uuid IS NULL AND (channel, workspace, heard ->> 'user') IN ("  # noqa: S608
        "SELECT channel, workspace, native_id FROM orchestrator_channelidentity"
        f" WHERE {ChannelIdentity.personal_data.of_person})",
        before=("orchestrator_channelidentity",),
    )

    class Meta:
        verbose_name = "arrival"
        constraints = [models.UniqueConstraint(fields=["key"], name="arrival_key")]

    def __str__(self) -> str:
        return self.key


class DeliveryQuerySet(models.QuerySet["Delivery"]):
    """What is to be shown."""

    def waiting(self) -> Self:
        """Those whose message changed since it was shown."""
        return self.filter(due_at__isnull=False, failed_at__isnull=True)

    def failed(self) -> Self:
        """Those that were given up: what is shown is not what should be."""
        return self.filter(failed_at__isnull=False)

    def due(self) -> Self:
        """Those that may be worked on now."""
        return self.waiting().filter(due_at__lte=Now())


class Delivery(TenantModel):
    """That the present state of a message is to be shown in its channel: the outbox of posts.

    It says no more than where, and what is shown already: what should be shown is asked of the
    message each time, so that a change that comes late, early or twice is all the same.
    """

    message = models.OneToOneField(
        Message, on_delete=models.PROTECT, primary_key=True, related_name="delivery"
    )
    channel = models.TextField(help_text="slack …")
    address = models.JSONField(help_text="Where it is shown, in the channel's own terms.")
    posted = models.JSONField(
        default=list,
        db_default=models.Value([], output_field=models.JSONField()),
        blank=True,
        help_text="The posts that show it: their ids, and digests of what they show.",
    )
    intent = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="The post that was about to be made: it may stand though we do not know its id.",
    )
    version = models.PositiveBigIntegerField(
        default=1, db_default=1, help_text="Counts the changes of what is to be shown."
    )
    attempts = models.PositiveIntegerField(
        default=0, db_default=0, help_text="How often it was begun."
    )
    begun_at = models.DateTimeField(
        null=True, blank=True, help_text="When a worker began with it; empty when none is at work."
    )
    last_error = models.TextField(
        blank=True, default="", db_default="", help_text="Why it failed last."
    )
    due_at = models.DateTimeField(
        null=True,
        blank=True,
        db_default=Now(),
        help_text="From when on it may be tried (again); empty while what is shown is right.",
    )
    sweep_at = models.DateTimeField(
        db_default=Now(),
        db_column="ring_at",
        help_text="From when on a worker may claim it, which the outbox is told.",
    )
    failed_at = models.DateTimeField(
        null=True, blank=True, help_text="When it was given up; empty while it is still tried."
    )
    delivered_at = models.DateTimeField(
        null=True, blank=True, help_text="When what was shown was right last."
    )
    created_at = models.DateTimeField(db_default=Now(), help_text="When the message was accepted.")

    objects = DeliveryQuerySet.as_manager()

    # What the channel itself shows is not ours to remove.
    personal_data = PersonalData(message="message_id", key="message_id")

    class Meta:
        verbose_name = "delivery"
        verbose_name_plural = "deliveries"
        indexes = [
            # Lists: all, and what was given up.
            models.Index(fields=["created_at", "message"], name="delivery_created"),
            models.Index(
                fields=["created_at"],
                name="delivery_failed",
                condition=models.Q(failed_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"delivery of the reply to {self.message_id}"
