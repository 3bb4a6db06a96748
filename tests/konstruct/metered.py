"""Calls of language models in the meter."""

from datetime import datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from django.db.models import Sum

from konstruct.orchestrator import runner, usage
from konstruct.orchestrator.models import CallOutcome, DailyUsage, ModelCall


def metered_call(
    outcome: str = CallOutcome.DONE,
    *,
    agent_id: UUID | None = None,
    purpose: str = "extraction",
    model: str = "gpt-0",
    created_at: datetime | None = None,
    prompt_tokens: int = 100,
    completion_tokens: int = 10,
    cost: Decimal = Decimal("0.25"),
) -> ModelCall:
    """Record a call in the current tenant, with its outcome unless that is unknown."""
    when: dict[str, Any] = {} if created_at is None else {"created_at": created_at}
    row = ModelCall.objects.create(agent_id=agent_id, purpose=purpose, model=model, **when)
    if outcome != CallOutcome.UNKNOWN:
        runner.finish_call(row.pk, CallOutcome(outcome), (prompt_tokens, completion_tokens), cost)
    return row


def counts_of_month() -> SimpleNamespace:
    """Return the counts of the current tenant and month, with `tokens`."""
    days = DailyUsage.objects.filter(day__gte=usage.first_of_month())
    sums = days.aggregate(**{f"sum_{name}": Sum(name, default=0) for name in usage.COUNTS})
    counts = SimpleNamespace(**{name: sums[f"sum_{name}"] for name in usage.COUNTS})
    counts.tokens = counts.prompt_tokens + counts.completion_tokens
    return counts
