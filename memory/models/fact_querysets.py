"""The vocabulary of reads of facts."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from django.apps import apps
from django.db import models
from django.db.models.functions import Now
from pgvector.django import CosineDistance

from memory.models.attributes import with_metadata


class MemoryEntryQuerySet(models.QuerySet):
    """Facts and their old versions."""

    def of_tenant(self, tenant_id: UUID | str) -> Self:
        """Return the tenant's rows. The schema and the policy check it independently."""
        return self.filter(tenant_id=tenant_id)

    def entries(self) -> Self:
        """Current facts, without old versions."""
        return self.filter(version_of__isnull=True)

    def versions_of(self, memory_id: UUID | str) -> Self:
        """An entry and its earlier versions, newest first; expired ones too."""
        entry = models.Q(memory_id=memory_id, version_of__isnull=True)
        # A version keeps the moment that it was written at, and each was written after the other.
        return self.filter(entry | models.Q(version_of=memory_id)).order_by(
            "-updated_at", "-memory_id"
        )

    def as_of(self, at: datetime | None = None) -> Self:
        """Facts that are valid now, or were valid at a moment: one version of each at most.

        Proposed and rejected facts never are. A superseded one was until it was superseded, and a
        retracted one until it was retracted.
        """
        moment = Now() if at is None else at
        if at is None:
            known = self.entries().filter(state="active")
        else:
            retracted_later = models.Q(state="retracted", retracted_at__gt=at)
            known = self.filter(models.Q(state__in=("active", "superseded")) | retracted_later)
        return known.filter(
            models.Q(valid_to__isnull=True) | models.Q(valid_to__gt=moment),
            models.Q(expires_at__isnull=True) | models.Q(expires_at__gt=moment),
            valid_from__lte=moment,
        )

    def known_to(self, agent_id: UUID | str) -> Self:
        """Facts of this agent: its own, and those that all agents share."""
        return self.filter(models.Q(agent_id=agent_id) | models.Q(agent_id__isnull=True))

    def about(self, user_id: str) -> Self:
        """Facts that this user may see: those about them, and those about no user."""
        return self.filter(models.Q(user_id=user_id) | models.Q(user_id__isnull=True))

    def without_evidence(self, agent_id: UUID | str | None, user_id: str | None) -> Self:
        """Leave out the facts of this agent and user that rest on messages."""
        evidence = apps.get_model("memory", "FactEvidence").objects
        return self.exclude(
            models.Exists(evidence.filter(memory_id=models.OuterRef("memory_id"))),
            agent_id=agent_id,
            user_id=user_id,
        )

    def about_nobody(self) -> Self:
        """Facts that belong to no user."""
        return self.filter(user_id__isnull=True)

    def about_somebody(self) -> Self:
        """Facts that belong to a user."""
        return self.filter(user_id__isnull=False)

    def with_metadata(self, filters: Mapping[str, Any]) -> Self:
        """Return facts with metadata that fulfil the filters: see `memory.models.fact_filters`."""
        return with_metadata(
            self, filters, apps.get_model("memory", "MemoryAttribute"), "memory_id"
        )

    def comparable(self, embedding_model: str) -> Self:
        """Only vectors of this model: those of two models point anywhere."""
        return self.filter(embedding_model=embedding_model)

    def nearest(self, embedding: Sequence[float]) -> Self:
        """Order by descending cosine similarity, as `score`; every row is compared.

        The distance is part of an expression, so that Postgres cannot walk the HNSW index, which
        ends after a number of rows of any user.
        """
        distance = CosineDistance("embedding", embedding)
        return self.annotate(score=1.0 - distance).order_by(
            distance + 0.0, "-created_at", "memory_id"
        )

    def about_nearest(self, embedding: Sequence[float]) -> Self:
        """Nearly by descending cosine similarity, in an order that the HNSW index has."""
        return self.order_by(CosineDistance("embedding", embedding))
