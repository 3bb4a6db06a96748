"""Rows beside messages: names of people, titles of conversations, and items of frameworks."""

import uuid
from typing import Final

from django.db import models
from django.db.models.functions import Now

from memory.fields import IdentityField
from memory.models.conversations import AgentUserModel, Message, server_now
from tenants.fields import json_object, optional_text, random_id
from tenants.models import TenantModel
from tenants.personal_data import Export, Merge, PersonalData, rows_of_user

_MESSAGE_WITH_IT: Final = """
    SELECT FROM memory_message AS message
    WHERE message.user_id = memory_personname.user_id AND message.role = 'user'
      AND message.name = memory_personname.name
"""
_OF_PERSON: Final = f"""
    tenant_id = %(tenant)s AND user_id = ANY(%(users)s) AND (
        %(agent)s::uuid IS NULL
        OR NOT EXISTS ({_MESSAGE_WITH_IT} AND message.agent_id <> %(agent)s)
    )
"""
_WITHOUT_OTHER_MESSAGE: Final = f"""
    (user_id, name) IN (
        SELECT user_id, name FROM memory_message WHERE id = ANY(%(ids)s) AND role = 'user'
    ) AND NOT EXISTS ({_MESSAGE_WITH_IT} AND NOT message.id = ANY(%(ids)s))
"""  # noqa: S608  (our constants)
_MERGE: Final = """
    WITH moved AS (
        DELETE FROM memory_personname WHERE user_id = %(from)s RETURNING name, folded, first_seen
    )
    INSERT INTO memory_personname (user_id, name, folded, first_seen)
    SELECT %(to)s, name, folded, first_seen FROM moved ON CONFLICT DO NOTHING
"""

# The title of the other id's thread with this name stays.
_MERGE_CONVERSATIONS: Final = """
    WITH moved AS (
        DELETE FROM memory_conversation WHERE user_id = %(from)s
        RETURNING id, agent_id, thread_id, title, metadata, created_at
    )
    INSERT INTO memory_conversation (id, agent_id, user_id, thread_id, title, metadata, created_at)
    SELECT id, agent_id, %(to)s, thread_id, title, metadata, created_at FROM moved
    ON CONFLICT (agent_id, user_id, thread_id) DO NOTHING
"""
_WITHOUT_MESSAGES_OF_THREAD: Final = """user_id = ANY(%(users)s) AND NOT EXISTS (
    SELECT FROM memory_message AS message
    WHERE (message.agent_id, message.user_id, message.thread_id)
        = (kept.agent_id, kept.user_id, kept.thread_id)
)"""


class PersonName(TenantModel):
    """A name that messages of a user have had, so that people are found by it. Append-only.

    `memory.conversations.transcript` writes it. No index serves the search for a part of a name:
    Postgres uses none for LIKE under row-level security.
    """

    pk = models.CompositePrimaryKey("user_id", "name")
    user_id = models.TextField("user", help_text="The user whose messages have the name.")
    name = models.TextField(help_text="The name, as the messages have it.")
    folded = models.TextField(help_text="The name without case and accents, to be searched.")
    first_seen = models.DateTimeField(
        db_default=Now(), help_text="Time of the first message with this name."
    )

    # An archive has the messages, from which the import makes these rows again.
    personal_data = PersonalData(
        subject="user_id",
        where=_OF_PERSON,
        derived=_WITHOUT_OTHER_MESSAGE,
        merge=Merge(for_user=(_MERGE,)),
    )

    class Meta:
        verbose_name = "name of a person"
        verbose_name_plural = "names of people"

    def __str__(self) -> str:
        return self.name


class Conversation(AgentUserModel):
    """The title and metadata of a conversation, which programs set."""

    id = random_id()
    thread_id = models.TextField("thread", help_text="The conversation.")
    title = optional_text(help_text="The title.")
    metadata = json_object(blank=True, help_text="Metadata of programs.")
    created_at = models.DateTimeField(db_default=server_now(), help_text="When it was first set.")

    personal_data = rows_of_user(
        export=Export(
            kind="conversations",
            position=28,
            key=("agent_id", "user_id", "thread_id"),
            is_mutable=True,
        ),
        merge=Merge(for_user=(_MERGE_CONVERSATIONS,)),
        retention=_WITHOUT_MESSAGES_OF_THREAD,
    )

    class Meta:
        verbose_name = "conversation"
        constraints = [
            models.UniqueConstraint(
                fields=["agent_id", "user_id", "thread_id"], name="conversation_thread"
            )
        ]
        indexes = [models.Index(fields=["user_id"], name="conversation_user")]

    def __str__(self) -> str:
        return self.title or self.thread_id


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

    personal_data = rows_of_user(
        message="message_id",
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
