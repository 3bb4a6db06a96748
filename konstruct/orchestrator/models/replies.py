"""Tables of replies: messages that wait for one, calls of tools, options, and escalations."""

import uuid
from typing import Any, Final, Self

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext

from memory.models import AgentUserModel, Message
from tenants import fields
from tenants.models import JobColumns, JobQuerySet, TenantModel
from tenants.personal_data import PUBLIC, Export, Merge, PersonalData, rows_of_user


class HeldFor(models.TextChoices):
    """The reason why a reply is held."""

    NOT_HELD = "", "not held"
    PERSON = "person", "a person, who answers in this thread"
    CONSENT = "consent", "the user's consent to a tool call"
    PROGRAM = "program", "the program that sent it, which has the tools that were called"


class PendingReplyQuerySet(JobQuerySet):
    """Messages that wait for their reply."""

    def in_thread(self, **thread: Any) -> Self:
        """Those of one conversation (agent_id, user_id and thread_id), oldest first."""
        of_message = {f"message__{name}": value for name, value in thread.items()}
        return self.filter(**of_message).order_by("message__created_at", "message__number")


class PendingReply(TenantModel, JobColumns):
    """A message that waits for its reply: a view of the jobs of kind "reply".

    The row is removed when the reply is delivered. A failed reply keeps its row, with the reason,
    until it is retried. A held reply keeps it too, and no worker claims it until it is released.
    """

    message = models.OneToOneField(
        Message,
        on_delete=models.PROTECT,
        primary_key=True,
        related_name="pending_reply",
        db_constraint=False,
    )
    held_for = fields.choice(
        HeldFor.NOT_HELD,
        blank=True,
        help_text="Why the reply waits: for a person, or for the user's consent. Empty: it does "
        "not wait.",
    )

    objects = PendingReplyQuerySet.as_manager()

    personal_data = PersonalData(
        message="message_id",
        key="message_id",
        schema=PUBLIC,
        export=Export(
            kind="pending_replies",
            position=7,
            key=("message_id",),
            without=("kind", "sweep_at"),  # archives have the latter as ring_at
            with_new_messages=True,
        ),
    )

    class Meta:
        managed = False
        db_table = "orchestrator_pendingreply"
        verbose_name = "pending reply"
        verbose_name_plural = "pending replies"

    def __str__(self) -> str:
        return gettext("reply to %(message)s") % {"message": self.message_id}


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

    id = fields.random_id()
    message = models.ForeignKey(
        Message,
        on_delete=models.PROTECT,
        related_name="tool_calls",
        db_index=False,
        help_text="The message that the agent answers.",
    )
    thread_id = models.TextField("thread", help_text="The conversation of the message.")
    asked_by_id = fields.optional_id(
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
    content = fields.optional_text(
        "text before",
        help_text="The agent's text before the call; with the first call of an answer.",
    )
    call_id = models.TextField(help_text="Id of the call, from the language model.")
    name = models.TextField("tool", help_text="The tool.")
    arguments = models.JSONField(help_text="Arguments of the call, as requested.")
    question = fields.optional_text(help_text="The question to the user.")
    state = models.TextField(choices=ToolCallState, help_text="State of the call.")
    created_at = models.DateTimeField(db_default=Now(), help_text="When it was requested.")
    expires_at = models.DateTimeField(help_text="Deadline for the consent or the program's result.")
    decided_at = fields.optional_time(help_text="When it was decided.")
    decided_by = fields.optional_text(help_text="The author and the channel of the decision.")
    done_at = fields.optional_time(help_text="When it was done, or failed.")
    result = fields.optional_text(help_text="The result that the language model received.")

    objects = ToolCallQuerySet.as_manager()

    personal_data = rows_of_user(
        message="message_id", export=Export(kind="tool_calls", position=8, is_mutable=True)
    )

    class Meta:
        verbose_name = "tool call"
        ordering = ["-created_at"]
        constraints = [
            # A worker that is killed and begins anew asks for nothing twice.
            models.UniqueConstraint(
                fields=["message", "round", "position"], name="tool_call_place"
            ),
            fields.one_of("state", ToolCallState, "tool_call_state"),
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
    instructions = fields.text_list(
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


class EscalationQuerySet(models.QuerySet["Escalation"]):
    """Escalations of a tenant."""

    def open(self) -> Self:
        """Unresolved ones."""
        return self.filter(resolved_at__isnull=True)

    def to_people(self) -> Self:
        """Those in which a person answers."""
        return self.filter(to_agent_id__isnull=True)

    def to_agents(self) -> Self:
        """Those in which another agent answers: handovers."""
        return self.filter(to_agent_id__isnull=False)


# If both users have an open escalation in threads with the same id, one of the two is resolved.
_MERGE_ESCALATIONS: Final = """
    UPDATE orchestrator_escalation AS moved SET user_id = %(to)s,
        resolved_at = CASE WHEN twin.id IS NULL THEN moved.resolved_at ELSE now() END,
        resolved_by = CASE WHEN twin.id IS NULL THEN moved.resolved_by ELSE %(by)s END
    FROM orchestrator_escalation AS own LEFT JOIN orchestrator_escalation AS twin
        ON twin.user_id = %(to)s AND twin.agent_id = own.agent_id
        AND twin.thread_id = own.thread_id
        AND twin.resolved_at IS NULL AND own.resolved_at IS NULL
    WHERE moved.id = own.id AND moved.user_id = %(from)s
"""


class Escalation(AgentUserModel):
    """A period in which a person or another agent answers in a thread.

    `agent_id` is the agent that the messages of the thread are sent to. The cache has a copy of
    open rows (`escalation_status_key`).
    """

    class OpenedBy(models.TextChoices):
        USER = "user", "the user asked for it"
        RULE = "rule", "a rule of the agent"
        AGENT = "agent", "an agent's language model"
        PROGRAM = "program", "a program"
        PERSON = "person", "a person in the admin"

    class Outcome(models.TextChoices):
        OPEN = "", "open, or resolved before outcomes were kept"
        RESOLVED = "resolved", "resolved: the thread's own agent answers again"
        HANDED_ON = "handed_on", "handed on to an agent"
        HANDED_BACK = "handed_back", "handed back to the agent before"
        TO_PERSON = "to_person", "a person was requested"

    id = fields.random_id()
    thread_id = models.TextField("thread", help_text="The conversation's id in the channel.")
    channel = models.TextField(help_text="The channel: rest, slack …")
    message_id = fields.optional_id(
        "message",
        help_text="The message that caused the escalation. Its reply announces that a person "
        "will answer.",
    )
    to_agent_id = fields.optional_id(
        "to agent", help_text="The agent that answers instead; empty if a person answers."
    )
    from_agent_id = fields.optional_id(
        "from agent", help_text="The previous agent, which can get the conversation back."
    )
    opened_by = models.TextField(
        choices=OpenedBy,
        help_text="What opened the escalation: the user, a rule, an agent, a program or a person.",
    )
    opened_by_name = fields.optional_text(help_text="The name of the program or person.")
    reason = models.TextField(help_text="The reason.")
    opened_at = models.DateTimeField(db_default=Now(), help_text="When it was opened.")
    assigned_to = fields.optional_text(
        help_text="Username of the colleague to whom it is assigned; empty: unassigned."
    )
    resolved_at = fields.optional_time(help_text="When it was resolved; empty while it is open.")
    resolved_by = fields.optional_text(help_text="The person who resolved it.")
    note = fields.optional_text(help_text="Note on the outcome, for the record.")
    outcome = fields.choice(
        Outcome.OPEN,
        blank=True,
        help_text="How it ended: resolved, handed on, handed back, or a person was requested.",
    )

    objects = EscalationQuerySet.as_manager()

    personal_data = rows_of_user(
        export=Export(kind="escalations", position=9, is_mutable=True),
        merge=Merge(for_user=(_MERGE_ESCALATIONS,)),
        retention="resolved_at < %(before)s",
    )

    class Meta:
        verbose_name = "escalation"
        ordering = ["-opened_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["agent_id", "user_id", "thread_id"],
                condition=models.Q(resolved_at__isnull=True),
                name="escalation_one_open",
            ),
            models.CheckConstraint(
                condition=models.Q(opened_by__in=["user", "rule", "agent", "program", "person"]),
                name="escalation_opened_by",
            ),
        ]
        indexes = [
            # The copy in the cache is of a whole thread.
            models.Index(
                fields=["thread_id"],
                condition=models.Q(resolved_at__isnull=True),
                name="escalation_thread",
            ),
            models.Index(fields=["-opened_at", "id"], name="escalation_newest"),
            models.Index(fields=["user_id", "-opened_at"], name="escalation_user"),
        ]

    def __str__(self) -> str:
        return gettext("%(user)s in %(thread)s") % {"user": self.user_id, "thread": self.thread_id}
