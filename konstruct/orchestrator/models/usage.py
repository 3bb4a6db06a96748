"""Tables of counts by day: a tenant's usage, and the activity of its agents and channels."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from tenants.fields import big_count, count, money, optional_id, optional_text, random_id
from tenants.models import TenantModel
from tenants.personal_data import NoPersonalData


class DailyUsage(TenantModel):
    """Counts of one day (UTC).

    Nothing is subtracted: an erasure removes messages, and not that they were accepted. A call of a
    language model is counted when its outcome is known.
    """

    day = models.DateField(primary_key=True, help_text="The day (UTC).")
    messages = big_count(help_text="Messages of users that were accepted.")
    replies = big_count(help_text="Replies of agents that were written.")
    memories = big_count(help_text="Messages, replies, imported turns and facts, together.")
    calls = big_count(help_text="Calls of language models with a known outcome.")
    failed = big_count(help_text="Calls of language models that failed.")
    prompt_tokens = big_count(help_text="Tokens sent.")
    completion_tokens = big_count(help_text="Tokens received.")
    cost = money(
        max_digits=18, help_text="Cost, by the prices of the language models at that time."
    )

    personal_data = NoPersonalData("counts by day, without a user or a text")

    class Meta:
        verbose_name = "usage by day"
        verbose_name_plural = "usage by day"

    def __str__(self) -> str:
        return str(self.day)


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
