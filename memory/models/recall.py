"""Tables of recall: the index of messages by vectors and words, what was recalled for each reply,
and what recall leaves out.
"""

from datetime import datetime
from hashlib import blake2b
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID
from django.db import models
from django.utils.translation import gettext
from pgvector.django import BitField, VectorField

from memory.conf import EMBEDDING_DIMENSIONS
from memory.fields import RealField, pack_columns, vector_index
from memory.models import conversations
from memory.models.conversations import AgentUserModel, Message, Role, ScopedQuerySet, server_now
from memory.models.facts import AuthorKind, server_clock
from tenants import fields, personal_data as personal
from tenants.models import TenantModel


class ConversationEmbedding(AgentUserModel):
    """The vector of one piece of a message, or of a text stored directly. Append-only."""

    id = models.UUIDField(primary_key=True, db_default=RandomUUID(), editable=False)
    message = models.ForeignKey(
        Message,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="embeddings",
        db_index=False,
        help_text="The message that contains this piece. Empty: a text stored directly.",
    )
    piece = models.IntegerField(
        default=0, db_default=0, help_text="Position of the piece in its message, from 0."
    )
    content = models.TextField(help_text="The embedded text.")
    role = models.TextField(choices=Role, help_text="Role of the speaker.")
    embedding = VectorField(
        dimensions=EMBEDDING_DIMENSIONS, help_text="all-MiniLM-L6-v2, 384 dimensions."
    )
    embedding_model = fields.optional_text(
        help_text="Model and digest of its weights. Only vectors of one model can be compared. "
        "Empty: not recorded, treated as the current model."
    )
    quantized = models.GeneratedField(
        expression=models.Func("embedding", function="binary_quantize"),
        output_field=BitField(length=EMBEDDING_DIMENSIONS),
        db_persist=True,
        help_text="Signs of the vector's components, for fast comparison.",
    )
    created_at = models.DateTimeField(db_default=server_now(), help_text="When it was stored.")

    objects = ScopedQuerySet.as_manager()

    personal_data = personal.rows_of_user(
        message="message_id",
        export=personal.Export(kind="embeddings", position=3, without=("quantized",)),
        retention="message_id IS NULL AND created_at < %(before)s",
    )

    class Meta:
        verbose_name = "conversation embedding"
        constraints = [
            fields.one_of("role", Role, "embedding_role"),
            # Exactly once per model, also after a crash or a repeated job.
            models.UniqueConstraint(
                fields=["message", "embedding_model", "piece"],
                condition=models.Q(message__isnull=False),
                name="embedding_piece",
            ),
        ]
        indexes = [
            vector_index("embedding_hnsw"),
            models.Index(
                fields=["tenant_id", "agent_id", "user_id", "-created_at"],
                include=["embedding_model"],
                name="embedding_scope",
            ),
            # The pieces of a scope that is too large to read all of their vectors.
            models.Index(
                fields=["tenant_id", "agent_id", "user_id", "embedding_model"],
                include=["id", "quantized"],
                condition=models.Q(message__isnull=False),
                name="embedding_quantized",
            ),
            # The newest of all users, in the admin.
            models.Index(fields=["-created_at", "id"], name="embedding_newest"),
        ]

    def __str__(self) -> str:
        return f"{gettext(self.role)}: {self.content[:60]}"


# In an archive the row has columns of its job.
_SELECT_PENDING = f"""
    SELECT to_jsonb(pending) - 'tenant_id' || jsonb_build_object(
        'attempts', coalesce(job.attempts, 0), 'begun_at', job.begun_at,
        'last_error', coalesce(job.last_error, ''), 'due_at', coalesce(job.due_at, now())
    )
    FROM memory_pendingembedding AS pending
    LEFT JOIN tenants_job AS job ON job.tenant_id = pending.tenant_id
      AND job.kind = 'embedding' AND job.key = pending.message_id
    WHERE {personal.OF_MESSAGES_OF_USER} ORDER BY pending.message_id
"""  # noqa: S608
_INSERT_PENDING = """
    INSERT INTO memory_pendingembedding (message_id, created_at)
    SELECT message_id, created_at
    FROM jsonb_populate_recordset(NULL::memory_pendingembedding, %(rows)s::jsonb)
    ON CONFLICT DO NOTHING
"""
_INSERT_JOBS = """
    INSERT INTO tenants_job (kind, key, attempts, begun_at, last_error, due_at, sweep_at)
    SELECT 'embedding', message_id, attempts, begun_at, last_error, due_at, due_at
    FROM jsonb_to_recordset(%(rows)s::jsonb) AS job (
        message_id uuid, attempts int, begun_at timestamptz, last_error text, due_at timestamptz
    )
    ON CONFLICT DO NOTHING
"""


