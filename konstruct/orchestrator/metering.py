"""The meter of language models: calls, tokens and money by agent and day.

A call is recorded before it is sent, and its outcome after: a process that dies leaves a call
without an outcome. Prices are those of the settings at the time of the call.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final, Literal
from uuid import UUID

from django.conf import settings
from django.db.models import Count, Q, QuerySet, Sum
from django.db.models.functions import TruncDate
from django.utils import timezone

from konstruct.llm.completions import Completion
from konstruct.orchestrator.models import CallOutcome, ModelCall
from memory.context import tokens

MILLION: Final = 1_000_000


@dataclass(slots=True)
class Call:
    """A call of a language model that is being made."""

    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def cost(self) -> Decimal:
        """The price of the tokens."""
        return cost(self.prompt_tokens, self.completion_tokens)

    def count(self, messages: Sequence[Mapping[str, Any]], completion: Completion) -> None:
        """Count the tokens of an answer: those that the server reports, or else an estimate."""
        if completion.usage is None:
            self.prompt_tokens = estimated_tokens(messages)
            self.completion_tokens = tokens.count(completion.text)
        else:
            self.prompt_tokens = completion.usage["prompt_tokens"]
            self.completion_tokens = completion.usage["completion_tokens"]


def cost(prompt_tokens: int, completion_tokens: int) -> Decimal:
    """Return the price of tokens by LLM_PRICE_PROMPT and LLM_PRICE_COMPLETION."""
    price = (
        prompt_tokens * settings.LLM_PRICE_PROMPT
        + completion_tokens * settings.LLM_PRICE_COMPLETION
    )
    return (price / MILLION).quantize(Decimal("0.000001"))


def estimated_tokens(messages: Sequence[Mapping[str, Any]]) -> int:
    """Return how many tokens a prompt has, counted as cl100k_base does."""
    return sum(tokens.count(str(message["content"])) for message in messages)


@contextmanager
def record_call(*, agent_id: UUID | None, purpose: str, model: str) -> Iterator[Call]:
    """Record a call of a language model, which the block makes.

    Call it outside of a transaction, so that the record stays whatever happens. The block counts
    the tokens of the answer with `Call.count`. An error of the block is a failed call.

    Args:
        agent_id: the agent for which the call is made, if there is one.
        purpose: of the call, such as "extraction".
        model: name of the language model; empty: the deployment's choice.
    """
    row = ModelCall.objects.create(agent_id=agent_id, purpose=purpose, model=model)
    call = Call()
    outcome = CallOutcome.FAILED
    try:
        yield call
        outcome = CallOutcome.DONE
    finally:
        ModelCall.objects.filter(pk=row.pk).update(
            outcome=outcome,
            prompt_tokens=call.prompt_tokens,
            completion_tokens=call.completion_tokens,
            cost=call.cost,
        )


@dataclass(frozen=True, slots=True)
class Usage:
    """The calls of one day (UTC), agent, purpose and model."""

    day: date
    agent_id: UUID | None
    purpose: str
    model: str
    calls: int
    failed: int
    unknown: int
    """Calls of processes that ended before the answer came."""
    prompt_tokens: int
    completion_tokens: int
    cost: Decimal

    def __add__(self, other: "Usage") -> "Usage":
        """Return this usage with the counts of another one added."""
        counts = {name: getattr(self, name) + getattr(other, name) for name in _COUNTS}
        return replace(self, **counts)


_COUNTS: Final = ("calls", "failed", "unknown", "prompt_tokens", "completion_tokens", "cost")


def usage(
    *,
    since: datetime,
    until: datetime | None = None,
    agent_id: UUID | None = None,
    limit: int | None = None,
) -> list[Usage]:
    """Return the current tenant's usage by day, agent, purpose and model, newest day first.

    Args:
        since: time of the first call.
        until: time after the last one.
        agent_id: of one agent alone.
        limit: of rows; None: all.
    """
    calls = ModelCall.objects.filter(created_at__gte=since)
    if until is not None:
        calls = calls.filter(created_at__lt=until)
    if agent_id is not None:
        calls = calls.filter(agent_id=agent_id)
    groups = (
        calls.annotate(day=TruncDate("created_at", tzinfo=UTC))
        .values("day", "agent_id", "purpose", "model")
        .annotate(
            calls=Count("id"),
            failed=Count("id", filter=Q(outcome=CallOutcome.FAILED)),
            unknown=Count("id", filter=Q(outcome=CallOutcome.UNKNOWN)),
            **_SUMS,
        )
        .order_by("-day", "agent_id", "purpose", "model")
    )
    return [Usage(**group) for group in groups[:limit]]  # type: ignore[call-arg]  # by their names


def summed(rows: Sequence[Usage], by: Literal["day", "agent_id"]) -> dict[Any, Usage]:
    """Return the counts of usage by day or by agent, in the order of the first row of each."""
    sums: dict[Any, Usage] = {}
    for row in rows:
        key = getattr(row, by)
        sums[key] = sums[key] + row if key in sums else row
    return sums


def midnight() -> datetime:
    """Return the beginning of today (UTC)."""
    return timezone.now().astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def tokens_today(agent_id: UUID, purpose: str) -> int:
    """Return the tokens that the agent has used today (UTC) for this purpose."""
    sums = _today(agent_id, purpose).aggregate(**_SUMS)
    return (sums["prompt_tokens"] or 0) + (sums["completion_tokens"] or 0)


def _today(agent_id: UUID, purpose: str) -> QuerySet[ModelCall]:
    return ModelCall.objects.filter(created_at__gte=midnight(), agent_id=agent_id, purpose=purpose)


_SUMS: Final = {
    "prompt_tokens": Sum("prompt_tokens"),
    "completion_tokens": Sum("completion_tokens"),
    "cost": Sum("cost"),
}
