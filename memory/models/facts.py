"""Tables of facts: what is known, since when and until when, apart from who said it."""

import uuid
from typing import Any, Final

from django.contrib.postgres.functions import RandomUUID
from django.db import models
from pgvector.django import HnswIndex, VectorField

from memory.arguments import content_argument
from memory.conf import EMBEDDING_DIMENSIONS
from memory.fields import DigestField
from memory.models.attributes import Attribute
from memory.models.fact_querysets import MemoryEntryQuerySet
from tenants.models import TenantModel
from tenants.personal_data import Export, Merge, PersonalData


def server_clock() -> models.Func:
    """Postgres' clock: facts that are stored in one transaction still come one after the other."""
    return models.Func(function="clock_timestamp", output_field=models.DateTimeField())


# A fact that both users have becomes an old version of the other's.
_MERGE_EQUAL_FACTS: Final = """
    WITH twin AS (
        SELECT own.memory_id, kept.memory_id AS kept FROM memory_memoryentry AS own
        JOIN memory_memoryentry AS kept ON kept.user_id = %(to)s AND kept.version_of IS NULL
         AND kept.content_digest = own.content_digest
         AND kept.agent_id IS NOT DISTINCT FROM own.agent_id
        WHERE own.user_id = %(from)s AND own.version_of IS NULL
    )
    UPDATE memory_memoryentry AS moved SET version_of = twin.kept, valid_to = CASE
        WHEN moved.memory_id = twin.memory_id
        THEN greatest(valid_from, least(coalesce(valid_to, now()), now())) ELSE valid_to END
    FROM twin WHERE moved.memory_id = twin.memory_id OR moved.version_of = twin.memory_id
"""


class MemoryEntry(TenantModel):
    """A fact. An update keeps its id, and puts what was known before beside it as a version."""

    memory_id = models.UUIDField(
        primary_key=True, default=uuid.uuid4, db_default=RandomUUID(), editable=False
    )
    agent_id = models.UUIDField(
        "agent", null=True, blank=True, help_text="The agent that knows it; none: all agents do."
    )
    user_id = models.TextField(  # noqa: DJ001  (null: no user; '' would be a user)
        "user", null=True, blank=True, help_text="The user whom it is about; none: nobody's."
    )
    content = models.TextField(help_text="The fact, in words.")
    content_digest = DigestField("content")
    metadata = models.JSONField(
        default=dict,
        db_default=models.Value({}, output_field=models.JSONField()),
        blank=True,
        help_text="What searches can be narrowed by.",
    )
    embedding = VectorField(
        dimensions=EMBEDDING_DIMENSIONS, help_text="all-MiniLM-L6-v2, 384 dimensions."
    )
    embedding_model = models.TextField(
        help_text="Model and digest of its weights. Only vectors of one model can be compared."
    )
    created_at = models.DateTimeField(
        db_default=server_clock(), help_text="When it was stored first."
    )
    updated_at = models.DateTimeField(
        db_default=server_clock(), help_text="When it was changed last."
    )
    valid_from = models.DateTimeField(
        db_default=server_clock(), help_text="Since when it has been so."
    )
    valid_to = models.DateTimeField(
        null=True, blank=True, help_text="Until when it was so; open while it is."
    )
    expires_at = models.DateTimeField(
        null=True, blank=True, help_text="From then on it is not found any more."
    )
    supersedes = models.UUIDField(
        null=True, blank=True, editable=False, help_text="The version that this one replaced."
    )
    version_of = models.UUIDField(
        null=True, blank=True, editable=False, help_text="The entry that this is an old version of."
    )

    # Set by a search: the cosine similarity to what was asked.
    score: float

    objects = MemoryEntryQuerySet.as_manager()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # Rows of the database come as positional values, and a form begins with an empty entry.
        if kwargs and not args:
            content_argument(kwargs.get("content"))
        super().__init__(*args, **kwargs)

    personal_data = PersonalData(
        subject="user_id",
        agent="agent_id",
        key="memory_id",
        export=Export(kind="facts", position=14, key=("memory_id",)),
        merge=Merge(
            for_user=(
                _MERGE_EQUAL_FACTS,
                "UPDATE memory_memoryentry SET user_id = %(to)s WHERE user_id = %(from)s",
            )
        ),
    )

    class Meta:
        verbose_name = "fact"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(valid_to__isnull=True)
                | models.Q(valid_to__gte=models.F("valid_from")),
                name="fact_valid_from_before_to",
            ),
            # The same text is the same fact, whoever stores it at the same moment.
            models.UniqueConstraint(
                fields=["content_digest", "agent_id", "user_id"],
                condition=models.Q(version_of__isnull=True),
                nulls_distinct=False,
                name="fact_content",
            ),
        ]
        indexes = [
            HnswIndex(
                fields=["embedding"],
                name="fact_hnsw",
                m=16,
                ef_construction=64,
                opclasses=["vector_cosine_ops"],
            ),
            models.Index(
                fields=["tenant_id", "agent_id", "user_id", "-created_at"], name="fact_scope"
            ),
            models.Index(fields=["tenant_id", "-created_at"], name="fact_newest"),
            models.Index(
                fields=["user_id"],
                include=["tenant_id"],
                condition=models.Q(version_of__isnull=True),
                name="fact_user",
            ),
            models.Index(
                fields=["version_of", "valid_from"],
                condition=models.Q(version_of__isnull=False),
                name="fact_versions",
            ),
        ]

    @property
    def fact_id(self) -> uuid.UUID:
        """The id of the fact, which all its versions share."""
        return self.version_of or self.memory_id

    def __str__(self) -> str:
        return self.content[:60]


class MemoryAttribute(Attribute):
    """One value of a fact's metadata, where a b-tree can find it."""

    memory = models.ForeignKey(
        MemoryEntry, on_delete=models.CASCADE, related_name="attributes", help_text="The fact."
    )

    # An archive has the metadata, from which the import makes these rows again.
    personal_data = PersonalData(
        where="memory_id IN (SELECT memory_id FROM memory_memoryentry WHERE "  # noqa: S608
        f"{MemoryEntry.personal_data.of_person})"
    )

    class Meta:
        verbose_name = "fact attribute"
        indexes = [
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
        ]
