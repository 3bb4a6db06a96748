"""Queries of facts."""

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
        """Return current facts, without old versions."""
        return self.filter(version_of__isnull=True)

    def versions_of(self, memory_id: UUID | str) -> Self:
        """Return an entry and its earlier versions, newest first, including expired ones."""
        entry = models.Q(memory_id=memory_id, version_of__isnull=True)
        # A version keeps its updated_at, and each was written after the one before.
        return self.filter(entry | models.Q(version_of=memory_id)).order_by(
            "-updated_at", "-memory_id"
        )

    def as_of(self, at: datetime | None = None) -> Self:
        """Return the facts that are valid now, or were valid at a time: at most one version each.

        Proposed and rejected facts are never valid. A superseded fact was valid until it was
        superseded, a retracted one until it was retracted.
        """
        time = Now() if at is None else at
        if at is None:
            rows = self.entries().filter(state="active")
        else:
            retracted_later = models.Q(state="retracted", retracted_at__gt=at)
            rows = self.filter(models.Q(state__in=("active", "superseded")) | retracted_later)
        return rows.filter(
            models.Q(valid_to__isnull=True) | models.Q(valid_to__gt=time),
            models.Q(expires_at__isnull=True) | models.Q(expires_at__gt=time),
            valid_from__lte=time,
        )

    def waiting_for_review(self) -> Self:
        """Return the proposed facts, without those of which recall excludes all evidence."""
        evidence = apps.get_model("memory", "FactEvidence").objects
        exclusions = apps.get_model("memory", "RecallExclusion").objects
        of_message = exclusions.filter(message_id=models.OuterRef("message_id"))
        whole = models.Q(start__isnull=True)
        words = models.Q(start__lt=models.OuterRef("end"), end__gt=models.OuterRef("start"))
        of_fact = evidence.filter(memory_id=models.OuterRef("memory_id"))
        included = of_fact.exclude(models.Exists(of_message.filter(whole | words)))
        return self.entries().filter(
            models.Exists(included) | ~models.Exists(of_fact), state="proposed"
        )

    def visible_to_agent(self, agent_id: UUID | str) -> Self:
        """Return the facts of this agent, and those of all agents."""
        return self.filter(models.Q(agent_id=agent_id) | models.Q(agent_id__isnull=True))

    def about(self, user_id: str) -> Self:
        """Return the facts about this user, and those about no user."""
        return self.filter(models.Q(user_id=user_id) | models.Q(user_id__isnull=True))

    def without_evidence(self, agent_id: UUID | str | None, user_id: str | None) -> Self:
        """Leave out the facts of this agent and user that have evidence in messages."""
        evidence = apps.get_model("memory", "FactEvidence").objects
        return self.exclude(
            models.Exists(evidence.filter(memory_id=models.OuterRef("memory_id"))),
            agent_id=agent_id,
            user_id=user_id,
        )

    def with_metadata(self, filters: Mapping[str, Any]) -> Self:
        """Return the facts with metadata that match: see `memory.models.attributes`."""
        return with_metadata(
            self, filters, apps.get_model("memory", "MemoryAttribute"), "memory_id"
        )

    def comparable(self, embedding_model: str) -> Self:
        """Return the facts with vectors of this model: those of two models cannot be compared."""
        return self.filter(embedding_model=embedding_model)

    def nearest(self, embedding: Sequence[float]) -> Self:
        """Order by descending cosine similarity, as `score`; every row is compared.

        The distance is part of an expression, so that Postgres does not scan the HNSW index, which
        ends after a number of rows of all users.
        """
        distance = CosineDistance("embedding", embedding)
        return self.annotate(score=1.0 - distance).order_by(
            distance + 0.0, "-created_at", "memory_id"
        )

    def order_by_distance(self, embedding: Sequence[float]) -> Self:
        """Order by descending cosine similarity, approximately, along the HNSW index."""
        return self.order_by(CosineDistance("embedding", embedding))
