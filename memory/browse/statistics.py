"""Numbers of a tenant's rows. Large tables are estimated, so that the time does not grow."""

from dataclasses import dataclass

from django.db import models

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


def count_rows(model: type[models.Model]) -> RowCount:
    """Return the number of rows of a table of the current tenant, without reading a large one."""
    estimate = fetch_value(
        "SELECT reltuples::bigint FROM pg_class WHERE oid = %s::regclass", [model._meta.db_table]
    )
    if estimate > MAX_EXACT_COUNT:
        return RowCount(estimate, is_estimate=True)
    rows = model._default_manager.order_by().values("pk")[: MAX_EXACT_COUNT + 1].count()
    return RowCount(rows, is_estimate=rows > MAX_EXACT_COUNT)
