"""Activity by day: each number, ended days that are counted once, and isolation."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from konstruct.orchestrator.activity import BUCKET_LIMITS, Day, activity, recount
from konstruct.orchestrator.models import DailyActivity, Escalation, ModelCall
from memory.models import Message, RecallEvent
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program, SendMessage
from tests.konstruct.metered import metered_call

TODAY = datetime.now(UTC).date()
TOMORROW = TODAY + timedelta(days=1)  # midnight may pass during the tests


@pytest.fixture
def exchange() -> Callable[..., Message]:
    """Record a message and its reply, with a recall event, some days ago."""

    def record(
        program: Program, *, days_ago: int = 0, seconds: float = 2.0, **event: Any
    ) -> Message:
        noon = datetime.combine(TODAY, datetime.min.time(), UTC) - timedelta(days=days_ago)
        row: dict[str, Any] = {"agent_id": program.agent.pk, "user_id": "maria", "thread_id": "t"}
        row["channel"] = event.pop("channel", "rest")
        message = Message.objects.create(**row, role="user", content="?", created_at=noon)
        usage = {"prompt_tokens": 100, "completion_tokens": 10}
        reply = Message.objects.create(
            **row,
            role="assistant",
            content="!",
            in_reply_to=message,
            created_at=noon + timedelta(seconds=seconds),
            usage=usage,
        )
        RecallEvent.objects.create(
            agent_id=program.agent.pk,
            user_id="maria",
            reply=reply,
            packed=b"",
            abstained=False,
            embedding_model="m",
            milliseconds=1.0,
            **event,
        )
        return reply

    return record


def test_replies_are_counted_by_their_source_and_time(
    program_a: Program, exchange: SendMessage
) -> None:
    with tenant_scope(program_a.tenant.id):
        exchange(program_a, fact_count=1, hit_count=1, seconds=1.0)
        exchange(program_a, hit_count=1, turn_count=2, seconds=4)
        exchange(program_a, turn_count=2, seconds=4)
        exchange(program_a, seconds=4, channel="slack")
        today = activity(first=TODAY, last=TOMORROW).total
        of_slack = activity(first=TODAY, last=TOMORROW, channel="slack").total
    counted = (today.from_facts, today.from_memories, today.from_turns, today.from_nothing)
    assert (today.messages, today.replies, counted) == (4, 4, (1, 1, 1, 1))
    assert (today.prompt_tokens, today.completion_tokens) == (400, 40)
    assert 3.9 < (today.percentile(0.5) or 0) < 5.7
    assert (of_slack.messages, of_slack.from_nothing) == (1, 1)


def test_ended_day_is_counted_once_and_again_on_request(
    program_a: Program, exchange: SendMessage
) -> None:
    day = TODAY - timedelta(days=3)
    with tenant_scope(program_a.tenant.id):
        exchange(program_a, days_ago=3)
        assert activity(first=day, last=day).total.messages == 1
        exchange(program_a, days_ago=3)
        found = activity(first=day, last=day)
        assert (found.total.messages, found.total.replies, found.is_complete) == (1, 1, True)
        recount(first=day, last=day)
        assert activity(first=day, last=day).total.messages == 2
        # A row for the agent, and one that marks the day as counted.
        assert DailyActivity.objects.filter(day=day).count() == 2


def test_escalations_and_tokens_of_extraction_are_counted_by_their_day(
    program_a: Program, exchange: SendMessage
) -> None:
    with tenant_scope(program_a.tenant.id):
        exchange(program_a)
        row: dict[str, Any] = {"agent_id": program_a.agent.pk, "user_id": "maria"}
        Escalation.objects.create(
            **row, thread_id="t", channel="rest", opened_by="user", reason="r"
        )
        Escalation.objects.create(
            **row,
            thread_id="u",
            channel="rest",
            opened_by="user",
            reason="r",
            to_agent_id=program_a.agent.pk,
        )
        of_agent = {"agent_id": program_a.agent.pk, "prompt_tokens": 7, "completion_tokens": 2}
        metered_call(**of_agent, cost=Decimal(1))
        metered_call(**of_agent, purpose="reply", cost=Decimal(0))
        today = activity(first=TODAY, last=TOMORROW).total
        of_rest = activity(first=TODAY, last=TOMORROW, channel="rest").total
        of_slack = activity(first=TODAY, last=TOMORROW, channel="slack").total
    assert today.escalations == 1
    assert (today.extraction_tokens, today.cost) == (9, 1)
    assert (of_rest.extraction_tokens, of_rest.escalations) == (0, 1)
    assert of_slack.escalations == 0


def test_days_have_the_stored_costs_of_calls_whoever_answered(
    program_a: Program, exchange: SendMessage, settings: Any
) -> None:
    settings.LLM_PRICE_PROMPT = settings.LLM_PRICE_COMPLETION = Decimal(1_000_000)
    with tenant_scope(program_a.tenant.id):
        message = exchange(program_a).in_reply_to
        ended = exchange(program_a, days_ago=3, channel="slack").in_reply_to
        for purpose, cost in (("reply", 3), ("reranking", 2), ("dry run", 5), ("extraction", 7)):
            call = metered_call(purpose=purpose, cost=Decimal(cost))
            if purpose in ("reply", "reranking"):
                ModelCall.objects.filter(pk=call.pk).update(message=message)
        call = metered_call(
            purpose="reply", cost=Decimal(11), created_at=datetime.now(UTC) - timedelta(days=3)
        )
        ModelCall.objects.filter(pk=call.pk).update(message=ended)
        days = activity(first=TODAY - timedelta(days=3), last=TOMORROW).days
        of_rest = activity(first=TODAY, last=TOMORROW, channel="rest").total
        of_slack = activity(first=TODAY - timedelta(days=5), last=TODAY, channel="slack").total
    assert [day.cost for day in days.values() if day.cost] == [11, 17]
    assert (of_rest.cost, of_slack.cost) == (5, 11)
    assert (of_rest.extraction_tokens, of_rest.prompt_tokens) == (0, 100)


@pytest.mark.parametrize("share", [0.5, 0.95])
def test_a_percentile_is_interpolated_within_its_class(share: float) -> None:
    times = [0] * (len(BUCKET_LIMITS) + 1)
    assert Day(reply_times=times).percentile(share) is None
    times[4] = 100
    assert Day(reply_times=times).percentile(share) == pytest.approx(
        BUCKET_LIMITS[3] + share * (BUCKET_LIMITS[4] - BUCKET_LIMITS[3])
    )
    times = [0] * len(BUCKET_LIMITS) + [1]
    assert (Day(reply_times=times).percentile(share) or 0) > BUCKET_LIMITS[-1]
