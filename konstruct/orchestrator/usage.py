"""A tenant's usage: counts by day, and checks of quotas before requests are accepted.

Counts are added to the day's row in the transaction of the counted rows. Storage and
memories are measured at intervals. Memories that were stored since the last measurement are added
to its result.

`runner` records each call of a language model before it is sent, and its outcome afterwards.
"""

import logging
import math
import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.db import DatabaseError
from django.db.models import Count, F, Q, QuerySet, Sum
from django.db.models.functions import TruncDate
from django.utils import timezone

from konstruct.orchestrator.exceptions import LimitReached
from konstruct.orchestrator.models import CallOutcome, ModelCall
from memory.models import Message
from tenants import context, exceptions, metrics, outages, serving
from tenants.limits.quotas import MONTHLY, Quota, QuotaExceeded, limits_of
from tenants.models import Tenant
from tenants.outbox import events, models as outbox

logger = logging.getLogger(__name__)

REFUSALS: Final = metrics.counter(
    "konstruct_quota_refusals_total",
    "Requests that were refused at a hard limit.",
    quota=tuple(quota.value for quota in Quota),
)
COUNTS: Final = (
    *("messages", "replies", "memories", "calls", "failed", "prompt_tokens", "completion_tokens"),
    "cost",
)
_ADDED: Final = ", ".join(f"{name} = counted.{name} + excluded.{name}" for name in COUNTS)
ADD: Final = f"""
INSERT INTO orchestrator_dailyusage AS counted
    (day, {", ".join(COUNTS)})
{{rows}}
ON CONFLICT (day) DO UPDATE SET {_ADDED}
"""
_COUNT: Final = ADD.format(
    rows="VALUES ((now() AT TIME ZONE 'UTC')::date, %(messages)s, %(replies)s, %(memories)s,"
    " 0, 0, 0, 0, 0)"
)
# Sums of the days since two days: the first of the month, and that of the last measurement.
_SUMS: Final = """
SELECT coalesce(sum(messages) FILTER (WHERE day >= %(month)s), 0)::bigint,
       coalesce(sum(prompt_tokens + completion_tokens) FILTER (WHERE day >= %(month)s), 0)::bigint,
       coalesce(sum(cost) FILTER (WHERE day >= %(month)s), 0),
       coalesce(sum(memories) FILTER (WHERE day >= %(measured)s), 0)::bigint
FROM orchestrator_dailyusage WHERE day >= least(%(month)s, %(measured)s)
"""
# If less than this many times its rows is left of a limit, a request takes a lock, so that it
# cannot exceed it. With more left, this many concurrent requests cannot exceed it without a lock.
MIN_UNLOCKED_ROOM: Final = 100
# Quotas of an accepted message: it is stored in memory, and its reply needs tokens.
MESSAGE_QUOTAS: Final = (
    *(Quota.MESSAGES, Quota.TOKENS, Quota.COST, Quota.MEMORIES, Quota.STORAGE),
)  # fmt: skip
# Columns of _SUMS.
_SUMMED_QUOTAS: Final = (Quota.MESSAGES, Quota.TOKENS, Quota.COST, Quota.MEMORIES)
MODEL_CALL_QUOTAS: Final = (Quota.TOKENS, Quota.COST)
MEMORY_QUOTAS: Final = (Quota.MEMORIES, Quota.STORAGE)


def count(*, messages: int = 0, replies: int = 0, memories: int = 0) -> None:
    """Add to the current tenant's counts of today, in the transaction of the counted rows.

    Call it last in the transaction: other transactions that count wait for its end.
    """
    values = {"messages": messages, "replies": replies, "memories": memories}
    context.execute(_COUNT, values)


@contextmanager
def admit_memories(number: int) -> Iterator[None]:
    """Check that memories may be stored, and count them after the block, which stores them.

    Raises:
        QuotaExceeded: a hard limit would be exceeded.
    """
    require_room(MEMORY_QUOTAS, memories=number)
    yield
    count(memories=number)


def require_room(quotas: Iterable[Quota], *, memories: int = 1) -> None:
    """Raise QuotaExceeded if a hard limit of the current tenant is reached.

    It takes a statement to read the limits, unless the request has loaded the tenant's row, and one
    to read the usage, if there is a hard limit. If less than MIN_UNLOCKED_ROOM times the added
    rows are left, it locks the quotas until the end of the transaction.

    Args:
        quotas: the quotas to check. API keys are checked by konstruct.api.auth.keys.
        memories: the number of memories to be stored.

    Raises:
        QuotaExceeded: a limit is reached.
    """
    tenant = tenant_row()
    limits = limits_of(tenant.quotas)
    limits_by_quota = {quota: limits[quota].hard for quota in quotas if quota in limits}
    hard = {quota: limit for quota, limit in limits_by_quota.items() if limit is not None}
    if not hard:
        return
    added = {Quota.MESSAGES: 1, Quota.MEMORIES: memories}
    margin = MIN_UNLOCKED_ROOM * max(1, memories)
    if _least_room(tenant, hard, added) < margin and context.tenant_connection().in_atomic_block:
        lock_quotas()
        _least_room(tenant, hard, added)