def is_indexed() -> models.Expression:
    """Return the expression that a message has its vectors and words, and recall can find it."""
    pending = PendingEmbedding.objects.filter(message=models.OuterRef("pk"))
    return ~models.Exists(pending)


class PendingEmbedding(TenantModel):
    """A message that has no vectors and words yet; deleted when they are written.

    A job of the kind "embedding" has its id as a key.
    """

    message = models.OneToOneField(
        Message, on_delete=models.PROTECT, primary_key=True, related_name="pending_embedding"
    )
    created_at = models.DateTimeField(db_default=server_now(), help_text="When it was accepted.")

    personal_data = personal.PersonalData(
        message="message_id",
        key="message_id",
        export=personal.Export(
            kind="pending_embeddings",
            position=6,
            key=("message_id",),
            with_new_messages=True,
            select=_SELECT_PENDING,
            insert=(_INSERT_PENDING, _INSERT_JOBS),
        ),
    )

    class Meta:
        verbose_name = "pending embedding"

    def __str__(self) -> str:
        return gettext("message %(message)s") % {"message": self.message_id}


def scope_number(agent_id: UUID, user_id: str) -> int:
    """Return the scope of an agent and a user as a Postgres bigint, computed without a lookup.

    Two pairs of one tenant share a number with a probability of one in 10^7 at a million users;
    then the primary key of Scope refuses the second.
    """
    return _number(agent_id.bytes, user_id.encode())


def session_number(thread_id: str, created_at: datetime) -> int:
    """Return the conversation of a message: its thread on its day, by the time zone of the moment.

    A thread may be a channel that never ends; its messages of last spring are another conversation.
    """
    return _number(thread_id.encode(), created_at.date().isoformat().encode())


