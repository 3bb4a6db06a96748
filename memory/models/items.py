"""Items of conversations: the records of a run of an agent framework, unchanged."""

import uuid

from django.db import models

from memory.fields import IdentityField
from memory.models.conversations import AgentUserModel, Message, server_now
from tenants.personal_data import Export, PersonalData


class ConversationItem(AgentUserModel):
    """A record of a framework's run: a message, a tool call or its result. Never changed."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    number = IdentityField(unique=True, help_text="Order of insertion.")
    thread_id = models.TextField("thread", help_text="The conversation.")
    item = models.TextField(help_text="JSON as text, since jsonb cannot store all JSON.")
    message = models.ForeignKey(
        Message,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="items",
        help_text="The message with its text in the transcript. Empty: it is not remembered.",
    )
    created_at = models.DateTimeField(db_default=server_now(), help_text="When it was added.")

    personal_data = PersonalData(
        subject="user_id",
        agent="agent_id",
        message="message_id",
        key="id",
        export=Export(kind="conversation_items", position=13, order="number", without=("number",)),
        retention="created_at < %(before)s",
    )

    class Meta:
        verbose_name = "conversation item"
        indexes = [
            # The items of one request have the same time, so that no others are between them.
            models.Index(
                fields=["agent_id", "user_id", "thread_id", "created_at", "number"],
                name="conversation_item_thread",
            ),
            models.Index(fields=["user_id"], name="conversation_item_user"),
        ]

    def __str__(self) -> str:
        return self.item[:60]
