"""Table of a tenant's usage: one row a day."""

from django.db import models

from tenants.fields import big_count
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
    cost = models.DecimalField(
        max_digits=18, decimal_places=6, default=0, db_default=0, help_text="Cost, by LLM_PRICE_…."
    )

    personal_data = NoPersonalData("counts by day, without a user or a text")

    class Meta:
        verbose_name = "usage by day"
        verbose_name_plural = "usage by day"

    def __str__(self) -> str:
        return str(self.day)
