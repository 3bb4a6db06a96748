"""Table of tool calls: arguments, permission and result."""

import uuid
from typing import Self

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext

from memory.models import AgentUserModel, Message
from tenants.fields import one_of, optional_id, optional_text, optional_time, random_id, text_list
from tenants.models import TenantModel
from tenants.personal_data import Export, PersonalData, rows_of_user


class ToolCallState(models.TextChoices):
    """The state of a tool call."""

    WAITING = "waiting", "waits for consent"
    WITH_PROGRAM = "with_program", "waits for the program that has the tool"
    APPROVED = "approved", "approved, not yet executed"
    DENIED = "denied", "denied"
    EXPIRED = "expired", "no answer in time"
    DONE = "done", "done"
    FAILED = "failed", "failed"


class ToolCallQuerySet(models.QuerySet["ToolCall"]):
    """Tool calls of a tenant."""

    def waiting(self) -> Self:
        """Those that wait for consent, also overdue ones."""
        return self.filter(state=ToolCallState.WAITING)

    def with_program(self) -> Self:
        """Those that wait for a program's result, also overdue ones."""
        return self.filter(state=ToolCallState.WITH_PROGRAM)

    def overdue(self) -> Self:
        """Those that wait for consent or a program, and whose deadline is over."""
        unsettled = (ToolCallState.WAITING, ToolCallState.WITH_PROGRAM)
        return self.filter(state__in=unsettled, expires_at__lte=Now())

    def of_message(self, message_id: uuid.UUID) -> Self:
        """Those of a message, in their order."""
        return self.filter(message_id=message_id).order_by("round", "position")


class ToolCall(AgentUserModel):
    """A tool call that an agent requested while it answered a message.

    The cached copy (`pending_tool_confirm_key`) is derived from this row.
    """

    id = random_id()
    message = models.ForeignKey(
        Message,
        on_delete=models.PROTECT,
        related_name="tool_calls",
        db_index=False,
        help_text="The message that the agent answers.",
    )
    thread_id = models.TextField("thread", help_text="The conversation of the message.")
    asked_by_id = optional_id(
        "asked by",
        help_text="The agent that requested the call, if the thread was handed to another agent. "
        "The call is executed for that agent.",
    )
    round = models.PositiveSmallIntegerField(
        help_text="Index of the model's answer that requested it, from 0."
    )
    position = models.PositiveSmallIntegerField(
        help_text="Index of the call in that answer, from 0."
    )
    content = optional_text(
        "text before",
        help_text="The agent's text before the call; with the first call of an answer.",
    )
    call_id = models.TextField(help_text="Id of the call, from the language model.")
    name = models.TextField("tool", help_text="The tool.")
    arguments = models.JSONField(help_text="Arguments of the call, as requested.")
    question = optional_text(help_text="The question to the user.")
    state = models.TextField(choices=ToolCallState, help_text="State of the call.")
    created_at = models.DateTimeField(db_default=Now(), help_text="When it was requested.")
    expires_at = models.DateTimeField(help_text="Deadline for the consent or the program's result.")
    decided_at = optional_time(help_text="When it was decided.")
    decided_by = optional_text(help_text="The author and the channel of the decision.")
    done_at = optional_time(help_text="When it was done, or failed.")
    result = optional_text(help_text="The result that the language model received.")

    objects = ToolCallQuerySet.as_manager()

    personal_data = rows_of_user(
        message="message_id",
        export=Export(kind="tool_calls", position=8, is_mutable=True),
    )

    class Meta:
        verbose_name = "tool call"
        ordering = ["-created_at"]
        constraints = [
            # A worker that is killed and begins anew asks for nothing twice.
            models.UniqueConstraint(
                fields=["message", "round", "position"], name="tool_call_place"
            ),
            one_of("state", ToolCallState, "tool_call_state"),
        ]
        indexes = [
            models.Index(
                fields=["expires_at"],
                condition=models.Q(state=ToolCallState.WAITING),
                name="tool_call_overdue",
            ),
            # The copy in the cache is of a whole thread.
            models.Index(
                fields=["thread_id"],
                condition=models.Q(state=ToolCallState.WAITING),
                name="tool_call_thread",
            ),
            models.Index(fields=["-created_at", "id"], name="tool_call_newest"),
            models.Index(fields=["user_id", "-created_at"], name="tool_call_user"),
        ]

    def __str__(self) -> str:
        return gettext("%(tool)s for %(user)s") % {"tool": self.name, "user": self.user_id}


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