def require_storage() -> None:
    """Raise QuotaExceeded if the storage of the current tenant is full. For other rows than
    memories.
    """
    require_room((Quota.STORAGE,))


def _least_room(
    tenant: Tenant, hard: Mapping[Quota, Decimal], added: Mapping[Quota, int]
) -> Decimal | float:
    """Return the least number that is left of a limit. Raises QuotaExceeded."""
    used, room = usage_of(tenant, hard), [math.inf]
    for quota, limit in hard.items():
        current = used[quota]
        if current is None:
            continue
        after = current + added.get(quota, 0)
        if after > limit or (quota not in added and current >= limit):
            raise count_refusal(QuotaExceeded(quota, limit=limit, used=current))
        if quota in added:
            room.append(float(limit - after))
    return min(room)


def lock_quotas() -> None:
    """Lock the tenant's quotas until the transaction ends."""
    context.execute("SELECT public.wait_for_tenant_lock('konstruct.quotas')")


def require_fewer(rows: QuerySet[Any], maximum: int) -> None:
    """Raise LimitReached if there are already `maximum` rows. Call it in the transaction that
    creates another one: it locks the quotas.
    """
    lock_quotas()
    if rows.count() >= maximum:
        plural = rows.model._meta.verbose_name_plural
        raise LimitReached(f"There are {maximum} {plural}, the maximum. Remove one first.")


def count_refusal(error: QuotaExceeded) -> QuotaExceeded:
    """Count a refused request in the metric, and return the error."""
    REFUSALS.of(quota=error.quota.value).inc()
    return error


def tenant_row() -> Tenant:
    """Return the current tenant's row with its limits and its measured usage."""
    rows = Tenant.objects.only("quotas", "usage")
    return serving.tenant_of_request() or rows.get(pk=context.required_tenant_id())


def usage_of(tenant: Tenant, quotas: Iterable[Quota]) -> dict[Quota, Decimal | int | None]:
    """Return the current tenant's usage of these quotas; None if it is not measured yet.

    Args:
        tenant: its row.
        quotas: the quotas; API keys as of the last measurement.
    """
    measured: Mapping[str, Any] = tenant.usage
    used: dict[Quota, Decimal | int | None] = {
        Quota.STORAGE: measured.get("storage_bytes"),
        Quota.API_KEYS: measured.get("api_keys"),
        Quota.REQUESTS: None,
    }
    if not used.keys() >= (requested := set(quotas)):
        is_measured = "memories" in measured
        since = date.fromisoformat(measured["counted_since"]) if is_measured else date.min
        sums = context.fetch_row(_SUMS, {"month": first_of_month(), "measured": since})
        used |= dict(zip(_SUMMED_QUOTAS, sums, strict=True))
        if is_measured:
            # The measured number, plus the rows since then.
            used[Quota.MEMORIES] = sums[-1] + measured["memories"] - measured["counted"]
    return {quota: used[quota] for quota in requested}


def first_of_month(moment: datetime | None = None) -> date:
    """Return the first day of the month of a moment (UTC), by default of now."""
    return (moment or timezone.now()).astimezone(UTC).date().replace(day=1)


# --- Measuring ------------------------------------------------------------------------------------

# A periodic task measures tenants, those with the oldest measurement first, for at most
# MAX_MEASURING_SECONDS. A tenant that cannot be measured is left to the next run.
MEASURING_INTERVAL: Final = timedelta(seconds=300)
MAX_MEASURING_SECONDS: Final = 30.0
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
    """Measure the tenants that were not measured within MEASURING_INTERVAL; return their number."""
    since = timezone.now() - MEASURING_INTERVAL
    with context.public_scope():
        tenants = list(Tenant.objects.serving().only("id", "slug", "server", "quotas", "usage"))
    due = [tenant for tenant in tenants if _measured_at(tenant) <= since]
    random.shuffle(due)  # the order of those that were never measured
    due.sort(key=_measured_at)
    deadline, measured = time.monotonic() + MAX_MEASURING_SECONDS, 0
    for tenant in due:
        if time.monotonic() > deadline:
            break
        try:
            measure(tenant)
            measured += 1
        except (*outages.OUTAGES, DatabaseError, exceptions.KonstructError) as error:
            logger.warning("Tenant %s is not measured: %s", tenant.slug, error)
    return measured


