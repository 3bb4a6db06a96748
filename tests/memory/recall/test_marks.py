"""Marks on recalled memories, and the calibration of a tenant from them."""

from typing import Any
from uuid import uuid4

import pytest

from memory.conversations.transcript import record_message
from memory.exceptions import NotRecalled
from memory.indexing import embedding_jobs
from memory.models import AuthorKind, Message, RecallMark
from memory.models.facts import Author
from memory.recall import marks as marks_module
from memory.recall import recall
from memory.recall.marks import (
    MIN_MARKS,
    TenantCalibration,
    fit_shift,
    mark_recalled,
    product_probability,
    tenant_calibration,
)
from memory.recall.policy import CALIBRATIONS, DEFAULT_POLICY, PRESETS, RecallPolicy
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests.memory.messages import AGENT, add_messages
from tests.memory.recalled import SMALL_TALK, UNGATED

EVA = Author(AuthorKind.PERSON, "7", "eva")


@pytest.fixture
def reply(tenant_a: Tenant) -> Message:
    """Record a reply with the trace of its recall."""
    add_messages(tenant_a, *SMALL_TALK)
    trace = recall(tenant_a.id, AGENT, "ann", "soup for lunch", policy=UNGATED).trace()
    return replied(tenant_a, trace)


def replied(tenant: Tenant, trace: dict[str, Any]) -> Message:
    with tenant_scope(tenant.id):
        message, _ = record_message(
            tenant_id=tenant.id,
            agent_id=AGENT,
            user_id="ann",
            thread_id="later",
            channel="rest",
            role="assistant",
            content="Soup, then.",
            recall_trace={**trace, "facts": [], "prompt": None},
        )
    return message


def recalled(tenant: Tenant, reply: Message) -> list[dict[str, Any]]:
    with tenant_scope(tenant.id):
        trace = marks_module.trace_of(reply.pk)
    assert trace is not None
    return list(trace["hits"])


def test_a_memory_is_marked_before_and_after_the_event_is_written(
    tenant_a: Tenant, reply: Message
) -> None:
    first, second = recalled(tenant_a, reply)[:2]
    with tenant_scope(tenant_a.id):
        mark_recalled(reply, first["message_id"], relevance="relevant", author=EVA)
    embedding_jobs.drain(tenant_a.id)
    with tenant_scope(tenant_a.id):
        mark_recalled(reply, second["message_id"], relevance="unsure", author=EVA)
        again = mark_recalled(reply, first["message_id"], relevance="not_relevant", author=EVA)
        assert sorted(RecallMark.objects.values_list("relevance", flat=True)) == [
            "not_relevant", "unsure",
        ]  # fmt: skip
        assert again.probability == pytest.approx(first["probability"])
        # An unsure mark has no effect.
        assert tenant_calibration() == TenantCalibration(marks=1)


@pytest.mark.parametrize("known", [True, False])
def test_unrecalled_message_cannot_be_marked(tenant_a: Tenant, reply: Message, known: bool) -> None:
    other = reply.pk if known else uuid4()
    with tenant_scope(tenant_a.id), pytest.raises(NotRecalled, match=str(other)):
        mark_recalled(reply, other, relevance="relevant", author=EVA)


def test_another_tenant_has_its_own_marks(
    tenant_a: Tenant, tenant_b: Tenant, reply: Message
) -> None:
    with tenant_scope(tenant_a.id):
        for hit in recalled(tenant_a, reply):
            mark_recalled(reply, hit["message_id"], relevance="relevant", author=EVA)
        assert tenant_calibration().marks == len(recalled(tenant_a, reply)) > 0
    with tenant_scope(tenant_b.id):
        assert tenant_calibration() == TenantCalibration(marks=0)


def test_marks_change_displayed_scores_and_not_recall(
    tenant_a: Tenant, reply: Message, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = recall(tenant_a.id, AGENT, "ann", "soup for lunch")
    hits = recalled(tenant_a, reply)
    monkeypatch.setattr(marks_module, "MIN_MARKS", len(hits))
    with tenant_scope(tenant_a.id):
        for hit in hits[:-1]:
            mark_recalled(reply, hit["message_id"], relevance="relevant", author=EVA)
        assert not tenant_calibration().is_own
        assert tenant_calibration().adjust(0.25) == 0.25
        mark_recalled(reply, hits[-1]["message_id"], relevance="relevant", author=EVA)
        own = tenant_calibration()
    assert (own.is_own, own.marks) == (True, len(hits))
    assert own.adjust(0.25) > 0.25
    after = recall(tenant_a.id, AGENT, "ann", "soup for lunch")
    assert [(h.message_id, h.probability) for h in after.hits] == [
        (h.message_id, h.probability) for h in before.hits
    ]


def test_the_shift_is_found_and_shrunk() -> None:
    shares = [(0.1, 25, 75), (0.5, 75, 25), (0.9, 96, 4)]  # a shift of 1.1
    assert fit_shift(shares, 0) == pytest.approx(1.1, abs=0.02)
    assert 0.9 < fit_shift(shares) < 1.1
    few = [(p, a / 25, b / 25) for p, a, b in shares]
    assert 0.3 < fit_shift(few) < 0.8  # type: ignore[arg-type]  # parts of marks
    assert fit_shift([]) == 0
    # With any number of equal marks, the order of the probabilities stays, and none becomes 0 or 1.
    assert 0 < TenantCalibration(MIN_MARKS, fit_shift([(0.999, 0, 5000)])).adjust(0.5) < 1


def test_a_trace_from_before_calibration_is_calibrated_when_it_is_shown() -> None:
    product = CALIBRATIONS["hybrid"]
    assert product_probability({"probability": 0.2}) == product.probability(0.2)
    cited = product_probability({"probability": 0.2, "channels": {"fact": 0.7}})
    assert cited == product.probability(0.2, is_cited=True)
    assert product_probability({"probability": 0.2, "gate_value": 0.1}) == 0.2
    assert product_probability({"content": "without"}) is None


@pytest.mark.parametrize("mode", ["hybrid", "vector"])
def test_probabilities_keep_the_order_of_the_gate(tenant_a: Tenant, mode: Any) -> None:
    add_messages(tenant_a, *SMALL_TALK)
    policy = RecallPolicy(mode=mode, gate=False)
    hits = recall(tenant_a.id, AGENT, "ann", "soup for lunch", policy=policy).hits
    by_gate = sorted(hits, key=lambda hit: hit.gate_value)
    assert by_gate == sorted(hits, key=lambda hit: hit.probability)
    assert all(
        hit.probability == CALIBRATIONS[policy.mode].probability(hit.gate_value) for hit in hits
    )


def test_presets_are_points_of_the_thresholds() -> None:
    assert DEFAULT_POLICY.with_preset("balanced") == DEFAULT_POLICY
    precise, thorough = (DEFAULT_POLICY.with_preset(name) for name in ("precise", "thorough"))
    assert (precise.open_at, precise.keep_at) == PRESETS["precise"] == (0.1, 0.02)
    assert (thorough.open_at, thorough.keep_at) == PRESETS["thorough"] == (0.03, 0.005)
    assert (DEFAULT_POLICY.open_at, DEFAULT_POLICY.keep_at) == (0.06, 0.005)
