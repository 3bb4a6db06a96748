"""Everything that a tenant remembers, each table behind its policy and its grants."""

import uuid

import django.contrib.postgres.functions
import django.db.models.deletion
import pgvector.django
from django.db import migrations, models

import memory.fields
from tenants.operations.policies import ForceRowLevelSecurity, GrantToApp, VectorStoragePlain
from tenants.postgresql.expressions import CurrentTenant

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

# What the application may do besides SELECT. Append-only is what has INSERT alone.
TABLES = {
    "memory_message": ["INSERT"],
    "memory_conversationembedding": ["INSERT"],
    "memory_pendingembedding": ["INSERT", "UPDATE", "DELETE"],
    "memory_scope": ["INSERT"],
    "memory_posting": ["INSERT"],
    "memory_recallevent": ["INSERT"],
    "memory_windowclear": ["INSERT"],
}


def tenant_id():
    return models.UUIDField(db_default=CurrentTenant(), editable=False)


def agent_id():
    return models.UUIDField(verbose_name="agent", help_text="The agent whose memory this is.")


def user_id():
    return models.TextField(
        verbose_name="user",
        help_text="The user as the channel knows them, such as a Slack user id.",
    )


def role():
    return models.TextField(
        choices=[("user", "User"), ("assistant", "Assistant")], help_text="Who spoke."
    )


def server_uuid(**options):
    return models.UUIDField(
        db_default=django.contrib.postgres.functions.RandomUUID(),
        editable=False,
        primary_key=True,
        serialize=False,
        **options,
    )


