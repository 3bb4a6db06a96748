"""Numbers of a tenant's rows. Large tables are estimated, so that the time does not grow."""

from dataclasses import dataclass

from django.db import models
from django.db.models import Count

from memory.models import ConversationEmbedding, MemoryEntry, Message, Scope
from tenants.context import fetch_value

# Larger tables are estimated from Postgres' statistics.
MAX_EXACT_COUNT = 20_000


@dataclass(frozen=True, slots=True)
class RowCount:
    """A number of rows; an estimate for large tables."""

    rows: int
    is_estimate: bool = False

    def __str__(self) -> str:
        return f"{'about ' if self.is_estimate else ''}{self.rows:,}"


def row_counts() -> dict[str, RowCount]:
    """Return the number of rows of each kind."""
    return {
        "messages": count_rows(Message),
        "pieces": count_rows(ConversationEmbedding),
        "facts": RowCount(MemoryEntry.objects.as_of()[: MAX_EXACT_COUNT + 1].count()),
        "people": RowCount(Scope.objects.aggregate(users=Count("user_id", distinct=True))["users"]),
    }


def count_rows(model: type[models.Model]) -> RowCount:
    """Return the number of rows of a table of the current tenant, without reading a large one."""
    estimate = fetch_value(
        "SELECT reltuples::bigint FROM pg_class WHERE oid = %s::regclass", [model._meta.db_table]
    )
    if estimate > MAX_EXACT_COUNT:
        return RowCount(estimate, is_estimate=True)
    rows = model._default_manager.order_by().values("pk")[: MAX_EXACT_COUNT + 1].count()
    return RowCount(rows, is_estimate=rows > MAX_EXACT_COUNT)


def size_in_bytes() -> int:
    """Return the size of the tenant's schema on disk, including indexes."""
    return fetch_value(
        "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
        " WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
    )
