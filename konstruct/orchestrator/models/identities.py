"""Tables of identities: the users that ids of channels belong to."""

from typing import Self

from django.db import models
from django.db.models.functions import Now

from tenants.fields import json_object, optional_text, optional_time, random_id
from tenants.models import TenantModel
from tenants.personal_data import Export, Merge, PersonalData


class ChannelIdentity(TenantModel):
    """An account of a channel, and the user that owns its memory."""

    id = random_id()
    channel = models.TextField(help_text="slack …")
    workspace = optional_text(
        help_text="The workspace in the channel, if the channel has workspaces."
    )
    native_id = models.TextField("id", help_text="The sender's id in the channel.")
    own_id = models.TextField(
        "own user id", help_text="The identity's own user id; no other identity has the same."
    )
    user_id = models.TextField("user", help_text="The user that the identity belongs to.")
    name = optional_text(help_text="The sender's name in the channel.")
    looked_up_at = optional_time(help_text="When the channel was last asked for the name.")
    created_at = models.DateTimeField(db_default=Now(), help_text="Time of the first message.")
    linked_at = optional_time(help_text="When the identity was linked to another user.")
    linked_by = optional_text(help_text="The person who linked it.")

    personal_data = PersonalData(
        subject="user_id",
        other_subjects=("own_id",),
        key="id",
        export=Export(kind="identities", position=10, is_mutable=True),
        merge=Merge(unchanged="the link between the two ids"),
    )

    class Meta:
        verbose_name = "identity"
        verbose_name_plural = "identities"
        ordering = ["-created_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["channel", "workspace", "native_id"], name="identity_native"
            ),
            models.UniqueConstraint(fields=["own_id"], name="identity_own"),
        ]
        indexes = [
            models.Index(fields=["user_id"], name="identity_user"),
            models.Index(fields=["-created_at", "id"], name="identity_newest"),
        ]

    def __str__(self) -> str:
        return " ".join(filter(None, (self.channel, self.workspace, self.native_id)))


class HistoryMergeQuerySet(models.QuerySet["HistoryMerge"]):
    """Moves of a tenant."""

    def open(self) -> Self:
        """Those that are not done yet, the oldest first."""
        return self.filter(done_at__isnull=True).order_by("created_at", "pk")


class HistoryMerge(TenantModel):
    """A request to move the memory of one user to another. The owner's process does it."""

    id = random_id()
    from_user = models.TextField(help_text="The user that the messages belonged to.")
    user_id = models.TextField("user", help_text="The user that the messages are moved to.")
    requested_by = models.TextField(help_text="The person who linked the users.")
    created_at = models.DateTimeField(db_default=Now(), help_text="When the users were linked.")
    moved = json_object(blank=True, help_text="How much was moved, by table.")
    last_error = optional_text(help_text="Error of the last attempt.")
    done_at = optional_time(help_text="When it was done.")

    objects = HistoryMergeQuerySet.as_manager()

    personal_data = PersonalData(
        subject="user_id",
        other_subjects=("from_user",),
        key="id",
        merge=Merge(unchanged="the merge itself"),
    )

    class Meta:
        db_table = "orchestrator_moveofpast"
        verbose_name = "history merge"
        constraints = [
            models.UniqueConstraint(
                fields=["from_user"], condition=models.Q(done_at__isnull=True), name="move_one_open"
            )
        ]
        indexes = [models.Index(fields=["user_id"], name="move_user")]

    def __str__(self) -> str:
        return f"{self.from_user} to {self.user_id}"