def server_time(help_text):
    return models.DateTimeField(
        db_default=models.Func(function="now", output_field=models.DateTimeField()),
        help_text=help_text,
    )


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.RunSQL(ENSURE_VECTOR, migrations.RunSQL.noop),
        migrations.CreateModel(
            name="Message",
            fields=[
                ("tenant_id", tenant_id()),
                ("agent_id", agent_id()),
                ("user_id", user_id()),
                ("id", server_uuid(default=uuid.uuid4)),
                (
                    "number",
                    memory.fields.IdentityField(unique=True, help_text="Order of insertion."),
                ),
                (
                    "thread_id",
                    models.TextField(
                        verbose_name="thread",
                        help_text="Conversation, as the channel knows it; memory spans them all.",
                    ),
                ),
                (
                    "channel",
                    models.TextField(help_text="Where it came from: rest, slack, import …"),
                ),
                ("role", role()),
                (
                    "name",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The speaker's display name.",
                    ),
                ),
                ("content", models.TextField(help_text="What was said, verbatim.")),
                (
                    "created_at",
                    server_time("When it was said; for imported turns, in the original."),
                ),
                (
                    "idempotency_key",
                    models.CharField(
                        blank=True,
                        max_length=255,
                        null=True,
                        help_text="Given by the sender: the same key again is the same message.",
                    ),
                ),
                (
                    "external_id",
                    models.CharField(
                        blank=True,
                        max_length=255,
                        null=True,
                        help_text="Id in the system that it was imported from.",
                    ),
                ),
                (
                    "in_reply_to",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reply",
                        to="memory.message",
                        help_text="The message that this one answers. A message gets one reply.",
                    ),
                ),
            ],
            options={
                "verbose_name": "message",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(role__in=["user", "assistant"]), name="message_role"
                    ),
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
                ],
                "indexes": [
                    models.Index(
                        fields=["agent_id", "user_id", "created_at", "number"],
                        name="message_scope",
                    ),
                    models.Index(
                        fields=["agent_id", "user_id", "thread_id", "created_at", "number"],
                        name="message_thread",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ConversationEmbedding",
            fields=[
                ("tenant_id", tenant_id()),
                ("agent_id", agent_id()),
                ("user_id", user_id()),
                ("id", server_uuid()),
                (
                    "message",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="embeddings",
                        to="memory.message",
                        help_text=(
                            "The message that this is a piece of; none for a text stored directly."
                        ),
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
                ("content", models.TextField(help_text="What was embedded.")),
                ("role", role()),
                (
                    "embedding",
                    pgvector.django.VectorField(
                        dimensions=384, help_text="all-MiniLM-L6-v2, 384 dimensions."
                    ),
                ),
                (
                    "embedding_model",
                    models.TextField(
                        blank=True,
                        default="",
                        db_default="",
                        help_text="Model and digest of its weights: only vectors of one model can"
                        " be compared. Empty: its writer did not say, and it is taken for the"
                        " current one's.",
                    ),
                ),
                ("created_at", server_time("When it was stored.")),
            ],
            options={
                "verbose_name": "conversation embedding",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(role__in=["user", "assistant"]), name="embedding_role"
                    ),
                    models.UniqueConstraint(
                        fields=["message", "embedding_model", "piece"],
                        condition=models.Q(message__isnull=False),
                        name="embedding_piece",
                    ),
                ],
                "indexes": [
                    pgvector.django.HnswIndex(
                        fields=["embedding"],
                        name="embedding_hnsw",
                        m=16,
                        ef_construction=64,
                        opclasses=["vector_cosine_ops"],
                    ),
                    models.Index(
                        fields=["tenant_id", "agent_id", "user_id", "-created_at"],
                        include=["embedding_model"],
                        name="embedding_scope",
                    ),
                ],
            },
        ),
        VectorStoragePlain("memory_conversationembedding"),
        migrations.CreateModel(
            name="PendingEmbedding",
            fields=[
                ("tenant_id", tenant_id()),
                (
                    "message",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="pending_embedding",
                        serialize=False,
                        to="memory.message",
                    ),
                ),
                (
                    "attempts",
                    models.PositiveIntegerField(
                        db_default=0, default=0, help_text="How often it was tried by itself."
                    ),
                ),
                (
                    "last_error",
                    models.TextField(
                        blank=True, db_default="", default="", help_text="Why it failed last."
                    ),
                ),
                ("due_at", server_time("When it will be tried (again).")),
                ("created_at", server_time("When it was accepted.")),
                (
                    "recall_trace",
                    models.JSONField(
                        blank=True,
                        null=True,
                        help_text="What was recalled for this reply; becomes a recall event.",
                    ),
                ),
            ],
            options={
                "verbose_name": "pending embedding",
                "indexes": [models.Index(fields=["due_at"], name="pending_embedding_due")],
            },
        ),
        migrations.CreateModel(
            name="Scope",
            fields=[
                ("tenant_id", tenant_id()),
                ("agent_id", agent_id()),
                ("user_id", user_id()),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
            ],
            options={
                "verbose_name": "scope",
                "constraints": [
                    models.UniqueConstraint(fields=["agent_id", "user_id"], name="scope_agent_user")
                ],
            },
        ),
        migrations.CreateModel(
            name="Posting",
            fields=[
                ("tenant_id", tenant_id()),
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "scope_id",
                        "h",
                        "message_number",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("scope_id", models.BigIntegerField(help_text="Scope.id")),
                ("h", models.BigIntegerField(help_text="64-bit hash of the lexeme.")),
                ("message_number", models.BigIntegerField(help_text="Message.number")),
                (
                    "w",
                    memory.fields.RealField(
                        help_text="Saturated weight of the lexeme in the message's context."
                    ),
                ),
                (
                    "own",
                    models.BooleanField(
                        help_text="Said in the message itself, not only around it."
                    ),
                ),
            ],
            options={"verbose_name": "posting"},
        ),
        # Django's composite key cannot carry columns; a search reads these from the index alone.
        migrations.RunSQL(
            "ALTER TABLE memory_posting DROP CONSTRAINT memory_posting_pkey,"
            " ADD PRIMARY KEY (scope_id, h, message_number) INCLUDE (w, own, tenant_id)",
            "ALTER TABLE memory_posting DROP CONSTRAINT memory_posting_pkey,"
            " ADD PRIMARY KEY (scope_id, h, message_number)",
        ),
        migrations.CreateModel(
            name="RecallEvent",
            fields=[
                ("tenant_id", tenant_id()),
                ("agent_id", agent_id()),
                ("user_id", user_id()),
                ("id", server_uuid()),
                (
                    "reply",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="recall_event",
                        to="memory.message",
                        help_text="The reply that was written with these memories.",
                    ),
                ),
                ("query", models.TextField(help_text="What was asked of memory.")),
                (
                    "hits",
                    models.JSONField(help_text="What was found, with the score of every channel."),
                ),
                ("cut", models.JSONField(help_text="What was found but left out, and why.")),
                (
                    "injected",
                    models.JSONField(help_text="What the language model was given, as given."),
                ),
                ("abstained", models.BooleanField(help_text="Nothing was worth giving.")),
                (
                    "embedding_model",
                    models.TextField(help_text="Model and digest of its weights."),
                ),
                ("milliseconds", models.FloatField(help_text="Time that the recall took.")),
                ("created_at", server_time("When it was stored.")),
            ],
            options={
                "verbose_name": "recall event",
                "indexes": [
                    models.Index(
                        fields=["agent_id", "user_id", "created_at"], name="recall_event_scope"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="WindowClear",
            fields=[
                ("tenant_id", tenant_id()),
                ("agent_id", agent_id()),
                ("user_id", user_id()),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "last_number",
                    models.BigIntegerField(
                        help_text=(
                            "Number of the newest message of the conversation when it was cleared."
                        )
                    ),
                ),
                ("created_at", server_time("When it was cleared.")),
            ],
            options={
                "verbose_name": "cleared window",
                "indexes": [
                    models.Index(fields=["agent_id", "user_id", "id"], name="window_clear_scope")
                ],
            },
        ),
        *(
            operation
            for table, privileges in TABLES.items()
            for operation in (ForceRowLevelSecurity(table), GrantToApp(table, *privileges))
        ),
    ]
