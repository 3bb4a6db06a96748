"""Table of reviewers' marks on replies."""

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext

from memory.models import AgentUserModel, Message
from tenants.fields import optional_text, random_id
from tenants.personal_data import Export, PersonalData


class ReplyMark(models.TextChoices):
    """A reviewer's judgement of a reply."""

    RIGHT = "right", "right"
    WRONG = "wrong", "wrong"
    UNSURE = "unsure", "unsure"


class ReplyReview(AgentUserModel):
    """A reviewer's mark on a reply. A reviewer has one mark on each reply."""

    id = random_id()
    reply = models.ForeignKey(
        Message,
        on_delete=models.PROTECT,
        related_name="reviews",
        db_index=False,
        help_text="The reply.",
    )
    mark = models.TextField(choices=ReplyMark, help_text="right, wrong or unsure.")
    note = optional_text(help_text="The reviewer's note; may be empty.")
    reviewer_kind = models.TextField(help_text="person, or program with an API key.")
    reviewer_id = models.TextField(help_text="Id of the person, or of the API key.")
    reviewer_name = models.TextField(help_text="Name of the reviewer at that time.")
    created_at = models.DateTimeField(db_default=Now(), help_text="When the mark was set.")

    personal_data = PersonalData(
        subject="user_id",
        agent="agent_id",
        message="reply_id",
        key="id",
        export=Export(kind="reply_reviews", position=22, is_mutable=True),
    )

    class Meta:
        verbose_name = "reply review"
        constraints = [
            models.UniqueConstraint(
                fields=["reply", "reviewer_kind", "reviewer_id"], name="reply_review_reviewer"
            ),
            models.CheckConstraint(
                condition=models.Q(mark__in=ReplyMark.values), name="reply_review_mark"
            ),
        ]
        indexes = [
            models.Index(fields=["-created_at", "id"], name="reply_review_newest"),
            models.Index(fields=["user_id", "-created_at"], name="reply_review_user"),
        ]

    def __str__(self) -> str:
        return gettext("%(mark)s, by %(name)s") % {
            "mark": self.get_mark_display(),
            "name": self.reviewer_name,
        }
