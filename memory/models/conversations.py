"""Tables of conversations: messages, and the rows beside them. Grants of Postgres protect the
append-only ones from changes.
"""

import uuid
from typing import Final, Self, TypeVar
from uuid import UUID

from django.apps import apps
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext

from memory import conf
from memory.fields import IdentityField
from tenants.fields import json_object, one_of, optional_id, optional_text, random_id
from tenants.models import TenantModel
from tenants.personal_data import OF_USER, Export, Merge, PersonalData, rows_of_user

M = TypeVar("M", bound=models.Model, covariant=True)


class ScopedQuerySet(models.QuerySet[M]):
    """Rows of one agent's memory of one user."""

    def of(
        self,
        tenant_id: UUID | str | models.Expression,
        agent_id: UUID | str | models.Expression,
        user_id: str | models.Expression,
    ) -> Self:
        """Return the rows of this agent and user.

        The tenant is a condition too, although the schema and the policy restrict it: each check is
        independent.
        """
        return self.filter(tenant_id=tenant_id, agent_id=agent_id, user_id=user_id)


class MessageQuerySet(ScopedQuerySet[M]):
    """The transcript."""

    def window_turns(self, *, after_number: int | models.Expression) -> Self:
        """Return the last messages of the window's turns, newest first.

        They are answered messages, imported ones, and copies for this agent.

        A message without a reply is not in the window yet; it is added with the reply.
        """
        ends_a_turn = models.Q(role="assistant") | models.Q(channel__in=conf.HISTORY_CHANNELS)
        return self.filter(
            ends_a_turn, ~models.Q(channel=conf.STORED_CHANNEL), number__gt=after_number
        ).order_by("-created_at", "-number")

    def not_excluded(self) -> Self:
        """Return the messages that are not excluded from recall as a whole."""
        exclusions = apps.get_model("memory", "RecallExclusion").objects
        whole = exclusions.filter(message_id=models.OuterRef("pk"), start=None)
        return self.filter(~models.Exists(whole))

    def last_of_threads(self) -> Self:
        """Return the last message of every thread.

        Whether a later message exists is a probe of an index, so that the newest threads are found
        without reading the others.
        """
        same = {name: models.OuterRef(name) for name in ("agent_id", "user_id", "thread_id")}
        later = models.Q(created_at__gt=models.OuterRef("created_at")) | models.Q(
            number__gt=models.OuterRef("number")
        )
        after = self.model._default_manager.filter(
            later, created_at__gte=models.OuterRef("created_at"), **same
        )
        return self.filter(~models.Exists(after))


def server_now() -> models.Func:
    """now() of Postgres as a column default: one clock for all processes."""
    return models.Func(function="now", output_field=models.DateTimeField())


class Role(models.TextChoices):
    """Who spoke."""

    USER = "user"
    ASSISTANT = "assistant"


class AgentUserModel(TenantModel):
    """A row of one agent's memory of one user."""

    agent_id = models.UUIDField("agent", help_text="The agent that this memory belongs to.")
    user_id = models.TextField(
        "user", help_text="The user's id in the channel, such as a Slack user id."
    )

    class Meta:
        abstract = True


def _optional_key(help_text: str) -> "models.CharField[str | None, str | None]":
    """Return a column of unique keys. Many are unset, and not equal."""
    return models.CharField(max_length=255, null=True, blank=True, help_text=help_text)


class Message(AgentUserModel):
    """One turn of the transcript, verbatim, written before anything else happens. Append-only."""

    id = random_id()
    number = IdentityField(unique=True, help_text="Order of insertion.")
    thread_id = models.TextField(
        "thread", help_text="The conversation's id in the channel. Memory spans all conversations."
    )
    channel = models.TextField(help_text="The source: rest, slack, import, handover …")
    role = models.TextField(choices=Role, help_text="Role of the speaker.")
    name = optional_text(help_text="The speaker's display name.")
    content = models.TextField(help_text="The text, verbatim.")
    created_at = models.DateTimeField(
        db_default=server_now(),
        help_text="Time of the message; for imported turns, the original time.",
    )
    idempotency_key = _optional_key("Deduplication key of the sender, prefixed with the channel.")
    external_id = _optional_key("Id in the system that it was imported from.")
    in_reply_to = models.OneToOneField(
        "self",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="reply",
        help_text="The message that this one answers. A message gets one reply.",
    )
    answered_by_id = optional_id(
        "answered by",
        help_text="The agent that wrote this reply, which differs from the message's agent after a "
        "handover. Empty: a person, an import, or a reply from before this was recorded.",
    )

    metadata = models.JSONField(
        null=True, blank=True, help_text="Metadata from the program, for search filters."
    )
    usage = models.JSONField(
        null=True, blank=True, help_text="Tokens that the language model has reported of a reply."
    )
    finish_reason = optional_text(
        help_text="Why the language model ended a reply, by OpenAI's names: stop, length or "
        "content_filter. Empty: no language model wrote it, or it was written before this "
        "was recorded."
    )

    objects = MessageQuerySet.as_manager()

    personal_data = rows_of_user(
        message="id",
        export=Export(kind="messages", position=2, order="number", without=("number",)),
        # A message that was imported under both ids stays twice: external_id is unique.
        merge=Merge(
            for_messages="UPDATE memory_message AS moved SET user_id = %(to)s,"
            " external_id = CASE WHEN EXISTS (SELECT FROM memory_message AS other"
            "  WHERE other.agent_id = moved.agent_id AND other.user_id = %(to)s"
            "  AND other.external_id = moved.external_id)"
            " THEN left(external_id, 200) || '#' || id ELSE external_id END WHERE id = ANY(%(ids)s)"
        ),
    )

    class Meta:
        verbose_name = "message"
        constraints = [
            one_of("role", Role, "message_role"),
            models.UniqueConstraint(
                fields=["idempotency_key"],
                condition=models.Q(idempotency_key__isnull=False),
                name="message_idempotency_key",
            ),
            models.UniqueConstraint(
                fields=["agent_id", "user_id", "external_id"],
                condition=models.Q(external_id__isnull=False),
                name="message_external_id",
            ),
        ]
        indexes = [
            # The window, and an agent's whole conversation with a user.
            models.Index(
                fields=["agent_id", "user_id", "created_at", "number"], name="message_scope"
            ),
            # Messages per day.
            models.Index(fields=["created_at"], include=["tenant_id"], name="message_created"),
            # The turns before a turn: their words give it context.
            models.Index(
                fields=["agent_id", "user_id", "thread_id", "created_at", "number"],
                name="message_thread",
            ),
            # Lists by time: of one user (with counts), of one agent, of one thread's name.
            models.Index(
                fields=["user_id", "created_at", "number"],
                include=["agent_id", "tenant_id"],
                name="message_user",
            ),
            models.Index(fields=["agent_id", "created_at", "number"], name="message_agent"),
            models.Index(fields=["thread_id", "created_at", "number"], name="message_thread_time"),
            # The messages that were sent for an answer, without imported history.
            models.Index(
                fields=["created_at", "number"],
                condition=models.Q(role=Role.USER) & ~models.Q(channel=conf.IMPORT_CHANNEL),
                name="message_sent",
            ),
        ]

    def __str__(self) -> str:
        return f"{gettext(self.role)}: {self.content[:60]}"


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


