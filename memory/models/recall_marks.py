"""Marks of reviewers on recalled memories: whether a memory was relevant to the question."""

from django.db import models
from django.utils.translation import gettext

from memory.models.conversations import AgentUserModel, Message
from memory.models.facts import AuthorKind, server_clock
from tenants.fields import random_id
from tenants.personal_data import Export, PersonalData


class Relevance(models.TextChoices):
    """A reviewer's opinion of a recalled memory."""

    RELEVANT = "relevant", "Relevant"
    NOT_RELEVANT = "not_relevant", "Not relevant"
    UNSURE = "unsure", "Unsure"


class RecallMark(AgentUserModel):
    """A reviewer's mark on a memory that was recalled for a reply, given or left out."""

    id = random_id()
    reply = models.ForeignKey(
        Message,
        on_delete=models.PROTECT,
        db_index=False,
        related_name="recall_marks",
        help_text="The reply that the memory was recalled for.",
    )
    message = models.ForeignKey(
        Message,
        on_delete=models.PROTECT,
        related_name="marks_as_memory",
        help_text="The memory.",
    )
    relevance = models.TextField(choices=Relevance, help_text="The reviewer's opinion.")
    probability = models.FloatField(
        help_text="Probability that the memory is relevant by the product's own calibration."
    )
    author_kind = models.TextField(choices=AuthorKind, help_text="The kind of the author.")
    author_id = models.TextField(
        blank=True, default="", help_text="Id of the person or the API key."
    )
    author_name = models.TextField(blank=True, default="", help_text="Name of the author.")
    created_at = models.DateTimeField(db_default=server_clock(), help_text="When it was marked.")

    personal_data = PersonalData(
        subject="user_id",
        agent="agent_id",
        message="message_id",
        derived="reply_id = ANY(%(ids)s)",
        key="id",
        export=Export(kind="recall_marks", position=23, is_mutable=True),
    )

    class Meta:
        verbose_name = "recall mark"
        constraints = [
            models.UniqueConstraint(fields=["reply", "message"], name="recall_mark_memory"),
            models.CheckConstraint(
                condition=models.Q(relevance__in=Relevance.values), name="recall_mark_relevance"
            ),
            models.CheckConstraint(
                condition=models.Q(probability__gte=0, probability__lte=1),
                name="recall_mark_probability",
            ),
        ]
        indexes = [
            models.Index(fields=["agent_id", "user_id"], name="recall_mark_scope"),
            models.Index(fields=["-created_at", "id"], name="recall_mark_newest"),
        ]

    def __str__(self) -> str:
        return gettext("%(relevance)s: message %(message)s") % {
            "relevance": self.get_relevance_display(),
            "message": self.message_id,
        }