def _number(*parts: bytes) -> int:
    digest = blake2b(b"\x00".join(parts), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


class Scope(AgentUserModel):
    """The integer that identifies an agent and a user in the index of recall. Append-only.

    It is computed from the two, so that a search needs no query to know it. The row guarantees
    that no two pairs share it.
    """

    id = models.BigIntegerField(primary_key=True)

    objects = ScopedQuerySet.as_manager()

    personal_data = personal.PersonalData(
        subject="user_id",
        agent="agent_id",
        export=personal.Export(kind="scopes", position=4),
        merge=personal.Merge(
            for_messages="INSERT INTO memory_scope (id, agent_id, user_id)"
            " SELECT %(to_scope)s, agent_id, %(to)s FROM memory_scope WHERE id = %(from_scope)s"
            " ON CONFLICT (agent_id, user_id) DO NOTHING",
            for_agent="DELETE FROM memory_scope WHERE id = %(from_scope)s",
        ),
        retention=conversations.WITHOUT_MESSAGES,
    )

    class Meta:
        verbose_name = "scope"
        constraints = [
            models.UniqueConstraint(fields=["agent_id", "user_id"], name="scope_agent_user")
        ]

    def __str__(self) -> str:
        return gettext("%(user)s with %(agent)s") % {"user": self.user_id, "agent": self.agent_id}


OF_SCOPES = "scope_id = ANY(%(scopes)s)"


class Posting(TenantModel):
    """The weight of one lexeme in one message: the lexical index. Append-only.

    No foreign keys: twenty rows a message would each pay for their check. The primary key carries
    the other columns too (see the migration), so that a search reads nothing but the index.
    """

    pk = models.CompositePrimaryKey("scope_id", "lexeme_hash", "message_number")
    scope_id = models.BigIntegerField(help_text="Scope.id")
    lexeme_hash = models.BigIntegerField(help_text="64-bit hash of the lexeme.")
    message_number = models.BigIntegerField(help_text="Message.number")
    weight = RealField(help_text="Saturated weight of the lexeme in the message.")

    personal_data = personal.PersonalData(
        where=OF_SCOPES,
        merge=personal.Merge(
            for_messages="UPDATE memory_posting SET scope_id = %(to_scope)s"
            " WHERE scope_id = %(from_scope)s AND message_number = ANY(%(numbers)s)"
        ),
    )

    class Meta:
        verbose_name = "posting"
        indexes = [
            # A word in all scopes: `memory.browse.search`. Equal hashes are stored once.
            models.Index(fields=["lexeme_hash"], name="posting_word")
        ]

    def __str__(self) -> str:
        return f"{self.lexeme_hash} in message {self.message_number}"


_SELECT_INDEX = f"""
    SELECT (to_jsonb(indexed) - ARRAY['tenant_id', 'message_number', 'card']) || jsonb_build_object(
        'postings', (
            SELECT jsonb_agg(jsonb_build_array(lexeme_hash, weight) ORDER BY lexeme_hash)
            FROM memory_posting
            WHERE scope_id = indexed.scope_id AND message_number = indexed.message_number
        )
    )
    FROM memory_indexedmessage AS indexed
    WHERE indexed.{personal.OF_MESSAGES_OF_USER} ORDER BY indexed.message_number
"""  # noqa: S608  (our constants)
_INSERT_INDEX = (
    """
    INSERT INTO memory_indexedmessage (
        message_number, scope_id, message_id, session, created_at, subject, by_user, words,
        has_time, asks, lexemes
    )
    SELECT message.number, indexed.scope_id, indexed.message_id, indexed.session,
           indexed.created_at, indexed.subject, indexed.by_user, indexed.words, indexed.has_time,
           coalesce(indexed.asks, false), coalesce(indexed.lexemes, 0)
    FROM jsonb_populate_recordset(NULL::memory_indexedmessage, %(rows)s::jsonb) AS indexed
    JOIN memory_message AS message ON message.id = indexed.message_id
    ON CONFLICT DO NOTHING
    """,
    """
    INSERT INTO memory_posting (scope_id, lexeme_hash, message_number, weight)
    SELECT (item ->> 'scope_id')::bigint, (posting ->> 0)::bigint, message.number,
           (posting ->> 1)::real
    FROM jsonb_array_elements(%(rows)s::jsonb) AS item
    JOIN memory_message AS message ON message.id = (item ->> 'message_id')::uuid,
    jsonb_array_elements(coalesce(nullif(item -> 'postings', 'null'), '[]')) AS posting
    WHERE coalesce((posting ->> 2)::boolean, true)  -- archives of before 0.1.0 have a third value
    ON CONFLICT DO NOTHING
    """,
)


class IndexedMessage(TenantModel):
    """The columns of a message that recall scores, without words and vectors. Append-only.

    Not a part of the transcript, so that a search reads a narrow index and no text.
    """

    message_number = models.BigIntegerField(primary_key=True, help_text="Message.number")
    scope_id = models.BigIntegerField(help_text="Scope.id")
    message_id = models.UUIDField(unique=True, help_text="Message.id")
    session = models.BigIntegerField(help_text="Hash of the thread and the day.")
    created_at = models.DateTimeField(help_text="Time of the message.")
    subject = models.BigIntegerField(help_text="Hash of the first word of the speaker's name.")
    by_user = models.BooleanField(help_text="Written by the user, not by the agent.")
    words = models.IntegerField(help_text="Number of its words.")
    has_time = models.BooleanField(help_text="Contains an expression of time.")
    asks = models.BooleanField(db_default=False, help_text="Contains only questions.")
    lexemes = models.IntegerField(db_default=0, help_text="Number of its lexemes.")
    packed_row = models.GeneratedField(
        db_column="card",
        expression=pack_columns(
            message_number="int8send",
            message_id="uuid_send",
            session="int8send",
            created_at="timestamptz_send",
            subject="int8send",
            words="int4send",
            has_time="boolsend",
            asks="boolsend",
            by_user="boolsend",
        ),
        output_field=models.BinaryField(),
        db_persist=True,
        help_text="All columns as one value, so that a whole scope is read as one value.",
    )

    personal_data = personal.PersonalData(
        where=OF_SCOPES,
        key="message_id",
        # With the postings. Messages get new numbers, and keep their ids.
        export=personal.Export(
            kind="index",
            position=5,
            key=("message_id",),
            select=_SELECT_INDEX,
            insert=_INSERT_INDEX,
        ),
        merge=personal.Merge(
            for_messages="UPDATE memory_indexedmessage SET scope_id = %(to_scope)s"
            " WHERE message_number = ANY(%(numbers)s)"
        ),
    )

    class Meta:
        verbose_name = "indexed message"
        indexes = [
            # A whole scope, turn after turn, from the index alone.
            models.Index(
                fields=["scope_id", "session", "created_at", "message_number"],
                include=["packed_row", "words", "lexemes", "tenant_id"],
                name="indexed_message_turns",
            )
        ]

    def __str__(self) -> str:
        return gettext("message %(message)s") % {"message": self.message_number}


# Unmatched texts of a prompt may quote its sources, of which one may be of another person.
_SELECT_EVENTS = f"""
    SELECT to_jsonb(event) - 'tenant_id' || CASE WHEN %(user)s::text IS NOT NULL AND EXISTS (
        SELECT FROM memory_promptsource WHERE event_id = event.id
    ) THEN '{{"unmatched": null}}' ELSE '{{}}' END::jsonb
    FROM memory_recallevent AS event WHERE {personal.OF_USER} ORDER BY id
"""  # noqa: S608  (our constants)


def _count(help_text: str) -> "models.SmallIntegerField[int, int]":
    return models.SmallIntegerField(default=0, db_default=0, help_text=help_text)


class RecallEvent(AgentUserModel):
    """The recall for a reply and its prompt, as ids, scores and references. Append-only.

    `memory.context.recall_events` writes them, and `recall_traces` joins them with the sources.
    """

    id = fields.random_id()
    reply = models.OneToOneField(
        Message,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="recall_event",
        help_text="The reply that was written with these memories.",
    )
    sources = fields.id_list(
        help_text="The messages and facts in the prompt, in its order; zero: erased since."
    )
    left_out = fields.id_list(
        help_text="The messages and facts that were found and are not in the prompt."
    )
    packed = models.BinaryField(
        help_text="Scores, and the texts of the prompt as references to the sources."
    )
    unmatched = ArrayField(
        models.TextField(),
        null=True,
        blank=True,
        help_text="Texts of the prompt that are no source, such as those of a program. They are "
        "erased with any source.",
    )
    hit_count = _count("Number of search results.")
    cut_count = _count("Number of the best search results that were left out.")
    injected_count = _count("Number of memories in the prompt.")
    fact_count = _count("Number of facts in the prompt.")
    turn_count = _count("Number of recent turns in the prompt.")
    abstained = models.BooleanField(help_text="No memory was relevant enough.")
    embedding_model = models.TextField(help_text="Model and digest of its weights.")
    milliseconds = models.FloatField(help_text="Duration of the recall.")
    created_at = models.DateTimeField(db_default=server_now(), help_text="When it was stored.")

    # Set by `memory.context.recall_traces.with_queries`: the search query.
    query: str

    objects = ScopedQuerySet.as_manager()

    personal_data = personal.rows_of_user(
        message="reply_id",
        # Erasures change rows.
        export=personal.Export(
            kind="recall_events", position=11, select=_SELECT_EVENTS, is_mutable=True
        ),
        retention="reply_id IS NULL AND created_at < %(before)s",
    )

    class Meta:
        verbose_name = "recall event"
        indexes = [
            models.Index(fields=["agent_id", "user_id", "created_at"], name="recall_event_scope"),
            # The newest of all users, and recalls per day.
            models.Index(
                fields=["-created_at", "id"],
                include=["tenant_id", "abstained"],
                name="recall_event_newest",
            ),
            models.Index(fields=["user_id", "created_at", "id"], name="recall_event_user"),
        ]

    def __str__(self) -> str:
        return gettext("recall for reply %(reply)s") % {"reply": self.reply_id}


class PromptSource(TenantModel):
    """A message or a fact in a prompt, except those of the user of the reply. Append-only.

    The latter are found by the user: with a row for each turn of the window, an event would take
    twice as much space.
    """

    pk = models.CompositePrimaryKey("event_id", "source_id")
    event = models.ForeignKey(
        RecallEvent,
        on_delete=models.PROTECT,
        related_name="prompt_sources",
        db_index=False,
        help_text="The recall event with the prompt.",
    )
    source_id = models.UUIDField(help_text="The message or the fact.")

    personal_data = personal.PersonalData(
        message="source_id",
        where="event_id IN (SELECT id FROM memory_recallevent WHERE "  # noqa: S608
        f"{RecallEvent.personal_data.of_person})",
        derived="event_id IN (SELECT id FROM memory_recallevent WHERE reply_id = ANY(%(ids)s))",
        agent="(SELECT agent_id FROM memory_recallevent WHERE id = event_id)",
        retention="event_id IN (SELECT id FROM memory_recallevent WHERE "  # noqa: S608
        f"{RecallEvent.personal_data.retention})",
        export=personal.Export(
            kind="prompt_sources",
            position=27,
            key=("event_id", "source_id"),
            where=f"event_id IN (SELECT id FROM memory_recallevent WHERE {personal.OF_USER})",  # noqa: S608
        ),
    )

    class Meta:
        verbose_name = "source of a prompt"
        verbose_name_plural = "sources of prompts"
        indexes = [models.Index(fields=["source_id"], name="prompt_source")]

    def __str__(self) -> str:
        return str(self.source_id)


class RecallExclusion(AgentUserModel):
    """A message, or some words of it, that recall leaves out until the exclusion is removed.

    A whole message is left out of the windows too.
    """

    id = fields.random_id()
    message = models.ForeignKey(
        Message,
        on_delete=models.PROTECT,
        related_name="recall_exclusions",
        db_index=False,
        help_text="The message.",
    )
    start = fields.optional_number(
        help_text="First character of the excluded words. Empty: the whole message is excluded."
    )
    end = fields.optional_number(
        help_text="Position after the last character of the excluded words."
    )
    # No foreign key: the words stay excluded when the corrected fact is deleted.
    memory_id = fields.optional_id(
        "corrected fact",
        help_text="The corrected fact, or its old version. Empty: the message was excluded "
        "without a correction.",
    )
    # No foreign key: the reply stays excluded when the message that it repeats is erased.
    echo_of = fields.optional_id(
        "echo of", help_text="The exclusion of the message that this reply repeats. Empty: none."
    )
    reason = models.TextField(blank=True, default="", help_text="The author's reason.")
    author_kind = models.TextField(choices=AuthorKind, help_text="The kind of the author.")
    author_id = models.TextField(
        blank=True, default="", help_text="Id of the person, the API key or the extraction run."
    )
    author_name = models.TextField(blank=True, default="", help_text="Name of the author.")
    created_at = models.DateTimeField(db_default=server_clock(), help_text="When it was excluded.")

    personal_data = personal.rows_of_user(
        message="message_id", export=personal.Export(kind="recall_exclusions", position=21)
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
            fields.index_if_set("memory_id", "recall_exclusion_fact"),
            fields.index_if_set("echo_of", "recall_exclusion_echo"),
        ]

    def __str__(self) -> str:
        if self.start is None:
            return gettext("message %(message)s, whole") % {"message": self.message_id}
        return gettext("message %(message)s, %(start)s to %(end)s") % {
            "message": self.message_id,
            "start": self.start,
            "end": self.end,
        }
