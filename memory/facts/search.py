"""Searches facts by their fields and by distance to a vector."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.db.models.expressions import DatabaseDefault

from memory.arguments import content_argument, id_argument, uuid_argument
from memory.conf import EXACT_ROWS, HNSW_CANDIDATES_PER_ROW, HNSW_EF_SEARCH
from memory.embedding.embedder import model_version
from memory.embedding.vectors import hnsw_scan
from memory.exceptions import InvalidArgument
from memory.ids import new_id_argument
from memory.models.attributes import metadata_values
from memory.models.conversations import PromptSource, RecallEvent
from memory.models.fact_querysets import MemoryEntryQuerySet
from memory.models.facts import FactState, MemoryEntry
from tenants.context import current_tenant_id


def tenant_of_entry(entry: MemoryEntry) -> UUID | str:
    """Return the tenant of an entry, or else the current one."""
    if isinstance(entry.tenant_id, UUID | str):
        return entry.tenant_id
    current = current_tenant_id()
    if current is None:
        raise InvalidArgument("the fact has no tenant_id, and is not stored inside a tenant")
    return current


def check_entry(entry: MemoryEntry) -> None:
    """Convert an entry's fields into their types; raise InvalidArgument for invalid ones."""
    content_argument(entry.content)
    if entry.agent_id is not None:
        entry.agent_id = uuid_argument("agent_id", entry.agent_id)
    if entry.user_id is not None:
        new_id_argument("user_id", entry.user_id)
    if entry.external_id is not None:
        new_id_argument("external_id", entry.external_id)
    entry.metadata = {} if entry.metadata is None else entry.metadata
    metadata_values(entry.metadata)
    for name in ("valid_from", "valid_to", "expires_at"):
        value = getattr(entry, name)
        if not isinstance(value, DatabaseDefault):
            time_argument(name, value)


def time_argument(name: str, value: datetime | None) -> datetime | None:
    if value is not None and (not isinstance(value, datetime) or value.tzinfo is None):
        raise InvalidArgument(f"{name}={value!r} is not a time with a time zone")
    try:
        return value and value.astimezone(UTC)
    except OverflowError:
        raise InvalidArgument(f"{name}={value} is not of the years 1 to 9999 of UTC") from None


def filter_facts(
    tenant_id: UUID,
    *,
    agent_id: UUID | str | None = None,
    user_id: str | None = None,
    shared: bool = True,
    shared_only: bool = False,
    filters: Mapping[str, Any] | None = None,
    at: datetime | None = None,
    state: FactState | str = FactState.ACTIVE,
) -> MemoryEntryQuerySet:
    """Return the facts that `LongTermMemory.search` searches, as a lazy query.

    Args:
        state: for any other state than active, the facts in that state, valid or not. Proposed
            facts are those that wait for a review.

    Raises:
        InvalidArgument: a value is invalid.
    """
    rows = MemoryEntry.objects.of_tenant(tenant_id)
    if state == FactState.ACTIVE:
        rows = rows.as_of(time_argument("at", at))
    elif state == FactState.PROPOSED:
        rows = rows.waiting_for_review()
    else:
        rows = rows.entries().filter(state=state)
    if agent_id is not None:
        rows = rows.visible_to_agent(uuid_argument("agent_id", agent_id))
    if shared_only:
        rows = rows.filter(user_id__isnull=True)
    elif user_id is not None:
        rows = rows.about(id_argument("user_id", user_id))
    if not shared:
        rows = rows.filter(user_id__isnull=False)
    return rows.with_metadata(filters) if filters else rows


def nearest_facts(
    rows: MemoryEntryQuerySet, vector: Sequence[float], limit: int, *, threshold: float = -1.0
) -> list[MemoryEntry]:
    """Return the facts of the current tenant that are nearest to a vector of 384 numbers.

    Best first, each with its cosine similarity as `score`, which is at least `threshold`.
    """
    found = nearest_rows(rows.comparable(model_version()), vector, limit)
    return [entry for entry in found if entry.score >= threshold]


def nearest_rows(
    rows: MemoryEntryQuerySet, vector: Sequence[float], limit: int
) -> list[MemoryEntry]:
    """Return the nearest rows. Up to EXACT_ROWS rows are compared; of more, HNSW finds them."""
    if rows[: EXACT_ROWS + 1].count() > EXACT_ROWS:
        candidates = max(limit * HNSW_CANDIDATES_PER_ROW, HNSW_EF_SEARCH)
        with hnsw_scan():
            near = [
                *rows.order_by_distance(vector).values_list("memory_id", flat=True)[:candidates]
            ]
        # With fewer rows than requested, the index scan ended before it had read all rows.
        if len(near) == candidates:
            rows = rows.filter(memory_id__in=near)
    return [*rows.nearest(vector)[:limit]]


def recalls_with(fact: MemoryEntry) -> QuerySet[RecallEvent]:
    """Return the recall events of the replies with the fact in their prompt, as a lazy query."""
    others = PromptSource.objects.filter(source_id=fact.fact_id).values("event_id")
    of_fact = Q(user_id=fact.user_id, sources__contains=[fact.fact_id]) | Q(pk__in=others)
    return RecallEvent.objects.filter(of_fact)
