"""Table of escalations: threads in which a person or another agent answers."""

from typing import Final, Self

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext

from memory.models import AgentUserModel
from tenants.fields import choice, optional_id, optional_text, optional_time, random_id
from tenants.personal_data import Export, Merge, rows_of_user


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

    id = random_id()
    thread_id = models.TextField("thread", help_text="The conversation's id in the channel.")
    channel = models.TextField(help_text="The channel: rest, slack …")
    message_id = optional_id(
        "message",
        help_text="The message that caused the escalation. Its reply announces that a person "
        "will answer.",
    )
    to_agent_id = optional_id(
        "to agent", help_text="The agent that answers instead; empty if a person answers."
    )
    from_agent_id = optional_id(
        "from agent", help_text="The previous agent, which can get the conversation back."
    )
    opened_by = models.TextField(
        choices=OpenedBy,
        help_text="What opened the escalation: the user, a rule, an agent, a program or a person.",
    )
    opened_by_name = optional_text(help_text="The name of the program or person.")
    reason = models.TextField(help_text="The reason.")
    opened_at = models.DateTimeField(db_default=Now(), help_text="When it was opened.")
    assigned_to = optional_text(
        help_text="Username of the colleague to whom it is assigned; empty: unassigned."
    )
    resolved_at = optional_time(help_text="When it was resolved; empty while it is open.")
    resolved_by = optional_text(help_text="The person who resolved it.")
    note = optional_text(help_text="Note on the outcome, for the record.")
    outcome = choice(
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
        return gettext("%(user)s in %(thread)s") % {
            "user": self.user_id,
            "thread": self.thread_id,
        }
