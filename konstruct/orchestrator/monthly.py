"""The usage of a month as CSV, of one or of all tenants."""

import csv
import logging
import re
from collections.abc import Iterable, Iterator
from datetime import date
from typing import Any, Final

from django.db import DatabaseError

from konstruct.orchestrator import metering, usage
from tenants.context import tenant_scope
from tenants.exceptions import KonstructError
from tenants.models import Tenant
from tenants.outages import OUTAGES

logger = logging.getLogger(__name__)

# A month of the years 2000 to 2999.
MONTH: Final = r"^2[0-9]{3}-(0[1-9]|1[0-2])\Z"
_MONTH: Final = re.compile(MONTH)
PURPOSES: Final = ("reply", "extraction", "dry run", "saved questions", "asking again")
COLUMNS: Final = (
    *("tenant", "month", "messages", "replies", "memories", "storage_bytes"),
    *(f"calls_{purpose.replace(' ', '_')}" for purpose in PURPOSES),
    *("calls_other", "prompt_tokens", "completion_tokens", "cost", "unknown_calls"),
)
# Spreadsheets read cells with these beginnings as formulas.
_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")


def month_of(text: str) -> date:
    """Return the first day of a month such as 2026-11. Raises ValueError."""
    if _MONTH.match(text) is None:
        raise ValueError(text)
    return date.fromisoformat(f"{text}-01")


def row_of(tenant: Tenant, first: date) -> dict[str, Any]:
    """Return the usage of the current tenant in the month that begins on this day.

    Memories and storage are those of the last measurement: only the current month has them.
    """
    last = usage.last_of_month(first)
    by_purpose = usage.counts_by("purpose", first, last)
    unknown: dict[str, int] = {}
    for group in metering.unknown_calls(first, last):
        unknown[group["purpose"]] = unknown.get(group["purpose"], 0) + group["number"]
    total = usage.Counts()
    for counts in by_purpose.values():
        total.add(counts)
    calls = {purpose: counts.calls for purpose, counts in by_purpose.items() if purpose}
    for purpose, number in unknown.items():
        calls[purpose] = calls.get(purpose, 0) + number
    is_current = first == usage.first_of_month()
    measured = tenant.usage if is_current else {}
    return {
        "tenant": tenant.slug,
        "month": f"{first:%Y-%m}",
        "messages": total.messages,
        "replies": total.replies,
        "memories": measured.get("memories"),
        "storage_bytes": measured.get("storage_bytes"),
        **{f"calls_{purpose.replace(' ', '_')}": calls.pop(purpose, 0) for purpose in PURPOSES},
        "calls_other": sum(calls.values()),
        "prompt_tokens": total.prompt_tokens,
        "completion_tokens": total.completion_tokens,
        "cost": f"{total.cost:.6f}",
        "unknown_calls": sum(unknown.values()),
    }


def rows_of(tenants: Iterable[Tenant], first: date) -> Iterator[dict[str, Any]]:
    """Yield the rows of tenants. If a tenant's usage cannot be read, its row says "unknown"."""
    for tenant in tenants:
        try:
            with tenant_scope(tenant.pk):
                row = row_of(tenant, first)
        except (*OUTAGES, DatabaseError, KonstructError) as error:
            logger.warning("The usage of tenant %s cannot be read: %s", tenant.slug, error)
            row = {"tenant": tenant.slug, "month": f"{first:%Y-%m}", "messages": "unknown"}
        yield row


class _Echo:
    """A file for csv.writer that returns each written text."""

    def write(self, text: str) -> str:
        return text


def csv_lines(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of the CSV. Cells that spreadsheets would read as formulas are escaped."""
    writer = csv.DictWriter(_Echo(), COLUMNS, restval="")
    yield writer.writeheader()
    for row in rows:
        yield writer.writerow({name: _escape_formula(value) for name, value in row.items()})


def _escape_formula(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA_STARTS) else value
