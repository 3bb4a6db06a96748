"""Table of what programs ask of an answer: tools of their own, and the form that it is to have."""

from django.db import models

from memory.models import Message
from tenants.models import TenantModel


class AnswerOptions(TenantModel):
    """What the program that sent a message asks of its answer, until there is one."""

    message = models.OneToOneField(
        Message,
        on_delete=models.PROTECT,
        primary_key=True,
        related_name="answer_options",
        help_text="The message that is to be answered.",
    )
    options = models.JSONField(
        help_text="In the words of OpenAI's API: tools, tool_choice, parallel_tool_calls and "
        "response_format."
    )

    class Meta:
        verbose_name = "answer options"
        verbose_name_plural = "answer options"

    def __str__(self) -> str:
        return f"options of the answer to {self.message_id}"