def measure(tenant: Tenant) -> dict[str, Any]:
    """Measure a tenant, and store the usage with the reached limits, and return it."""
    now = timezone.now()
    today = now.astimezone(UTC).date()
    with context.tenant_scope(tenant.pk):
        events.remove_old_events()
        values = {"exactly": MAX_EXACT_COUNT, "today": today}
        storage, memories, counted, keys = context.fetch_row(_MEASURE, values)
        tenant.usage = {
            **{name: tenant.usage[name] for name in ("reached",) if name in tenant.usage},
            "measured_at": now.isoformat(),
            "storage_bytes": storage,
            "memories": memories,
            "counted": counted,
            "counted_since": today.isoformat(),
            "api_keys": keys,
        }
        used = usage_of(tenant, Quota)
        before = tenant.usage.get("reached", {})
        reached = {}
        for quota, limit in limits_of(tenant.quotas).items():
            if level := limit.level(used.get(quota)):
                previous = before.get(quota.value, {})
                since = previous["since"] if previous.get("level") == level else now.isoformat()
                reached[quota.value] = {"level": level, "since": since}
        # Before the usage is stored: after a kill they are recorded again, not lost.
        for name in (name for name in reached if reached[name] != before.get(name)):
            events.record_event(outbox.EventType.QUOTA_REACHED, tenant.pk, detail=name)
        tenant.usage |= {
            "reached": reached,
            "month": {quota.value: f"{Decimal(used[quota] or 0):f}" for quota in MONTHLY},
        }
    with context.public_scope():
        Tenant.objects.filter(pk=tenant.pk).update(usage=tenant.usage)
    return tenant.usage


def _measured_at(tenant: Tenant) -> datetime:
    at = tenant.usage.get("measured_at")
    return datetime.fromisoformat(at) if at else datetime.min.replace(tzinfo=UTC)


# --- Calls of language models ---------------------------------------------------------------------

# The purpose of calls of rerankers.
RERANKING: Final = "reranking"


def last_calls(messages: Iterable[Message]) -> dict[UUID, ModelCall]:
    """Return the last call for each message of a user, and the call that wrote each reply.

    Args:
        messages: messages of the current tenant.

    Returns:
        The calls by the ids of the messages; a message without a known call is left out.
    """
    asked = {message.pk: message.in_reply_to_id or message.pk for message in messages}
    calls = ModelCall.objects.filter(message_id__in=asked.values()).order_by("created_at")
    calls = calls.exclude(purpose=RERANKING)
    last = {call.message_id: call for call in calls}
    last_done = {call.message_id: call for call in calls if call.outcome == CallOutcome.DONE}
    found = {
        pk: (last if asked_id == pk else last_done).get(asked_id) for pk, asked_id in asked.items()
    }
    return {pk: call for pk, call in found.items() if call is not None}


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """The calls of one day (UTC), agent, purpose and model."""

    day: date
    agent_id: UUID | None
    purpose: str
    language_model: str
    """Name of the tenant's language model; "": the deployment's."""
    model: str
    calls: int = 0
    """All calls, with unknown ones."""
    failed: int = 0
    unknown: int = 0
    """Calls without an answer: running ones, and those of processes that have ended."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: Decimal = Decimal(0)


_GROUP: Final = ("day", "agent_id", "purpose", "language_model", "model")


def model_usage(
    *,
    since: datetime,
    until: datetime | None = None,
    agent_id: UUID | None = None,
    limit: int | None = None,
) -> list[ModelUsage]:
    """Return the current tenant's usage by day, agent, purpose and model, newest day first.

    Args:
        since: only calls from this time on.
        until: only calls before this time; None: no end.
        agent_id: only this agent.
        limit: the maximum number of rows; None: all.
    """
    chosen = {"created_at__gte": since, "created_at__lt": until, "agent_id": agent_id}
    filters = {name: value for name, value in chosen.items() if value is not None}
    groups = (
        ModelCall.objects.filter(**filters)
        .annotate(day=TruncDate("created_at", tzinfo=UTC))
        .order_by("-day", *_GROUP[1:])
        .values_list(*_GROUP)
        .annotate(
            sum_calls=Count("id"),
            sum_failed=Count("id", filter=Q(outcome=CallOutcome.FAILED)),
            sum_unknown=Count("id", filter=Q(outcome=CallOutcome.UNKNOWN)),
            sum_prompt_tokens=Sum("prompt_tokens"),
            sum_completion_tokens=Sum("completion_tokens"),
            sum_cost=Sum("cost"),
        )
    )
    return [ModelUsage(*row) for row in groups[:limit]]


def midnight() -> datetime:
    """Return the beginning of today (UTC)."""
    return timezone.now().astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def model_tokens_today(names: Sequence[str]) -> dict[str, int]:
    """Return the tokens of today (UTC) of the tenant's language models by their names."""
    calls = ModelCall.objects.filter(created_at__gte=midnight(), language_model__in=names)
    sums = calls.values("language_model").annotate(
        tokens=Sum(F("prompt_tokens") + F("completion_tokens"))
    )
    return dict(sums.order_by().values_list("language_model", "tokens"))


def tokens_today(agent_id: UUID, purpose: str) -> int:
    """Return the tokens that the agent has used today (UTC) for this purpose."""
    calls = ModelCall.objects.filter(created_at__gte=midnight(), agent_id=agent_id, purpose=purpose)
    used = calls.aggregate(tokens=Sum(F("prompt_tokens") + F("completion_tokens")))
    return used["tokens"] or 0
