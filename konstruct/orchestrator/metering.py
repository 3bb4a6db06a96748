"""The meter of language models: calls, tokens and cost by agent and day.

`runner.run_agent` records each call before it is sent, and its outcome afterwards, with one
statement each. If the process is killed in between, the outcome is unknown. DailyUsage has the sums
of days. Prices are those of the settings at the time of the call.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, Literal
from uuid import UUID

from django.conf import settings
from django.db.models import Count, QuerySet, Sum
from django.db.models.functions import TruncDate
from django.utils import timezone

from konstruct.llm.completions import Completion
from konstruct.llm.exceptions import LLMError
from konstruct.orchestrator.models import CallOutcome, DailyUsage, ModelCall
from konstruct.orchestrator.usage import ADD, SLOT
from memory.context import tokens
from tenants.context import execute

MILLION: Final = 1_000_000
REPLY: Final = "reply"
_CALL_COUNTS: Final = ("calls", "failed", "prompt_tokens", "completion_tokens", "cost")
# Records the outcome of a call once, and counts the call with it.
_RECORD: Final = """
WITH finished AS (
    UPDATE orchestrator_modelcall
    SET outcome = %(outcome)s, requests = %(requests)s, prompt_tokens = %(prompt_tokens)s,
        completion_tokens = %(completion_tokens)s, cost = %(cost)s
    WHERE id = %(id)s AND outcome = ''
    RETURNING created_at, agent_id, purpose, model
)
"""
_FINISHED: Final = f"""
SELECT (created_at AT TIME ZONE 'UTC')::date, agent_id, purpose, model, {SLOT}, 0, 0, 0, 1,
       %(failed)s, %(prompt_tokens)s, %(completion_tokens)s, %(cost)s
FROM finished
"""  # noqa: S608  (of constants)
_FINISH: Final = _RECORD + ADD.format(rows=_FINISHED)


@dataclass(slots=True)
class Call:
    """A running call of a language model."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    requests: int = 1

    @property
    def cost(self) -> Decimal:
        """The price of the tokens."""
        return cost(self.prompt_tokens, self.completion_tokens)

    def count(self, messages: Sequence[Mapping[str, Any]], completion: Completion) -> None:
        """Set the tokens of the answer: those that the server reports, or else an estimate."""
        self.requests = completion.requests
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
    """Return the number of tokens of a prompt, by cl100k_base."""
    return sum(tokens.count(str(message["content"])) for message in messages)


@contextmanager
def record_call(*, agent_id: UUID | None, purpose: str, model: str) -> Iterator[Call]:
    """Record a call of a language model in the block.

    Call it outside of a transaction, so that a rollback does not remove the record. The block sets
    the tokens of the answer with `Call.count`. If it raises, the call has failed.

    Args:
        agent_id: the agent of the call; None: no agent.
        purpose: the purpose, such as "extraction".
        model: the name of the language model; "": the default of the deployment.
    """
    row = ModelCall.objects.create(agent_id=agent_id, purpose=purpose, model=model)
    call = Call()
    outcome = CallOutcome.FAILED
    try:
        yield call
        outcome = CallOutcome.DONE
    except LLMError as error:
        call.requests = error.requests
        raise
    finally:
        finish_call(row.pk, outcome, call, cost=call.cost)


def finish_call(call_id: UUID, outcome: CallOutcome, call: Call, *, cost: Decimal) -> None:
    """Record the outcome of a call and count it. Without effect if it has an outcome already."""
    values = {
        "id": call_id,
        "outcome": outcome.value,
        "failed": int(outcome == CallOutcome.FAILED),
        "requests": call.requests,
        "prompt_tokens": call.prompt_tokens,
        "completion_tokens": call.completion_tokens,
        "cost": cost,
    }
    execute(_FINISH, values)


@dataclass(frozen=True, slots=True)
class Usage:
    """The calls of one day (UTC), agent, purpose and model."""

    day: date
    agent_id: UUID | None
    purpose: str
    model: str
    calls: int = 0
    """All calls, with unknown ones."""
    failed: int = 0
    unknown: int = 0
    """Calls without an answer: running ones, and those of processes that have ended."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: Decimal = Decimal(0)

    def __add__(self, other: "Usage") -> "Usage":
        """Return this usage with the counts of another one added."""
        counts = {name: getattr(self, name) + getattr(other, name) for name in _COUNTS}
        return replace(self, **counts)


_COUNTS: Final = ("unknown", *_CALL_COUNTS)
_GROUP: Final = ("day", "agent_id", "purpose", "model")


def usage(
    *,
    since: datetime,
    until: datetime | None = None,
    agent_id: UUID | None = None,
    limit: int | None = None,
) -> list[Usage]:
    """Return the current tenant's usage by day, agent, purpose and model, newest day first.

    It reads sums of days, and calls without an outcome by an index, so that its time does not
    depend on the number of calls.

    Args:
        since: a time on the first day (UTC).
        until: the end. The last day is the day (UTC) just before it; None: no end.
        agent_id: only this agent.
        limit: the maximum number of rows; None: all.
    """
    last = date.max if until is None else (until - timedelta(microseconds=1)).astimezone(UTC).date()
    of_agent: dict[str, Any] = {} if agent_id is None else {"agent_id": agent_id}
    days = DailyUsage.objects.filter(
        day__gte=since.astimezone(UTC).date(), day__lte=last, calls__gt=0, **of_agent
    )
    sums = days.order_by("-day", "agent_id", "purpose", "model").values(*_GROUP)
    sums = sums.annotate(**{f"sum_{name}": Sum(name) for name in _CALL_COUNTS})
    found: dict[tuple[Any, ...], Usage] = {}
    for row in sums[:limit]:
        key = tuple(row[name] for name in _GROUP)
        found[key] = Usage(*key, **{name: row[f"sum_{name}"] for name in _CALL_COUNTS})
    for group in unknown_calls(since.astimezone(UTC).date(), last).filter(**of_agent)[:limit]:
        key = tuple(group[name] for name in _GROUP)
        before = found.get(key) or Usage(*key)
        number = group["number"]
        found[key] = replace(before, calls=before.calls + number, unknown=number)
    order = sorted(found.values(), key=lambda row: (str(row.agent_id), row.purpose, row.model))
    order.sort(key=lambda row: row.day, reverse=True)
    return order[:limit]


def unknown_calls(first: date, last: date) -> QuerySet[ModelCall, dict[str, Any]]:
    """Return the calls without an outcome of some days by day, agent, purpose and model."""
    calls = ModelCall.objects.filter(
        outcome=CallOutcome.UNKNOWN,
        created_at__gte=datetime.combine(first, datetime.min.time(), UTC),
    )
    if last < date.max:
        after = last + timedelta(days=1)
        calls = calls.filter(created_at__lt=datetime.combine(after, datetime.min.time(), UTC))
    by_day = calls.annotate(day=TruncDate("created_at", tzinfo=UTC)).order_by()
    return by_day.values(*_GROUP).annotate(number=Count("id")).order_by("-day", *_GROUP[1:])


def sum_by(rows: Sequence[Usage], by: Literal["day", "agent_id"]) -> dict[Any, Usage]:
    """Return the sums of usage by day or by agent, in the order of the rows."""
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
    today = DailyUsage.objects.filter(
        day=midnight().date(), agent_id=agent_id, purpose=purpose
    ).aggregate(sent=Sum("prompt_tokens"), received=Sum("completion_tokens"))
    return (today["sent"] or 0) + (today["received"] or 0)
