"""Numbers of a tenant's rows for people. Each takes the same time for any number of rows."""

from dataclasses import dataclass

from django.db import models
from django.db.models import Count

from memory.models import ConversationEmbedding, MemoryEntry, Message, Scope
from tenants.context import fetch_value

# Larger tables are estimated from Postgres' statistics.
MAX_EXACT_COUNT = 20_000


@dataclass(frozen=True, slots=True)
class Amount:
    """A number of rows; an estimate for large tables."""

    rows: int
    is_estimate: bool = False

    def __str__(self) -> str:
        return f"{'about ' if self.is_estimate else ''}{self.rows:,}"


def amounts() -> dict[str, Amount]:
    """Return the number of rows of each kind."""
    return {
        "messages": amount_of(Message),
        "pieces": amount_of(ConversationEmbedding),
        "facts": Amount(MemoryEntry.objects.as_of()[: MAX_EXACT_COUNT + 1].count()),
        "people": Amount(Scope.objects.aggregate(users=Count("user_id", distinct=True))["users"]),
    }


def amount_of(model: type[models.Model]) -> Amount:
    """Return the number of rows of a table of the current tenant, without reading a large one."""
    estimate = fetch_value(
        "SELECT reltuples::bigint FROM pg_class WHERE oid = %s::regclass", [model._meta.db_table]
    )
    if estimate > MAX_EXACT_COUNT:
        return Amount(estimate, is_estimate=True)
    counted = model._default_manager.order_by().values("pk")[: MAX_EXACT_COUNT + 1].count()
    return Amount(counted, is_estimate=counted > MAX_EXACT_COUNT)


def size_in_bytes() -> int:
    """Return the size of the tenant's schema on disk, including indexes."""
    size: int = fetch_value(
        "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
        " WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
    )
    return size
