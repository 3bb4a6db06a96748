"""Tables of the channels: connected workspaces, events that arrived, and deliveries."""

from typing import Self

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext, gettext_lazy as _

from konstruct.orchestrator.models import Agent, ChannelIdentity
from memory.models import Message
from tenants import fields
from tenants.models import TenantModel
from tenants.personal_data import NoPersonalData, PersonalData


class SlackInstallationQuerySet(models.QuerySet["SlackInstallation"]):
    """Slack workspaces of a tenant."""

    def connected(self) -> Self:
        """Connected ones: their events are processed, and replies are posted."""
        return self.filter(state=SlackInstallation.State.CONNECTED)


class SlackInstallation(TenantModel):
    """A Slack workspace of the tenant, with its agent and the token of the bot.

    It stays when it is disconnected, without its token.
    """

    class State(models.TextChoices):
        CONNECTED = "connected"
        DISCONNECTED = "disconnected"

    id = fields.random_id()
    workspace = models.CharField(
        max_length=255, help_text="Slack's id of the workspace, such as T024BE7LD."
    )
    name = fields.optional_text(help_text="The workspace's name in Slack.")
    agent = models.ForeignKey(
        Agent,
        on_delete=models.PROTECT,
        related_name="slack_installations",
        db_index=False,  # a tenant has few of them
        help_text="The agent that answers in this workspace.",
    )
    bot_user_id = models.CharField(
        max_length=255, help_text="Slack's user id of the bot, used in mentions."
    )
    encrypted_token = fields.optional_text(
        db_column="sealed_token",
        editable=False,
        help_text="The bot's token, encrypted; empty once it is disconnected.",
    )
    scopes = fields.text_list(blank=True, help_text="OAuth scopes that Slack granted to the bot.")
    state = fields.choice(
        State.CONNECTED, help_text="Events of a disconnected workspace are ignored."
    )
    installed_by = models.TextField(help_text="The person who connected it.")
    installed_at = models.DateTimeField(db_default=Now(), help_text="When it was connected (last).")
    ended_at = fields.optional_time(help_text="When it was disconnected.")
    ended_because = fields.optional_text(help_text="Reason of the disconnection.")

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


class SlackMember(TenantModel):
    """The Slack account of a member of the team, who can answer users from Slack."""

    id = fields.random_id()
    installation = models.ForeignKey(
        SlackInstallation,
        on_delete=models.CASCADE,
        verbose_name="workspace",
        db_index=False,  # the constraint has one
        help_text="The workspace.",
    )
    slack_id = models.CharField(
        "Slack user",
        max_length=50,
        validators=[
            RegexValidator(
                r"^[UW][A-Z0-9]{5,49}\Z",
                _(
                    "This is not the id of a Slack user, such as U024BE7LH."
                    " Slack copies it in the person's profile: More, Copy member ID."
                ),
            )
        ],
        help_text="Slack's id of the person: Profile, Copy member ID, such as U024BE7LH.",
    )
    member = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        # Members are deactivated, not deleted. Operators are users too, and have no such table.
        on_delete=models.DO_NOTHING,
        related_name="+",
        db_index=False,  # a tenant has few of them
        help_text="Actions of this account have this member's permissions and are logged under "
        "this member's name.",
    )

    personal_data = NoPersonalData("the tenant's own people")

    class Meta:
        verbose_name = "Slack account of the team"
        verbose_name_plural = "Slack accounts of the team"
        ordering = ["slack_id"]
        constraints = [
            models.UniqueConstraint(fields=["installation", "slack_id"], name="slack_member")
        ]

    def __str__(self) -> str:
        return gettext("%(slack_id)s is %(member)s") % {
            "slack_id": self.slack_id,
            "member": self.member,
        }


class Arrival(TenantModel):
    """An event of a channel: stored before the channel is answered, removed when it is processed.

    Its job has its id as a key. A worker makes a message of it.
    """

    id = models.UUIDField(primary_key=True, help_text="It is derived from the deduplication key.")
    channel = models.TextField(help_text="slack …")
    workspace = models.TextField(
        help_text="The workspace in the channel. Its events are processed in order."
    )
    key = models.CharField(
        max_length=255, help_text="Deduplication key: an event can arrive more than once."
    )
    event = models.JSONField(
        db_column="heard", help_text="The event: the message, its sender and its place."
    )
    created_at = models.DateTimeField(db_default=Now(), help_text="When it arrived.")

    # Events of everyone with this user id. Not exported: rows exist for a moment.
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
    """Messages that are shown in channels."""

    def outdated(self) -> Self:
        """Deliveries that do not show the message's current state. Each has a job."""
        return self.filter(delivered_at__isnull=True)


class Delivery(TenantModel):
    """A message that is shown in a channel: its place, and its posts.

    A worker computes the content from the current state of the message each time. So changes may be
    notified late, early or twice. There is a job until the posts show the current state.
    """

    message = models.OneToOneField(
        Message, on_delete=models.PROTECT, primary_key=True, related_name="delivery"
    )
    channel = models.TextField(help_text="slack …")
    address = models.JSONField(help_text="Where it is shown, in the channel's own format.")
    posted = fields.json_list(
        blank=True, help_text="Posts that show it: their ids, and digests of their content."
    )
    intent = fields.optional_number(
        help_text="The post that was being created. It may exist in the channel with an unknown id."
    )
    delivered_at = fields.optional_time(
        help_text="Since when the channel shows the current state of the message. Empty: a "
        "delivery is pending."
    )
    created_at = models.DateTimeField(db_default=Now(), help_text="When the message was accepted.")

    objects = DeliveryQuerySet.as_manager()

    # Messages that the channel itself displays cannot be removed by us.
    personal_data = PersonalData(message="message_id", key="message_id")

    class Meta:
        verbose_name = "delivery"
        verbose_name_plural = "deliveries"
        indexes = [models.Index(fields=["created_at", "message"], name="delivery_created")]

    def __str__(self) -> str:
        return gettext("delivery of the reply to %(message)s") % {"message": self.message_id}
