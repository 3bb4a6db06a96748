"""Everything that a tenant remembers, each table with its policy and grants."""

import uuid

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID
from django.db import migrations, models
from django.db.models import deletion
from django.db.models.functions import Now
from pgvector.django import BitField, HnswIndex, VectorField

from memory import fields
from tenants.fields import CurrentTenant
from tenants.operations import AddTenantColumn, CommentOnTables, VectorStoragePlain, protect_tables

# Two tenants that are migrated at once must not both create it. Nothing takes it away again: other
# tenants, and other people's tables, may use it.
ENSURE_VECTOR = """
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'vector') THEN
        PERFORM pg_advisory_xact_lock(hashtext('konstruct: create extension vector'));
        CREATE SCHEMA IF NOT EXISTS extensions;
        GRANT USAGE ON SCHEMA extensions TO konstruct_app;
        CREATE EXTENSION IF NOT EXISTS vector SCHEMA extensions;
    END IF;
END $$
"""

# What the application may do besides SELECT. A table with INSERT alone is append-only.
PRIVILEGES = {
    "memory_message": ["INSERT"],
    "memory_conversationembedding": ["INSERT"],
    "memory_pendingembedding": ["INSERT", "UPDATE", "DELETE"],
    "memory_scope": ["INSERT"],
    "memory_posting": ["INSERT"],
    "memory_recallevent": ["INSERT"],
    "memory_promptsource": ["INSERT"],
    "memory_windowclear": ["INSERT"],
    "memory_indexedmessage": ["INSERT"],
    "memory_memoryentry": ["INSERT", "UPDATE", "DELETE"],
    "memory_memoryattribute": ["INSERT", "UPDATE", "DELETE"],
    "memory_messageattribute": ["INSERT"],
    "memory_conversation": ["INSERT", "UPDATE", "DELETE"],
    "memory_conversationitem": ["INSERT", "DELETE"],
    "memory_factevent": ["INSERT", "DELETE"],
    "memory_factevidence": ["INSERT", "UPDATE (memory_id)", "DELETE"],
    "memory_recallexclusion": ["INSERT", "DELETE"],
    "memory_personname": ["INSERT"],
}
# A recall reads these from their indexes alone, as long as Postgres knows that all see the rows. It
# learns it by VACUUM, which by default comes after a fifth of a table is new.
VACUUMED_EARLY = ("memory_conversationembedding", "memory_indexedmessage", "memory_posting")

