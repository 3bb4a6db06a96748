"""Table of a tenant's activity by day, agent and channel, for charts."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from tenants.fields import count, optional_id, optional_text, random_id
from tenants.models import TenantModel
from tenants.personal_data import NoPersonalData


class DailyActivity(TenantModel):
    """Counts of one ended day (UTC), agent and channel.

    A day that was counted also has a row without an agent, with zeros.
    """

    id = random_id()
    day = models.DateField(help_text="The day (UTC).")
    agent_id = optional_id("agent", help_text="The agent.")
    channel = optional_text(help_text="The channel.")
    messages = count(help_text="Users' messages.")
    replies = count(help_text="Replies of agents that have a recall event.")
    from_facts = count(help_text="Replies with facts in their prompt.")
    from_memories = count(help_text="Replies with recalled messages and without facts.")
    from_turns = count(help_text="Replies with recent turns alone.")
    from_nothing = count(help_text="Replies without any of them.")
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