# Users who have no message left with the agent.
WITHOUT_MESSAGES: Final = """user_id = ANY(%(users)s) AND NOT EXISTS (
    SELECT FROM memory_message AS message
    WHERE (message.agent_id, message.user_id) = (kept.agent_id, kept.user_id)
)"""
_SELECT_CLEARS: Final = f"""
    SELECT jsonb_build_object(
        'agent_id', agent_id, 'user_id', user_id, 'created_at', created_at, 'up_to', (
            SELECT message.id FROM memory_message AS message
            WHERE message.agent_id = cleared.agent_id AND message.user_id = cleared.user_id
              AND message.number <= cleared.last_number
            ORDER BY message.number DESC LIMIT 1
        )
    )
    FROM memory_windowclear AS cleared WHERE {OF_USER} ORDER BY cleared.id
"""  # noqa: S608  (our constants)
# The clear with the highest id counts: none is inserted after a later one.
_INSERT_CLEARS: Final = """
    INSERT INTO memory_windowclear (agent_id, user_id, created_at, last_number)
    SELECT cleared.agent_id, cleared.user_id, cleared.created_at, coalesce(message.number, 0)
    FROM jsonb_to_recordset(%(rows)s::jsonb)
        AS cleared (agent_id uuid, user_id text, created_at timestamptz, up_to uuid)
    LEFT JOIN memory_message AS message ON message.id = cleared.up_to
    WHERE NOT EXISTS (
        SELECT FROM memory_windowclear AS existing
        WHERE (existing.agent_id, existing.user_id) = (cleared.agent_id, cleared.user_id)
          AND existing.created_at >= cleared.created_at
    )
    ORDER BY cleared.created_at
"""
# A new clear of both, so that the last one does not give back what another has cleared.
_MERGE_CLEARS: Final = """
    WITH moved AS (
        UPDATE memory_windowclear SET user_id = %(to)s
        WHERE agent_id = %(agent)s AND user_id = %(from)s
        RETURNING last_number, created_at
    ), own AS (
        SELECT last_number, created_at FROM memory_windowclear
        WHERE agent_id = %(agent)s AND user_id = %(to)s
    )
    INSERT INTO memory_windowclear (agent_id, user_id, last_number, created_at)
    SELECT %(agent)s, %(to)s, max(last_number), max(created_at)
    FROM (SELECT * FROM moved UNION ALL SELECT * FROM own) AS cleared
    HAVING EXISTS (SELECT FROM moved)
"""


class WindowClear(AgentUserModel):
    """A cleared window. Turns up to this message are not added to it again. Append-only."""

    id = models.BigAutoField(primary_key=True)
    last_number = models.BigIntegerField(
        help_text="Number of the newest message of the conversation when it was cleared."
    )
    created_at = models.DateTimeField(db_default=server_now(), help_text="When it was cleared.")

    objects = ScopedQuerySet.as_manager()

    personal_data = rows_of_user(
        # Messages get new numbers: the archive names the last message by its id.
        export=Export(
            kind="window_clears",
            position=12,
            key=("agent_id", "user_id", "created_at"),
            select=_SELECT_CLEARS,
            insert=(_INSERT_CLEARS,),
        ),
        merge=Merge(for_agent=_MERGE_CLEARS),
        retention=WITHOUT_MESSAGES,
    )

    class Meta:
        verbose_name = "cleared window"
        indexes = [models.Index(fields=["agent_id", "user_id", "id"], name="window_clear_scope")]

    def __str__(self) -> str:
        return gettext("%(user)s with %(agent)s, up to message %(number)s") % {
            "user": self.user_id,
            "agent": self.agent_id,
            "number": self.last_number,
        }
