"""Table of a tenant's activity by day, agent and channel, for charts."""

import uuid

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID
from django.db import models

from tenants.models import TenantModel
from tenants.personal_data import NoPersonalData


class DailyActivity(TenantModel):
    """Counts of one ended day (UTC), agent and channel.

    A day that was counted also has a row without an agent, with zeros.
    """

    id = models.UUIDField(
        primary_key=True, default=uuid.uuid4, db_default=RandomUUID(), editable=False
    )
    day = models.DateField(help_text="The day (UTC).")
    agent_id = models.UUIDField("agent", null=True, blank=True, help_text="The agent.")
    channel = models.TextField(blank=True, default="", db_default="", help_text="The channel.")
    messages = models.PositiveIntegerField(default=0, db_default=0, help_text="Users' messages.")
    replies = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Replies of agents that have a recall event."
    )
    from_facts = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Replies with facts in their prompt."
    )
    from_memories = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Replies with recalled messages and without facts."
    )
    from_turns = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Replies with recent turns alone."
    )
    from_nothing = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Replies without any of them."
    )
    prompt_tokens = models.BigIntegerField(
        default=0, db_default=0, help_text="Tokens sent, as the language model reported them."
    )
    completion_tokens = models.BigIntegerField(
        default=0, db_default=0, help_text="Tokens received, as the language model reported them."
    )
    reply_times = ArrayField(
        models.PositiveIntegerField(),
        default=list,
        db_default=models.Value([], output_field=ArrayField(models.PositiveIntegerField())),
        help_text="Numbers of replies by their time: activity.py has the limits.",
    )

    personal_data = NoPersonalData("counts by day, agent and channel, without a user or a text")

    class Meta:
        verbose_name = "daily activity"
        verbose_name_plural = "daily activity"
        constraints = [
            models.UniqueConstraint(
                fields=["day", "agent_id", "channel"],
                nulls_distinct=False,
                name="daily_activity_day",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.day}"