# LangGraph's tables, version 9 (langgraph-checkpoint-postgres 3), with tenant, policy and grants.
#
# LangGraph's own setup() builds its indexes concurrently, so outside of a transaction, and knows of
# no tenants. These are the same tables, made empty; it finds version 9 and has nothing left to do. Its
# indexes on `thread_id` are left out, because the primary keys begin with the thread.
CREATE_CHECKPOINTS = """
CREATE TABLE checkpoint_migrations (v integer PRIMARY KEY);

CREATE TABLE checkpoints (
    thread_id text NOT NULL,
    checkpoint_ns text NOT NULL DEFAULT '',
    checkpoint_id text NOT NULL,
    parent_checkpoint_id text,
    type text,
    checkpoint jsonb NOT NULL,
    metadata jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
);

CREATE TABLE checkpoint_blobs (
    thread_id text NOT NULL,
    checkpoint_ns text NOT NULL DEFAULT '',
    channel text NOT NULL,
    version text NOT NULL,
    type text NOT NULL,
    blob bytea,
    PRIMARY KEY (thread_id, checkpoint_ns, channel, version)
);

CREATE TABLE checkpoint_writes (
    thread_id text NOT NULL,
    checkpoint_ns text NOT NULL DEFAULT '',
    checkpoint_id text NOT NULL,
    task_id text NOT NULL,
    idx integer NOT NULL,
    channel text NOT NULL,
    type text,
    blob bytea NOT NULL,
    task_path text NOT NULL DEFAULT '',
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
);
"""
DROP_CHECKPOINTS = (
    "DROP TABLE checkpoint_writes, checkpoint_blobs, checkpoints, checkpoint_migrations"
)
CHECKPOINT_PRIVILEGES = {
    "checkpoint_migrations": [],
    "checkpoints": ["INSERT", "UPDATE", "DELETE"],
    "checkpoint_blobs": ["INSERT", "UPDATE", "DELETE"],
    "checkpoint_writes": ["INSERT", "UPDATE", "DELETE"],
}


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.RunSQL(ENSURE_VECTOR, migrations.RunSQL.noop),
        migrations.CreateModel(
            name="Message",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                (
                    "agent_id",
                    models.UUIDField(
                        help_text="The agent that this memory belongs to.", verbose_name="agent"
                    ),
                ),
                (
                    "user_id",
                    models.TextField(
                        help_text="The user's id in the channel, such as a Slack user id.",
                        verbose_name="user",
                    ),
                ),
                (
                    "id",
                    models.UUIDField(
                        db_default=RandomUUID(),
                        default=uuid.uuid4,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "number",
                    fields.IdentityField(help_text="Order of insertion.", unique=True),
                ),
                (
                    "thread_id",
                    models.TextField(
                        help_text="The conversation's id in the channel. Memory spans all conversations.",
                        verbose_name="thread",
                    ),
                ),
                (
                    "channel",
                    models.TextField(help_text="The source: rest, slack, import, handover …"),
                ),
                (
                    "role",
                    models.TextField(
                        choices=[("user", "User"), ("assistant", "Assistant")],
                        help_text="Role of the speaker.",
                    ),
                ),
                (
                    "name",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The speaker's display name.",
                    ),
                ),
                ("content", models.TextField(help_text="The text, verbatim.")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=models.Func(function="now", output_field=models.DateTimeField()),
                        help_text="Time of the message; for imported turns, the original time.",
                    ),
                ),
                (
                    "idempotency_key",
                    models.CharField(
                        blank=True,
                        help_text="Deduplication key of the sender, prefixed with the channel.",
                        max_length=255,
                        null=True,
                    ),
                ),
                (
                    "external_id",
                    models.CharField(
                        blank=True,
                        help_text="Id in the system that it was imported from.",
                        max_length=255,
                        null=True,
                    ),
                ),
                (
                    "in_reply_to",
                    models.OneToOneField(
                        blank=True,
                        help_text="The message that this one answers. A message gets one reply.",
                        null=True,
                        on_delete=deletion.PROTECT,
                        related_name="reply",
                        to="memory.message",
                    ),
                ),
                (
                    "answered_by_id",
                    models.UUIDField(
                        blank=True,
                        help_text="The agent that wrote this reply, which differs from the message's agent after a handover. Empty: a person, an import, or a reply from before this was recorded.",
                        null=True,
                        verbose_name="answered by",
                    ),
                ),
                (
                    "metadata",
                    models.JSONField(
                        blank=True,
                        help_text="Metadata from the program, for search filters.",
                        null=True,
                    ),
                ),
                (
                    "usage",
                    models.JSONField(
                        blank=True,
                        help_text="Tokens that the language model has reported of a reply.",
                        null=True,
                    ),
                ),
                (
                    "finish_reason",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Why the language model ended a reply, by OpenAI's names: stop, length or content_filter. Empty: no language model wrote it, or it was written before this was recorded.",
                    ),
                ),
            ],
            options={
                "verbose_name": "message",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("role__in", ["user", "assistant"])), name="message_role"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("idempotency_key__isnull", False)),
                        fields=("idempotency_key",),
                        name="message_idempotency_key",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("external_id__isnull", False)),
                        fields=("agent_id", "user_id", "external_id"),
                        name="message_external_id",
                    ),
                ],
                "indexes": [
                    models.Index(
                        fields=["agent_id", "user_id", "created_at", "number"], name="message_scope"
                    ),
                    models.Index(
                        fields=["agent_id", "user_id", "thread_id", "created_at", "number"],
                        name="message_thread",
                    ),
                    models.Index(
                        fields=["created_at"], include=("tenant_id",), name="message_created"
                    ),
                    models.Index(
                        fields=["user_id", "created_at", "number"],
                        include=("agent_id", "tenant_id"),
                        name="message_user",
                    ),
                    models.Index(fields=["agent_id", "created_at", "number"], name="message_agent"),
                    models.Index(
                        fields=["thread_id", "created_at", "number"], name="message_thread_time"
                    ),
                    models.Index(
                        condition=models.Q(
                            ("role", "user"), models.Q(("channel", "import"), _negated=True)
                        ),
                        fields=["created_at", "number"],
                        name="message_sent",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ConversationEmbedding",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                (
                    "agent_id",
                    models.UUIDField(
                        help_text="The agent that this memory belongs to.", verbose_name="agent"
                    ),
                ),
                (
                    "user_id",
                    models.TextField(
                        help_text="The user's id in the channel, such as a Slack user id.",
                        verbose_name="user",
                    ),
                ),
                (
                    "id",
                    models.UUIDField(
                        db_default=RandomUUID(),
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "message",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        help_text="The message that contains this piece. Empty: a text stored directly.",
                        null=True,
                        on_delete=deletion.PROTECT,
                        related_name="embeddings",
                        to="memory.message",
                    ),
                ),
                (
                    "piece",
                    models.IntegerField(
                        db_default=0,
                        default=0,
                        help_text="Position of the piece in its message, from 0.",
                    ),
                ),
                ("content", models.TextField(help_text="The embedded text.")),
                (
                    "role",
                    models.TextField(
                        choices=[("user", "User"), ("assistant", "Assistant")],
                        help_text="Role of the speaker.",
                    ),
                ),
                (
                    "embedding",
                    VectorField(dimensions=384, help_text="all-MiniLM-L6-v2, 384 dimensions."),
                ),
                (
                    "embedding_model",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Model and digest of its weights. Only vectors of one model can be compared. Empty: not recorded, treated as the current model.",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=models.Func(function="now", output_field=models.DateTimeField()),
                        help_text="When it was stored.",
                    ),
                ),
                (
                    "quantized",
                    models.GeneratedField(
                        db_persist=True,
                        expression=models.Func("embedding", function="binary_quantize"),
                        help_text="Signs of the vector's components, for fast comparison.",
                        output_field=BitField(length=384),
                    ),
                ),
            ],
            options={
                "verbose_name": "conversation embedding",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("role__in", ["user", "assistant"])),
                        name="embedding_role",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("message__isnull", False)),
                        fields=("message", "embedding_model", "piece"),
                        name="embedding_piece",
                    ),
                ],
                "indexes": [
                    HnswIndex(
                        ef_construction=64,
                        fields=["embedding"],
                        m=16,
                        name="embedding_hnsw",
                        opclasses=["vector_cosine_ops"],
                    ),
                    models.Index(
                        fields=["tenant_id", "agent_id", "user_id", "-created_at"],
                        include=("embedding_model",),
                        name="embedding_scope",
                    ),
                    models.Index(fields=["-created_at", "id"], name="embedding_newest"),
                    models.Index(
                        condition=models.Q(("message__isnull", False)),
                        fields=["tenant_id", "agent_id", "user_id", "embedding_model"],
                        include=("id", "quantized"),
                        name="embedding_quantized",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PendingEmbedding",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                (
                    "message",
                    models.OneToOneField(
                        on_delete=deletion.PROTECT,
                        primary_key=True,
                        related_name="pending_embedding",
                        serialize=False,
                        to="memory.message",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=models.Func(function="now", output_field=models.DateTimeField()),
                        help_text="When it was accepted.",
                    ),
                ),
            ],
            options={
                "verbose_name": "pending embedding",
            },
        ),
        migrations.CreateModel(
            name="Scope",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                (
                    "agent_id",
                    models.UUIDField(
                        help_text="The agent that this memory belongs to.", verbose_name="agent"
                    ),
                ),
                (
                    "user_id",
                    models.TextField(
                        help_text="The user's id in the channel, such as a Slack user id.",
                        verbose_name="user",
                    ),
                ),
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
            ],
            options={
                "verbose_name": "scope",
                "constraints": [
                    models.UniqueConstraint(fields=("agent_id", "user_id"), name="scope_agent_user")
                ],
            },
        ),
        migrations.CreateModel(
            name="Posting",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "scope_id",
                        "lexeme_hash",
                        "message_number",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("scope_id", models.BigIntegerField(help_text="Scope.id")),
                ("lexeme_hash", models.BigIntegerField(help_text="64-bit hash of the lexeme.")),
                ("message_number", models.BigIntegerField(help_text="Message.number")),
                (
                    "weight",
                    fields.RealField(help_text="Saturated weight of the lexeme in the message."),
                ),
            ],
            options={
                "verbose_name": "posting",
                "indexes": [models.Index(fields=["lexeme_hash"], name="posting_word")],
            },
        ),
        migrations.CreateModel(
            name="RecallEvent",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                (
                    "agent_id",
                    models.UUIDField(
                        help_text="The agent that this memory belongs to.", verbose_name="agent"
                    ),
                ),
                (
                    "user_id",
                    models.TextField(
                        help_text="The user's id in the channel, such as a Slack user id.",
                        verbose_name="user",
                    ),
                ),
                (
                    "id",
                    models.UUIDField(
                        db_default=RandomUUID(),
                        default=uuid.uuid4,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "reply",
                    models.OneToOneField(
                        blank=True,
                        help_text="The reply that was written with these memories.",
                        null=True,
                        on_delete=deletion.PROTECT,
                        related_name="recall_event",
                        to="memory.message",
                    ),
                ),
                (
                    "sources",
                    ArrayField(
                        base_field=models.UUIDField(),
                        db_default=models.Value(
                            [], output_field=ArrayField(base_field=models.UUIDField(), size=None)
                        ),
                        default=list,
                        help_text="The messages and facts in the prompt, in its order; zero: erased since.",
                        size=None,
                    ),
                ),
                (
                    "left_out",
                    ArrayField(
                        base_field=models.UUIDField(),
                        db_default=models.Value(
                            [], output_field=ArrayField(base_field=models.UUIDField(), size=None)
                        ),
                        default=list,
                        help_text="The messages and facts that were found and are not in the prompt.",
                        size=None,
                    ),
                ),
                (
                    "packed",
                    models.BinaryField(
                        help_text="Scores, and the texts of the prompt as references to the sources."
                    ),
                ),
                (
                    "unmatched",
                    ArrayField(
                        base_field=models.TextField(),
                        blank=True,
                        help_text="Texts of the prompt that are no source, such as those of a program. They are erased with any source.",
                        null=True,
                        size=None,
                    ),
                ),
                (
                    "hit_count",
                    models.SmallIntegerField(
                        db_default=0,
                        default=0,
                        help_text="Number of search results.",
                    ),
                ),
                (
                    "cut_count",
                    models.SmallIntegerField(
                        db_default=0,
                        default=0,
                        help_text="Number of the best search results that were left out.",
                    ),
                ),
                (
                    "injected_count",
                    models.SmallIntegerField(
                        db_default=0,
                        default=0,
                        help_text="Number of memories in the prompt.",
                    ),
                ),
                (
                    "fact_count",
                    models.SmallIntegerField(
                        db_default=0,
                        default=0,
                        help_text="Number of facts in the prompt.",
                    ),
                ),
                (
                    "turn_count",
                    models.SmallIntegerField(
                        db_default=0,
                        default=0,
                        help_text="Number of recent turns in the prompt.",
                    ),
                ),
                ("abstained", models.BooleanField(help_text="No memory was relevant enough.")),
                ("embedding_model", models.TextField(help_text="Model and digest of its weights.")),
                ("milliseconds", models.FloatField(help_text="Duration of the recall.")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=models.Func(function="now", output_field=models.DateTimeField()),
                        help_text="When it was stored.",
                    ),
                ),
            ],
            options={
                "verbose_name": "recall event",
                "indexes": [
                    models.Index(
                        fields=["agent_id", "user_id", "created_at"], name="recall_event_scope"
                    ),
                    models.Index(
                        fields=["-created_at", "id"],
                        include=("tenant_id", "abstained"),
                        name="recall_event_newest",
                    ),
                    models.Index(fields=["user_id", "created_at", "id"], name="recall_event_user"),
                ],
            },
        ),
        migrations.CreateModel(
            name="PromptSource",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "event_id",
                        "source_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("source_id", models.UUIDField(help_text="The message or the fact.")),
                (
                    "event",
                    models.ForeignKey(
                        db_index=False,
                        help_text="The recall event with the prompt.",
                        on_delete=deletion.PROTECT,
                        related_name="prompt_sources",
                        to="memory.recallevent",
                    ),
                ),
            ],
            options={
                "verbose_name": "source of a prompt",
                "verbose_name_plural": "sources of prompts",
                "indexes": [models.Index(fields=["source_id"], name="prompt_source")],
            },
        ),
        migrations.CreateModel(
            name="WindowClear",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                (
                    "agent_id",
                    models.UUIDField(
                        help_text="The agent that this memory belongs to.", verbose_name="agent"
                    ),
                ),
                (
                    "user_id",
                    models.TextField(
                        help_text="The user's id in the channel, such as a Slack user id.",
                        verbose_name="user",
                    ),
                ),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "last_number",
                    models.BigIntegerField(
                        help_text="Number of the newest message of the conversation when it was cleared."
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=models.Func(function="now", output_field=models.DateTimeField()),
                        help_text="When it was cleared.",
                    ),
                ),
            ],
            options={
                "verbose_name": "cleared window",
                "indexes": [
                    models.Index(fields=["agent_id", "user_id", "id"], name="window_clear_scope")
                ],
            },
        ),
        migrations.CreateModel(
            name="IndexedMessage",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                (
                    "message_number",
                    models.BigIntegerField(
                        help_text="Message.number", primary_key=True, serialize=False
                    ),
                ),
                ("scope_id", models.BigIntegerField(help_text="Scope.id")),
                ("message_id", models.UUIDField(help_text="Message.id", unique=True)),
                ("session", models.BigIntegerField(help_text="Hash of the thread and the day.")),
                ("created_at", models.DateTimeField(help_text="Time of the message.")),
                (
                    "subject",
                    models.BigIntegerField(
                        help_text="Hash of the first word of the speaker's name."
                    ),
                ),
                (
                    "by_user",
                    models.BooleanField(help_text="Written by the user, not by the agent."),
                ),
                ("words", models.IntegerField(help_text="Number of its words.")),
                ("has_time", models.BooleanField(help_text="Contains an expression of time.")),
                (
                    "asks",
                    models.BooleanField(db_default=False, help_text="Contains only questions."),
                ),
                ("lexemes", models.IntegerField(db_default=0, help_text="Number of its lexemes.")),
                (
                    "packed_row",
                    models.GeneratedField(
                        db_column="card",
                        db_persist=True,
                        expression=fields.Packed(
                            models.Func("message_number", function="int8send"),
                            models.Func("message_id", function="uuid_send"),
                            models.Func("session", function="int8send"),
                            models.Func("created_at", function="timestamptz_send"),
                            models.Func("subject", function="int8send"),
                            models.Func("words", function="int4send"),
                            models.Func("has_time", function="boolsend"),
                            models.Func("asks", function="boolsend"),
                            models.Func("by_user", function="boolsend"),
                        ),
                        help_text="All columns as one value, so that a whole scope is read as one value.",
                        output_field=models.BinaryField(),
                    ),
                ),
            ],
            options={
                "verbose_name": "indexed message",
                "indexes": [
                    models.Index(
                        fields=["scope_id", "session", "created_at", "message_number"],
                        include=("packed_row", "words", "lexemes", "tenant_id"),
                        name="indexed_message_turns",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="MemoryEntry",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                (
                    "memory_id",
                    models.UUIDField(
                        db_default=RandomUUID(),
                        default=uuid.uuid4,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "agent_id",
                    models.UUIDField(
                        blank=True,
                        help_text="The agent that knows the fact. Empty: all agents.",
                        null=True,
                        verbose_name="agent",
                    ),
                ),
                (
                    "user_id",
                    models.TextField(
                        blank=True,
                        help_text="The user that the fact is about. Empty: no user.",
                        null=True,
                        verbose_name="user",
                    ),
                ),
                (
                    "external_id",
                    models.TextField(
                        blank=True,
                        editable=False,
                        help_text="The id that the program chose which stored it. Empty: the text identifies it.",
                        null=True,
                    ),
                ),
                ("content", models.TextField(help_text="The fact, in words.")),
                ("content_digest", fields.DigestField("content")),
                (
                    "metadata",
                    models.JSONField(
                        blank=True,
                        db_default=models.Value({}, output_field=models.JSONField()),
                        default=dict,
                        help_text="Metadata, for search filters.",
                    ),
                ),
                (
                    "embedding",
                    VectorField(dimensions=384, help_text="all-MiniLM-L6-v2, 384 dimensions."),
                ),
                (
                    "embedding_model",
                    models.TextField(
                        help_text="Model and digest of its weights. Only vectors of one model can be compared."
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=models.Func(
                            function="clock_timestamp", output_field=models.DateTimeField()
                        ),
                        help_text="When it was first stored.",
                    ),
                ),
                (
                    "updated_at",
                    models.DateTimeField(
                        db_default=models.Func(
                            function="clock_timestamp", output_field=models.DateTimeField()
                        ),
                        help_text="When it was changed last.",
                    ),
                ),
                (
                    "valid_from",
                    models.DateTimeField(
                        db_default=models.Func(
                            function="clock_timestamp", output_field=models.DateTimeField()
                        ),
                        help_text="Start of validity.",
                    ),
                ),
                (
                    "valid_to",
                    models.DateTimeField(
                        blank=True, help_text="End of validity. Empty: still valid.", null=True
                    ),
                ),
                (
                    "expires_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="Searches do not find it from this time on.",
                        null=True,
                    ),
                ),
                (
                    "supersedes",
                    models.UUIDField(
                        blank=True,
                        editable=False,
                        help_text="The version that this one replaced.",
                        null=True,
                    ),
                ),
                (
                    "version_of",
                    models.UUIDField(
                        blank=True,
                        editable=False,
                        help_text="The current entry of this old version.",
                        null=True,
                    ),
                ),
                (
                    "asserter",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Name of the person who stated it.",
                    ),
                ),
                (
                    "is_multi_valued",
                    models.BooleanField(
                        db_default=True,
                        default=True,
                        help_text="Whether several values of the slot can be valid at once.",
                        verbose_name="multi-valued",
                    ),
                ),
                (
                    "kind",
                    models.TextField(
                        choices=[
                            ("observed", "stated in a message"),
                            ("inferred", "concluded from messages"),
                            ("entered", "entered by a person or a program"),
                        ],
                        db_default="entered",
                        default="entered",
                        help_text="Whether it was stated in a message, concluded, or entered.",
                    ),
                ),
                (
                    "learned_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="When the earliest message of its evidence was sent. Empty: when it was stored.",
                        null=True,
                    ),
                ),
                (
                    "replaces",
                    models.UUIDField(
                        blank=True,
                        editable=False,
                        help_text="The fact that this one supersedes, or would supersede if it is confirmed.",
                        null=True,
                    ),
                ),
                (
                    "retracted_at",
                    models.DateTimeField(blank=True, help_text="When it was retracted.", null=True),
                ),
                (
                    "review_reason",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Why a person must review it, such as conflict or health.",
                    ),
                ),
                (
                    "run_id",
                    models.UUIDField(
                        blank=True,
                        editable=False,
                        help_text="The extraction run that proposed it.",
                        null=True,
                        verbose_name="extraction run",
                    ),
                ),
                (
                    "slot",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The attribute of the subject, in snake_case, such as home_city. Empty: none.",
                    ),
                ),
                (
                    "state",
                    models.TextField(
                        choices=[
                            ("proposed", "proposed"),
                            ("active", "active"),
                            ("superseded", "superseded"),
                            ("retracted", "retracted"),
                            ("rejected", "rejected"),
                        ],
                        db_default="active",
                        default="active",
                        help_text="Only active facts are given to agents.",
                    ),
                ),
                (
                    "subject",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The name of the person or thing that the fact is about.",
                    ),
                ),
                (
                    "valid_from_precision",
                    models.TextField(
                        blank=True,
                        choices=[
                            ("", "moment"),
                            ("day", "day"),
                            ("month", "month"),
                            ("year", "year"),
                        ],
                        db_default="",
                        default="",
                        help_text="How exactly “valid from” is known.",
                    ),
                ),
                (
                    "valid_to_precision",
                    models.TextField(
                        blank=True,
                        choices=[
                            ("", "moment"),
                            ("day", "day"),
                            ("month", "month"),
                            ("year", "year"),
                        ],
                        db_default="",
                        default="",
                        help_text="How exactly “valid until” is known.",
                    ),
                ),
                (
                    "value",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The value of the slot, such as Oslo.",
                    ),
                ),
            ],
            options={
                "verbose_name": "fact",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("valid_to__isnull", True),
                            ("valid_to__gte", models.F("valid_from")),
                            _connector="OR",
                        ),
                        name="fact_valid_from_before_to",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(
                            ("external_id__isnull", False), ("version_of__isnull", True)
                        ),
                        fields=("external_id", "agent_id", "user_id"),
                        name="fact_external_id",
                        nulls_distinct=False,
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(
                            ("external_id__isnull", True), ("version_of__isnull", True)
                        ),
                        fields=("content_digest", "agent_id", "user_id"),
                        name="fact_content",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                ["proposed", "active", "superseded", "retracted", "rejected"],
                            )
                        ),
                        name="fact_state",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["observed", "inferred", "entered"])),
                        name="fact_kind",
                    ),
                ],
                "indexes": [
                    HnswIndex(
                        ef_construction=64,
                        fields=["embedding"],
                        m=16,
                        name="fact_hnsw",
                        opclasses=["vector_cosine_ops"],
                    ),
                    models.Index(
                        fields=["tenant_id", "agent_id", "user_id", "-created_at"],
                        name="fact_scope",
                    ),
                    models.Index(fields=["tenant_id", "-created_at"], name="fact_newest"),
                    models.Index(
                        condition=models.Q(("version_of__isnull", False)),
                        fields=["version_of", "valid_from"],
                        name="fact_versions",
                    ),
                    models.Index(
                        condition=models.Q(("version_of__isnull", True)),
                        fields=["user_id"],
                        include=("tenant_id",),
                        name="fact_user",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("version_of__isnull", True), models.Q(("slot", ""), _negated=True)
                        ),
                        fields=["user_id", "agent_id", "slot"],
                        include=("tenant_id",),
                        name="fact_slot",
                    ),
                    models.Index(
                        condition=models.Q(("state", "proposed"), ("version_of__isnull", True)),
                        fields=["created_at", "memory_id"],
                        include=("tenant_id",),
                        name="fact_proposed",
                    ),
                    models.Index(
                        condition=models.Q(("run_id__isnull", False)),
                        fields=["run_id"],
                        name="fact_run",
                    ),
                ],
                "permissions": [
                    ("review_memoryentry", "Can confirm, reject, retract and restore facts")
                ],
            },
        ),
        migrations.CreateModel(
            name="MemoryAttribute",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "memory",
                    models.ForeignKey(
                        help_text="The fact.",
                        on_delete=deletion.CASCADE,
                        related_name="attributes",
                        to="memory.memoryentry",
                    ),
                ),
                (
                    "key",
                    models.TextField(
                        db_collation="C",
                        help_text="Path of the value; the keys of inner objects follow a dot.",
                    ),
                ),
                (
                    "kind",
                    models.TextField(
                        help_text="text, number, literal (true, false, null), object or list."
                    ),
                ),
                (
                    "text",
                    models.TextField(
                        db_collation="C",
                        help_text="A text (a long one abridged), or a literal.",
                        null=True,
                    ),
                ),
                ("number", models.FloatField(help_text="A number.", null=True)),
            ],
            options={
                "verbose_name": "fact attribute",
                "indexes": [
                    models.Index(
                        fields=["key", "kind", "text", "memory"],
                        include=("tenant_id",),
                        name="fact_attribute_text",
                    ),
                    models.Index(
                        condition=models.Q(("number__isnull", False)),
                        fields=["key", "number", "memory"],
                        include=("tenant_id",),
                        name="fact_attribute_number",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="MessageAttribute",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "key",
                    models.TextField(
                        db_collation="C",
                        help_text="Path of the value; the keys of inner objects follow a dot.",
                    ),
                ),
                (
                    "kind",
                    models.TextField(
                        help_text="text, number, literal (true, false, null), object or list."
                    ),
                ),
                (
                    "text",
                    models.TextField(
                        db_collation="C",
                        help_text="A text (a long one abridged), or a literal.",
                        null=True,
                    ),
                ),
                ("number", models.FloatField(help_text="A number.", null=True)),
                (
                    "message",
                    models.ForeignKey(
                        help_text="The message.",
                        on_delete=deletion.PROTECT,
                        related_name="attributes",
                        to="memory.message",
                    ),
                ),
            ],
            options={
                "verbose_name": "message attribute",
                "indexes": [
                    models.Index(
                        fields=["key", "kind", "text", "message"],
                        include=("tenant_id",),
                        name="message_attribute_text",
                    ),
                    models.Index(
                        condition=models.Q(("number__isnull", False)),
                        fields=["key", "number", "message"],
                        include=("tenant_id",),
                        name="message_attribute_number",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Conversation",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                (
                    "agent_id",
                    models.UUIDField(
                        help_text="The agent that this memory belongs to.", verbose_name="agent"
                    ),
                ),
                (
                    "user_id",
                    models.TextField(
                        help_text="The user's id in the channel, such as a Slack user id.",
                        verbose_name="user",
                    ),
                ),
                (
                    "id",
                    models.UUIDField(
                        db_default=RandomUUID(),
                        default=uuid.uuid4,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "thread_id",
                    models.TextField(help_text="The conversation.", verbose_name="thread"),
                ),
                (
                    "title",
                    models.TextField(blank=True, db_default="", default="", help_text="The title."),
                ),
                (
                    "metadata",
                    models.JSONField(
                        blank=True,
                        db_default=models.Value({}, output_field=models.JSONField()),
                        default=dict,
                        help_text="Metadata of programs.",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=models.Func(function="now", output_field=models.DateTimeField()),
                        help_text="When it was first set.",
                    ),
                ),
            ],
            options={
                "verbose_name": "conversation",
                "indexes": [models.Index(fields=["user_id"], name="conversation_user")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("agent_id", "user_id", "thread_id"), name="conversation_thread"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ConversationItem",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                (
                    "agent_id",
                    models.UUIDField(
                        help_text="The agent that this memory belongs to.", verbose_name="agent"
                    ),
                ),
                (
                    "user_id",
                    models.TextField(
                        help_text="The user's id in the channel, such as a Slack user id.",
                        verbose_name="user",
                    ),
                ),
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "number",
                    fields.IdentityField(help_text="Order of insertion.", unique=True),
                ),
                (
                    "thread_id",
                    models.TextField(help_text="The conversation.", verbose_name="thread"),
                ),
                (
                    "item",
                    models.TextField(help_text="JSON as text, since jsonb cannot store all JSON."),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=models.Func(function="now", output_field=models.DateTimeField()),
                        help_text="When it was added.",
                    ),
                ),
                (
                    "message",
                    models.ForeignKey(
                        blank=True,
                        help_text="The message with its text in the transcript. Empty: it is not remembered.",
                        null=True,
                        on_delete=deletion.PROTECT,
                        related_name="items",
                        to="memory.message",
                    ),
                ),
            ],
            options={
                "verbose_name": "conversation item",
                "indexes": [
                    models.Index(
                        fields=["agent_id", "user_id", "thread_id", "created_at", "number"],
                        name="conversation_item_thread",
                    ),
                    models.Index(fields=["user_id"], name="conversation_item_user"),
                ],
            },
        ),
        migrations.CreateModel(
            name="FactEvent",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                (
                    "id",
                    models.UUIDField(
                        db_default=RandomUUID(),
                        default=uuid.uuid4,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "number",
                    fields.IdentityField(help_text="Order of insertion.", unique=True),
                ),
                (
                    "action",
                    models.TextField(
                        choices=[
                            ("enter", "entered"),
                            ("propose", "proposed"),
                            ("confirm", "confirmed"),
                            ("change", "changed"),
                            ("supersede", "superseded"),
                            ("retract", "retracted"),
                            ("reject", "rejected"),
                            ("restore", "restored"),
                        ],
                        help_text="The change.",
                    ),
                ),
                (
                    "author_kind",
                    models.TextField(
                        choices=[
                            ("person", "person"),
                            ("program", "program with an API key"),
                            ("operator", "operator's command"),
                            ("run", "extraction run"),
                            ("system", "the platform"),
                        ],
                        help_text="The kind of the author.",
                    ),
                ),
                (
                    "author_id",
                    models.TextField(
                        blank=True,
                        default="",
                        help_text="Id of the person, the API key or the extraction run.",
                    ),
                ),
                (
                    "author_name",
                    models.TextField(blank=True, default="", help_text="Name of the author."),
                ),
                (
                    "reason",
                    models.TextField(blank=True, default="", help_text="The author's reason."),
                ),
                (
                    "other_id",
                    models.UUIDField(
                        blank=True,
                        help_text="The fact that superseded this one, or was superseded.",
                        null=True,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=models.Func(
                            function="clock_timestamp", output_field=models.DateTimeField()
                        ),
                        help_text="When it happened.",
                    ),
                ),
                (
                    "memory",
                    models.ForeignKey(
                        db_index=False,
                        help_text="The fact.",
                        on_delete=deletion.CASCADE,
                        related_name="events",
                        to="memory.memoryentry",
                    ),
                ),
            ],
            options={
                "verbose_name": "event of a fact",
                "verbose_name_plural": "events of facts",
                "indexes": [models.Index(fields=["memory", "number"], name="fact_event_fact")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "action__in",
                                [
                                    "enter",
                                    "propose",
                                    "confirm",
                                    "change",
                                    "supersede",
                                    "retract",
                                    "reject",
                                    "restore",
                                ],
                            )
                        ),
                        name="fact_event_action",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="FactEvidence",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                (
                    "id",
                    models.UUIDField(
                        db_default=RandomUUID(),
                        default=uuid.uuid4,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "start",
                    models.PositiveIntegerField(
                        help_text="First character of the quote in the message."
                    ),
                ),
                (
                    "end",
                    models.PositiveIntegerField(
                        help_text="Position after the last character of the quote."
                    ),
                ),
                ("quote", models.TextField(help_text="The words of the message, verbatim.")),
                (
                    "source_digest",
                    models.BinaryField(
                        help_text="Keyed digest of the message's user, time and text: copies have the same."
                    ),
                ),
                (
                    "run_id",
                    models.UUIDField(
                        blank=True,
                        help_text="The extraction run that found it.",
                        null=True,
                        verbose_name="extraction run",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=models.Func(
                            function="clock_timestamp", output_field=models.DateTimeField()
                        ),
                        help_text="When it was stored.",
                    ),
                ),
                (
                    "memory",
                    models.ForeignKey(
                        db_index=False,
                        help_text="The fact, or the old version that the quote states.",
                        on_delete=deletion.CASCADE,
                        related_name="evidence",
                        to="memory.memoryentry",
                    ),
                ),
                (
                    "message",
                    models.ForeignKey(
                        help_text="The message.",
                        on_delete=deletion.PROTECT,
                        related_name="fact_evidence",
                        to="memory.message",
                    ),
                ),
            ],
            options={
                "verbose_name": "evidence of a fact",
                "verbose_name_plural": "evidence of facts",
                "indexes": [
                    models.Index(
                        condition=models.Q(("run_id__isnull", False)),
                        fields=["run_id"],
                        name="fact_evidence_run",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("memory", "message", "start", "end"), name="fact_evidence_quote"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("end__gt", models.F("start"))), name="fact_evidence_end"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="RecallExclusion",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                (
                    "agent_id",
                    models.UUIDField(
                        help_text="The agent that this memory belongs to.", verbose_name="agent"
                    ),
                ),
                (
                    "user_id",
                    models.TextField(
                        help_text="The user's id in the channel, such as a Slack user id.",
                        verbose_name="user",
                    ),
                ),
                (
                    "id",
                    models.UUIDField(
                        db_default=RandomUUID(),
                        default=uuid.uuid4,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "start",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="First character of the excluded words. Empty: the whole message is excluded.",
                        null=True,
                    ),
                ),
                (
                    "end",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Position after the last character of the excluded words.",
                        null=True,
                    ),
                ),
                (
                    "memory_id",
                    models.UUIDField(
                        blank=True,
                        help_text="The corrected fact, or its old version. Empty: the message was excluded without a correction.",
                        null=True,
                        verbose_name="corrected fact",
                    ),
                ),
                (
                    "echo_of",
                    models.UUIDField(
                        blank=True,
                        help_text="The exclusion of the message that this reply repeats. Empty: none.",
                        null=True,
                        verbose_name="echo of",
                    ),
                ),
                (
                    "reason",
                    models.TextField(blank=True, default="", help_text="The author's reason."),
                ),
                (
                    "author_kind",
                    models.TextField(
                        choices=[
                            ("person", "person"),
                            ("program", "program with an API key"),
                            ("operator", "operator's command"),
                            ("run", "extraction run"),
                            ("system", "the platform"),
                        ],
                        help_text="The kind of the author.",
                    ),
                ),
                (
                    "author_id",
                    models.TextField(
                        blank=True,
                        default="",
                        help_text="Id of the person, the API key or the extraction run.",
                    ),
                ),
                (
                    "author_name",
                    models.TextField(blank=True, default="", help_text="Name of the author."),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=models.Func(
                            function="clock_timestamp", output_field=models.DateTimeField()
                        ),
                        help_text="When it was excluded.",
                    ),
                ),
                (
                    "message",
                    models.ForeignKey(
                        db_index=False,
                        help_text="The message.",
                        on_delete=deletion.PROTECT,
                        related_name="recall_exclusions",
                        to="memory.message",
                    ),
                ),
            ],
            options={
                "verbose_name": "recall exclusion",
                "indexes": [
                    models.Index(fields=["agent_id", "user_id"], name="recall_exclusion_scope"),
                    models.Index(
                        condition=models.Q(("memory_id__isnull", False)),
                        fields=["memory_id"],
                        name="recall_exclusion_fact",
                    ),
                    models.Index(
                        condition=models.Q(("echo_of__isnull", False)),
                        fields=["echo_of"],
                        name="recall_exclusion_echo",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("message", "memory_id", "echo_of", "start", "end"),
                        name="recall_exclusion_words",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("end__isnull", True), ("start__isnull", True)),
                            models.Q(("end__gt", models.F("start")), ("start__isnull", False)),
                            _connector="OR",
                        ),
                        name="recall_exclusion_end",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PersonName",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "user_id",
                        "name",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "user_id",
                    models.TextField(
                        help_text="The user whose messages have the name.", verbose_name="user"
                    ),
                ),
                ("name", models.TextField(help_text="The name, as the messages have it.")),
                (
                    "folded",
                    models.TextField(
                        help_text="The name without case and accents, to be searched."
                    ),
                ),
                (
                    "first_seen",
                    models.DateTimeField(
                        db_default=Now(),
                        help_text="Time of the first message with this name.",
                    ),
                ),
            ],
            options={
                "verbose_name": "name of a person",
                "verbose_name_plural": "names of people",
            },
        ),
        VectorStoragePlain("memory_conversationembedding"),
        VectorStoragePlain("memory_memoryentry"),
        # Django's composite key cannot carry columns; a search reads these from the index alone.
        migrations.RunSQL(
            "ALTER TABLE memory_posting DROP CONSTRAINT memory_posting_pkey, ADD PRIMARY KEY (scope_id, lexeme_hash, message_number) INCLUDE (weight, tenant_id)",
            "ALTER TABLE memory_posting DROP CONSTRAINT memory_posting_pkey, ADD PRIMARY KEY (scope_id, lexeme_hash, message_number)",
        ),
        *(
            migrations.RunSQL(
                f"ALTER TABLE {table} SET (autovacuum_vacuum_insert_scale_factor = 0.05)",
                f"ALTER TABLE {table} RESET (autovacuum_vacuum_insert_scale_factor)",
            )
            for table in VACUUMED_EARLY
        ),
        *protect_tables(PRIVILEGES),
        CommentOnTables(
            tables={
                "ConversationEmbedding": "The vector of one piece of a message, or of a text stored directly. Append-only.",
                "Conversation": "The title and metadata of a conversation, which programs set.",
                "ConversationItem": "A record of a framework's run: a message, a tool call or its result. Never changed.",
                "FactEvent": "A change of a fact's state, and its author. Never changed, and deleted with the fact.",
                "FactEvidence": "A quote from a message as the evidence of a fact. Never changed.",
                "IndexedMessage": "The columns of a message that recall scores, without words and vectors. Append-only.",
                "MemoryAttribute": "One value of a fact's metadata, where a b-tree can find it.",
                "MemoryEntry": "A fact. An update keeps its id, and keeps the earlier state as a version.",
                "Message": "One turn of the transcript, verbatim, written before anything else happens. Append-only.",
                "MessageAttribute": "One value of a message's metadata, where a b-tree can find it. Append-only.",
                "PendingEmbedding": "A message that has no vectors and words yet; deleted when they are written.",
                "PersonName": "A name that messages of a user have had, so that people are found by it. Append-only.",
                "Posting": "The weight of one lexeme in one message: the lexical index. Append-only.",
                "PromptSource": "A message or a fact in a prompt, except those of the user of the reply. Append-only.",
                "RecallEvent": "The recall for a reply and its prompt, as ids, scores and references. Append-only.",
                "RecallExclusion": "A message, or some words of it, that recall leaves out until the exclusion is removed.",
                "Scope": "The integer that identifies an agent and a user in the index of recall. Append-only.",
                "WindowClear": "A cleared window. Turns up to this message are not added to it again. Append-only.",
            },
        ),
        migrations.RunSQL(CREATE_CHECKPOINTS, DROP_CHECKPOINTS),
        *(AddTenantColumn(table) for table in CHECKPOINT_PRIVILEGES),
        *protect_tables(CHECKPOINT_PRIVILEGES),
        migrations.RunSQL(
            "INSERT INTO checkpoint_migrations (v) SELECT generate_series(0, 9)",
            migrations.RunSQL.noop,
        ),
    ]
