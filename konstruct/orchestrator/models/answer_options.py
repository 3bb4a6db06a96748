"""Table of the options of answers: history, instructions, tools, sampling, the answer's form."""

from django.db import models

from memory.models import Message
from tenants.fields import text_list
from tenants.models import TenantModel
from tenants.personal_data import PersonalData


class AnswerOptions(TenantModel):
    """Options for the answer, given by the program that sent the message; kept until the answer."""

    message = models.OneToOneField(
        Message,
        on_delete=models.PROTECT,
        primary_key=True,
        related_name="answer_options",
        help_text="The message that is to be answered.",
    )
    options = models.JSONField(
        help_text="By the names of OpenAI's API: tools, response_format, temperature, max_tokens …"
    )
    instructions = text_list(
        help_text="The program's system and developer messages, in their order."
    )
    history = models.JSONField(
        null=True,
        help_text="The turns of the prompt, as the program sent them. Null: those of the window.",
    )

    # Not exported: rows exist only until the answer does.
    personal_data = PersonalData(message="message_id", key="message_id")

    class Meta:
        verbose_name = "answer options"
        verbose_name_plural = "answer options"

    def save_for(self, message: Message) -> None:
        """Save the options of the answer to a message; nothing if there are none."""
        if self.options or self.instructions or self.history is not None:
            self.message = message
            self.save(force_insert=True)

    def __str__(self) -> str:
        return f"options of the answer to {self.message_id}"
