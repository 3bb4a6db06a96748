"""The meter of language models: recorded calls, and their tokens and cost by agent and day.

`runner` records each call before it is sent, and its outcome afterwards. `DailyUsage` has the sums
of the tenant's days.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Final
from uuid import UUID

from django.db.models import Count, F, Q, Sum
from django.db.models.functions import TruncDate
from django.utils import timezone

from konstruct.orchestrator.models import CallOutcome, ModelCall
from memory.models import Message

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
class Usage:
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


def usage(
    *,
    since: datetime,
    until: datetime | None = None,
    agent_id: UUID | None = None,
    limit: int | None = None,
) -> list[Usage]:
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
    return [Usage(*row) for row in groups[:limit]]


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
