"""Measures the usage of tenants at intervals, records reached limits, and notifies the team.

A periodic task measures tenants, those with the oldest measurement first, for at most MAX_SECONDS.
A tenant that cannot be measured is left to the next run.
"""

import logging
import random
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from django.db import DatabaseError
from django.utils import timezone

from konstruct.orchestrator import usage
from konstruct.orchestrator.notifications import notify
from tenants.context import fetch_row, public_scope, tenant_scope
from tenants.exceptions import KonstructError
from tenants.limits.quotas import MONTHLY, Quota, limits_of
from tenants.models import Tenant
from tenants.outages import OUTAGES

logger = logging.getLogger(__name__)

# After this time no further tenant is measured. The next run continues.
INTERVAL: Final = timedelta(seconds=300)
MAX_SECONDS: Final = 30.0
# Larger tables are not counted: Postgres' statistics have an estimate. After a crash has reset
# them, the estimate of the last vacuum is used.
MAX_EXACT_COUNT: Final = 20_000
_ROWS: Final = """
(SELECT CASE WHEN estimate > %(exactly)s THEN estimate ELSE (
     SELECT count(*) FROM (SELECT FROM {table} LIMIT %(exactly)s + 1) AS counted) END
 FROM (SELECT coalesce(nullif(pg_stat_get_live_tuples(oid), 0), reltuples::bigint) AS estimate
       FROM pg_class WHERE oid = '{table}'::regclass) AS known)
"""
_MEASURE: Final = f"""
SELECT (SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
        WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace),
       {_ROWS.format(table="memory_conversationembedding")}
       + {_ROWS.format(table="memory_memoryentry")},
       (SELECT coalesce(sum(memories), 0)::bigint FROM orchestrator_dailyusage
        WHERE day >= %(today)s),
       (SELECT count(*) FROM api_apikey WHERE revoked_at IS NULL
        AND (expires_at IS NULL OR expires_at > now()))
"""  # noqa: S608  (of constants)


def measure_due() -> int:
    """Measure the tenants that were not measured within INTERVAL; return their number."""
    since = timezone.now() - INTERVAL
    with public_scope():
        tenants = list(Tenant.objects.serving().only("id", "slug", "server", "quotas", "usage"))
    due = [tenant for tenant in tenants if _measured_at(tenant) <= since]
    random.shuffle(due)  # the order of those that were never measured
    due.sort(key=_measured_at)
    deadline, measured = time.monotonic() + MAX_SECONDS, 0
    for tenant in due:
        if time.monotonic() > deadline:
            break
        try:
            measure(tenant)
            measured += 1
        except (*OUTAGES, DatabaseError, KonstructError) as error:
            logger.warning("Tenant %s is not measured: %s", tenant.slug, error)
    return measured


def measure(tenant: Tenant) -> dict[str, Any]:
    """Measure a tenant, and store the usage with the reached limits, and return it."""
    now = timezone.now()
    today = now.astimezone(UTC).date()
    with tenant_scope(tenant.pk):
        values = {"exactly": MAX_EXACT_COUNT, "today": today}
        storage, memories, counted, keys = fetch_row(_MEASURE, values)
        tenant.usage = {
            **{name: tenant.usage[name] for name in ("reached",) if name in tenant.usage},
            "measured_at": now.isoformat(),
            "storage_bytes": storage,
            "memories": memories,
            "counted": counted,
            "counted_since": today.isoformat(),
            "api_keys": keys,
        }
        used = usage.usage_of(tenant, Quota)
        levels = usage.reached_limits(limits_of(tenant.quotas), used)
        reached = _with_times(tenant.usage.get("reached", {}), levels, now)
        is_new = reached != tenant.usage.get("reached", {})
        tenant.usage |= {
            "reached": reached,
            "month": {quota.value: f"{Decimal(used[quota] or 0):f}" for quota in MONTHLY},
        }
    with public_scope():
        Tenant.objects.filter(pk=tenant.pk).update(usage=tenant.usage)
    if is_new and reached:
        with tenant_scope(tenant.pk):
            notify(tenant.pk)
    return tenant.usage


def _with_times(
    before: dict[str, Any], levels: dict[Quota, str], now: datetime
) -> dict[str, dict[str, str]]:
    """Return the reached limits, each with the time at which it was reached."""
    reached = {}
    for quota, level in levels.items():
        previous = before.get(quota.value, {})
        since = previous["since"] if previous.get("level") == level else now.isoformat()
        reached[quota.value] = {"level": level, "since": since}
    return reached


def _measured_at(tenant: Tenant) -> datetime:
    at = tenant.usage.get("measured_at")
    return datetime.fromisoformat(at) if at else datetime.min.replace(tzinfo=UTC)
