"""Exclusions from recall: messages, and words of messages, that state a corrected fact."""

from django.db import models
from django.utils.translation import gettext

from memory.models.conversations import AgentUserModel, Message
from memory.models.facts import AuthorKind, server_clock
from tenants.fields import optional_id, optional_number, random_id
from tenants.personal_data import Export, rows_of_user


class RecallExclusion(AgentUserModel):
    """A message, or some words of it, that recall leaves out until the exclusion is removed.

    A whole message is left out of the windows too.
    """

    id = random_id()
    message = models.ForeignKey(
        Message,
        on_delete=models.PROTECT,
        related_name="recall_exclusions",
        db_index=False,
        help_text="The message.",
    )
    start = optional_number(
        help_text="First character of the excluded words. Empty: the whole message is excluded."
    )
    end = optional_number(help_text="Position after the last character of the excluded words.")
    # No foreign key: the words stay excluded when the corrected fact is deleted.
    memory_id = optional_id(
        "corrected fact",
        help_text="The corrected fact, or its old version. Empty: the message was excluded "
        "without a correction.",
    )
    # No foreign key: the reply stays excluded when the message that it repeats is erased.
    echo_of = optional_id(
        "echo of", help_text="The exclusion of the message that this reply repeats. Empty: none."
    )
    reason = models.TextField(blank=True, default="", help_text="The author's reason.")
    author_kind = models.TextField(choices=AuthorKind, help_text="The kind of the author.")
    author_id = models.TextField(
        blank=True, default="", help_text="Id of the person, the API key or the extraction run."
    )
    author_name = models.TextField(blank=True, default="", help_text="Name of the author.")
    created_at = models.DateTimeField(db_default=server_clock(), help_text="When it was excluded.")

    personal_data = rows_of_user(
        message="message_id",
        export=Export(kind="recall_exclusions", position=21),
    )

    class Meta:
        verbose_name = "recall exclusion"
        constraints = [
            models.UniqueConstraint(
                fields=["message", "memory_id", "echo_of", "start", "end"],
                nulls_distinct=False,
                name="recall_exclusion_words",
            ),
            models.CheckConstraint(
                condition=models.Q(start__isnull=True, end__isnull=True)
                | models.Q(start__isnull=False, end__gt=models.F("start")),
                name="recall_exclusion_end",
            ),
        ]
        indexes = [
            models.Index(fields=["agent_id", "user_id"], name="recall_exclusion_scope"),
            models.Index(
                fields=["memory_id"],
                condition=models.Q(memory_id__isnull=False),
                name="recall_exclusion_fact",
            ),
            models.Index(
                fields=["echo_of"],
                condition=models.Q(echo_of__isnull=False),
                name="recall_exclusion_echo",
            ),
        ]

    def __str__(self) -> str:
        if self.start is None:
            return gettext("message %(message)s, whole") % {"message": self.message_id}
        return gettext("message %(message)s, %(start)s to %(end)s") % {
            "message": self.message_id,
            "start": self.start,
            "end": self.end,
        }
