"""Recall of a scope that is too large to weigh completely: candidates of each strategy."""

from collections import OrderedDict
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from memory.embedding.embedder import embed
from memory.recall import recall, service as recall_module
from memory.recall.policy import RecallPolicy
from memory.recall.queries import LIMITS, Strategy
from tenants.models import Tenant
from tests.memory.messages import AGENT, START, add_messages
from tests.memory.recalled import SMALL_TALK, UNGATED, contents, statements


@pytest.fixture
def large_from(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], None]:
    """Set the numbers of messages above which scopes are scanned and walked."""

    def set_limits(whole: int, scanned: int) -> None:
        monkeypatch.setitem(LIMITS, "whole_scope", whole)
        monkeypatch.setitem(LIMITS, "scanned_at_least", scanned)
        monkeypatch.setitem(LIMITS, "scanned_to_root", 0)
        recall_module._large_scopes.clear()

    monkeypatch.setattr(recall_module, "_large_scopes", OrderedDict())
    return set_limits


@pytest.fixture(
    params=[Strategy.QUANTIZED, Strategy.HNSW], ids=lambda strategy: strategy.name.lower()
)
def by_candidates(
    request: pytest.FixtureRequest, large_from: Callable[[int, int], None]
) -> Callable[[int, int], None]:
    """Make every scope large, or very large."""
    large_from(0, 5000 if request.param is Strategy.QUANTIZED else 0)
    return large_from


def test_a_large_scope_is_weighed_by_candidates(
    tenant_a: Tenant, by_candidates: Callable[[int, int], None]
) -> None:
    add_messages(tenant_a, *SMALL_TALK, "My sister Zoe moved to Lisbon.")
    add_messages(tenant_a, "My sister Zoe moved to Lisbon.", user="bob")
    query = "Where did my sister move?"
    found = recall(tenant_a.id, AGENT, "ann", query, policy=UNGATED)
    assert found.hits[0].content == "My sister Zoe moved to Lisbon."
    assert len(contents(found)) == len(set(contents(found))) == 10
    by_candidates(5000, 5000)
    result = recall(tenant_a.id, AGENT, "ann", query, policy=UNGATED)
    assert contents(found) == contents(result)
    cosines = [hit.channels["cosine"] for hit in found.hits]
    assert cosines == pytest.approx([hit.channels["cosine"] for hit in result.hits])


def test_turn_before_a_candidate_counts_in_a_large_scope(
    tenant_a: Tenant, large_from: Callable[[int, int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("candidates", "candidate_pieces"):
        monkeypatch.setitem(LIMITS, limit, 1)
    texts = [*SMALL_TALK[:3], "About my cello.", *SMALL_TALK[3:5], "Lisbon! Sold in Lisbon."]
    add_messages(tenant_a, *texts, *SMALL_TALK[5:])
    (vector,) = embed([texts[-1]])
    found = []
    for whole_scope in (5000, 0):
        large_from(whole_scope, 5000)
        result = recall(
            tenant_a.id, AGENT, "ann", "cello Lisbon", policy=UNGATED, query_embedding=vector
        )
        found.append(next(hit for hit in result.hits if hit.content == texts[-1]))
    of_all, of_candidates = (hit.channels for hit in found)
    assert of_candidates["lexical"] == pytest.approx(of_all["lexical"])
    # It has one of both words: "cello" was in a message three turns before.
    assert of_candidates["coverage"] == of_all["coverage"] == 1
    # Turns that match only by words of their context are not found.
    assert set(contents(result)) == {texts[-1], SMALL_TALK[4], SMALL_TALK[5]}


def test_a_word_of_unknown_language_is_found_in_other_forms(
    tenant_a: Tenant, large_from: Callable[[int, int], None]
) -> None:
    said = "Wir haben eine Wohnung mit Balkon gesehen."
    add_messages(tenant_a, *SMALL_TALK, said)
    for whole_scope in (5000, 0):
        large_from(whole_scope, 5000)
        result = recall(tenant_a.id, AGENT, "ann", "Wohnungen", policy=UNGATED)
        found = next(hit for hit in result.hits if hit.content == said)
        assert found.channels["coverage"] == 1


def test_the_nearest_of_a_large_scope_are_found_among_many_nearer_ones_of_others(
    tenant_a: Tenant, large_from: Callable[[int, int], None]
) -> None:
    large_from(0, 5000)
    answer, *_ = add_messages(tenant_a, "Zoe relocated to Portugal.", *SMALL_TALK)
    add_messages(
        tenant_a, *[f"My sister moved to Lisbon, street {n}." for n in range(60)], user="bob"
    )
    query = "Where did my sister move?"
    found = recall(tenant_a.id, AGENT, "ann", query, policy=RecallPolicy(gate=False, mode="vector"))
    assert found.hits[0].message_id == answer.id
    assert set(contents(found)) <= {answer.content, *SMALL_TALK}


def test_candidates_with_a_rare_word_are_ranked_by_their_common_words(
    tenant_a: Tenant, by_candidates: Callable[[int, int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit, most in {"candidates": 1, "candidate_pieces": 1, "most_counted": 4}.items():
        monkeypatch.setitem(LIMITS, limit, most)
    expected = "The old harpsichord in the hall of the museum will be tuned again on Tuesday."
    add_messages(
        tenant_a, "A harpsichord.", *SMALL_TALK[:3], expected, *SMALL_TALK[3:6], "My harpsichord!"
    )
    add_messages(tenant_a, *[f"On Tuesday I go to street {n}." for n in range(5)])
    (elsewhere,) = embed([SMALL_TALK[9]])
    query = "harpsichord Tuesday"
    found = recall(tenant_a.id, AGENT, "ann", query, policy=UNGATED, query_embedding=elsewhere)
    assert found.hits[0].content == expected


@pytest.mark.usefixtures("by_candidates")
def test_a_large_scope_as_of_a_moment(tenant_a: Tenant) -> None:
    first, *_ = add_messages(tenant_a, "My sister lives in Rome.", "My sister moved to Lisbon.")
    result = recall(tenant_a.id, AGENT, "ann", "my sister", policy=UNGATED, at=START)
    assert [hit.message_id for hit in result.hits] == [first.id]


def test_large_scope_is_complete_as_of_an_earlier_time(
    tenant_a: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LIMITS, "whole_scope", 2)
    add_messages(tenant_a, "My sister lives in Rome.", "My brother lives in Bonn.")
    (vector,) = embed(["my sister"])
    ask = lambda **at: recall(  # noqa: E731
        tenant_a.id, AGENT, "ann", "my sister", policy=UNGATED, query_embedding=vector, **at
    )
    small = ask()
    add_messages(tenant_a, *["My sister moved again."] * 5, start=START + timedelta(hours=1))
    with CaptureQueriesContext(connections[tenant_a.server]) as queries:
        as_of = ask(at=START + timedelta(minutes=30))
    assert len(statements(queries)) == 5
    assert [(hit.content, hit.score) for hit in as_of.hits] == [
        (hit.content, pytest.approx(hit.score)) for hit in small.hits
    ]
    assert min(hit.channels["cosine"] for hit in as_of.hits) > 0
    assert "My sister moved again." in contents(ask())
