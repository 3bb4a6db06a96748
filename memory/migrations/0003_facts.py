"""Facts, their versions, and their metadata where a b-tree can find it."""

import uuid

import django.contrib.postgres.functions
import django.db.models.deletion
import pgvector.django
from django.db import migrations, models

import memory.fields
from tenants.operations.policies import ForceRowLevelSecurity, GrantToApp, VectorStoragePlain
from tenants.postgresql.expressions import CurrentTenant


def tenant_id():
    return models.UUIDField(db_default=CurrentTenant(), editable=False)


def server_time(help_text):
    return models.DateTimeField(
        db_default=models.Func(function="clock_timestamp", output_field=models.DateTimeField()),
        help_text=help_text,
    )


def moment(help_text):
    return models.DateTimeField(blank=True, null=True, help_text=help_text)


def version(help_text):
    return models.UUIDField(blank=True, editable=False, null=True, help_text=help_text)


class Migration(migrations.Migration):
    dependencies = [("memory", "0002_index_messages_for_recall")]

    operations = [
        migrations.CreateModel(
            name="MemoryEntry",
            fields=[
                ("tenant_id", tenant_id()),
                (
                    "memory_id",
                    models.UUIDField(
                        db_default=django.contrib.postgres.functions.RandomUUID(),
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
                        null=True,
                        verbose_name="agent",
                        help_text="The agent that knows it; none: all agents do.",
                    ),
                ),
                (
                    "user_id",
                    models.TextField(
                        blank=True,
                        null=True,
                        verbose_name="user",
                        help_text="The user whom it is about; none: nobody's.",
                    ),
                ),
                ("content", models.TextField(help_text="The fact, in words.")),
                ("content_digest", memory.fields.DigestField("content")),
                (
                    "metadata",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        db_default=models.Value({}, output_field=models.JSONField()),
                        help_text="What searches can be narrowed by.",
                    ),
                ),
                (
                    "embedding",
                    pgvector.django.VectorField(
                        dimensions=384, help_text="all-MiniLM-L6-v2, 384 dimensions."
                    ),
                ),
                (
                    "embedding_model",
                    models.TextField(
                        help_text=(
                            "Model and digest of its weights. Only vectors of one model can be"
                            " compared."
                        )
                    ),
                ),
                ("created_at", server_time("When it was stored first.")),
                ("updated_at", server_time("When it was changed last.")),
                ("valid_from", server_time("Since when it has been so.")),
                ("valid_to", moment("Until when it was so; open while it is.")),
                ("expires_at", moment("From then on it is not found any more.")),
                ("supersedes", version("The version that this one replaced.")),
                ("version_of", version("The entry that this is an old version of.")),
            ],
            options={
                "verbose_name": "fact",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(valid_to__isnull=True)
                        | models.Q(valid_to__gte=models.F("valid_from")),
                        name="fact_valid_from_before_to",
                    ),
                    models.UniqueConstraint(
                        fields=["content_digest", "agent_id", "user_id"],
                        condition=models.Q(version_of__isnull=True),
                        nulls_distinct=False,
                        name="fact_content",
                    ),
                ],
                "indexes": [
                    pgvector.django.HnswIndex(
                        fields=["embedding"],
                        name="fact_hnsw",
                        m=16,
                        ef_construction=64,
                        opclasses=["vector_cosine_ops"],
                    ),
                    models.Index(
                        fields=["tenant_id", "agent_id", "user_id", "-created_at"],
                        name="fact_scope",
                    ),
                    models.Index(fields=["tenant_id", "-created_at"], name="fact_newest"),
                    models.Index(
                        fields=["version_of", "valid_from"],
                        condition=models.Q(version_of__isnull=False),
                        name="fact_versions",
                    ),
                ],
            },
        ),
        VectorStoragePlain("memory_memoryentry"),
        migrations.CreateModel(
            name="MemoryAttribute",
            fields=[
                ("tenant_id", tenant_id()),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "memory",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="attributes",
                        to="memory.memoryentry",
                        help_text="The fact.",
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
                        null=True,
                        help_text="A text (a long one abridged), or a literal.",
                    ),
                ),
                ("number", models.FloatField(null=True, help_text="A number.")),
            ],
            options={
                "verbose_name": "fact attribute",
                "indexes": [
                    models.Index(
                        fields=["key", "kind", "text", "memory"],
                        include=["tenant_id"],
                        name="fact_attribute_text",
                    ),
                    models.Index(
                        fields=["key", "number", "memory"],
                        include=["tenant_id"],
                        condition=models.Q(number__isnull=False),
                        name="fact_attribute_number",
                    ),
                ],
            },
        ),
        *(
            operation
            for table in ("memory_memoryentry", "memory_memoryattribute")
            for operation in (
                ForceRowLevelSecurity(table),
                GrantToApp(table, "INSERT", "UPDATE", "DELETE"),
            )
        ),
    ]
