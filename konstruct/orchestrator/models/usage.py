"""Table of a tenant's usage by day, which grows with days and not with messages."""

from django.db import models

from tenants.fields import big_count, optional_id, optional_text, random_id
from tenants.models import TenantModel
from tenants.personal_data import NoPersonalData


class DailyUsage(TenantModel):
    """Counts of one day (UTC), in several rows that are added up.

    Messages and memories have rows without an agent, a purpose and a model; calls of language
    models have rows for each. Each connection adds to the row of one slot, so that transactions
    seldom wait for each other. Nothing is subtracted: an erasure removes messages, and not that
    they were accepted. A call is counted when its outcome is known.
    """

    id = random_id()
    day = models.DateField(help_text="The day (UTC).")
    agent_id = optional_id("agent", help_text="The agent of calls of language models.")
    purpose = optional_text(help_text="Purpose of the calls, such as reply.")
    model = optional_text(help_text="The language model that was called.")
    slot = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="Index of the row. The rows of a day are added up."
    )
    messages = big_count(help_text="Messages of users that were accepted.")
    replies = big_count(help_text="Replies of agents that were written.")
    memories = big_count(help_text="Messages, replies, imported turns and facts, together.")
    calls = big_count(help_text="Calls of language models with a known outcome.")
    failed = big_count(help_text="Calls of language models that failed.")
    prompt_tokens = big_count(help_text="Tokens sent.")
    completion_tokens = big_count(help_text="Tokens received.")
    cost = models.DecimalField(
        max_digits=18, decimal_places=6, default=0, db_default=0, help_text="Cost, by LLM_PRICE_…."
    )

    personal_data = NoPersonalData("counts by day and agent, without a user or a text")

    class Meta:
        verbose_name = "usage by day"
        verbose_name_plural = "usage by day"
        constraints = [
            models.UniqueConstraint(
                fields=["day", "agent_id", "purpose", "model", "slot"],
                nulls_distinct=False,
                name="daily_usage_slot",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.day} {self.purpose}".rstrip()
