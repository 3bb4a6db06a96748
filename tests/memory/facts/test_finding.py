"""Facts are found by meaning and metadata: those of the user and of all users."""

from typing import Any

import pytest

from memory import conf
from memory.context import MemoryEntry
from memory.embedding.embedder import embed, model_version
from memory.models import MemoryAttribute
from memory.models.attributes import matching_attributes, parse_filters
from tenants.context import connection, tenant_scope
from tenants.models import Tenant
from tests.database import plan_of
from tests.memory.facts.keeping import AGENT, MEMORY, OTHER_AGENT, contents, store


def test_facts_are_ordered_by_distance(tenant_a: Tenant) -> None:
    store(tenant_a, "The office opens at nine.")
    store(tenant_a, "Ann drinks green tea every morning.")
    store(tenant_a, "Coffee gives Bob a headache.")

    found = MEMORY.search(tenant_a.id, "What does Ann drink?")

    assert found[0].content == "Ann drinks green tea every morning."
    assert len(found) == 3
    scores = [entry.score for entry in found]
    assert scores == sorted(scores, reverse=True)
    assert contents(MEMORY.search(tenant_a.id, "What does Ann drink?", limit=1)) == [
        "Ann drinks green tea every morning."
    ]
    by_vector = MEMORY.search(tenant_a.id, embed(["What does Ann drink?"])[0])
    assert contents(by_vector) == contents(found)
    assert (
        contents(MEMORY.search(tenant_a.id, "What does Ann drink?", threshold=scores[1]))
        == (contents(found)[:2])
    )


def test_agent_finds_its_own_and_shared_facts(tenant_a: Tenant) -> None:
    store(tenant_a, "Tea is in the kitchen.", agent_id=AGENT)
    store(tenant_a, "Tea is in the cellar.", agent_id=OTHER_AGENT)
    store(tenant_a, "Tea is in the garden.", agent_id=None)

    assert {*contents(MEMORY.search(tenant_a.id, "tea", agent_id=AGENT))} == {
        "Tea is in the kitchen.",
        "Tea is in the garden.",
    }
    assert len(MEMORY.search(tenant_a.id, "tea")) == 3
    assert len(MEMORY.list_by_tenant(tenant_a.id, agent_id=OTHER_AGENT)) == 2


def test_facts_of_a_user_are_hidden_from_others(tenant_a: Tenant) -> None:
    store(tenant_a, "Ann's flat has a red door.", user_id="ann")
    store(tenant_a, "Bob's flat has a blue door.", user_id="bob")
    store(tenant_a, "All flats have doors.")

    assert {*contents(MEMORY.search(tenant_a.id, "door", user_id="ann"))} == {
        "Ann's flat has a red door.",
        "All flats have doors.",
    }
    assert contents(MEMORY.search(tenant_a.id, "door", shared_only=True)) == [
        "All flats have doors."
    ]
    assert contents(MEMORY.list_by_tenant(tenant_a.id, user_id="bob")) == [
        "All flats have doors.",
        "Bob's flat has a blue door.",
    ]


def test_the_newest_facts_are_listed_first(tenant_a: Tenant) -> None:
    for number in range(5):
        store(tenant_a, f"Fact {number}")

    assert contents(MEMORY.list_by_tenant(tenant_a.id)) == [f"Fact {n}" for n in (4, 3, 2, 1, 0)]
    assert contents(MEMORY.list_by_tenant(tenant_a.id, limit=2)) == ["Fact 4", "Fact 3"]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"topic": "food"}, {"rye", "tea"}),
        ({"topic": {"eq": "food"}}, {"rye", "tea"}),
        ({"topic": {"ne": "food"}}, {"plain", "nine"}),
        ({"topic": {"contains": "oo"}}, {"rye", "tea"}),
        ({"topic": {"icontains": "HOUR"}}, {"nine"}),
        ({}, {"plain", "rye", "tea", "nine"}),
        ({"priority": {"in": [1, "2"]}}, {"tea"}),
        ({"topic": {"in": ["food", "hours"]}}, {"rye", "tea", "nine"}),
        ({"topic": {"in": []}}, set()),
        ({"topic": {"exists": False}}, {"plain"}),
        ({"source": {"exists": True}}, {"tea"}),
        ({"source.page": {"exists": True}}, {"tea"}),
        ({"source.page": 4}, {"tea"}),
        ({"tags": "hot"}, {"tea"}),
        ({"tags": {"in": ["cold", "fresh"]}}, {"rye"}),
        ({"priority": {"gte": 2}}, {"rye", "nine"}),
        ({"priority": {"gt": 2, "lte": 10}}, {"nine"}),
        ({"priority": 2.0}, {"rye"}),
        ({"priority": "2"}, set()),
        ({"day": {"gte": "2026-02", "lt": "2026-04"}}, {"tea"}),
        ({"sure": True}, {"tea"}),
        ({"sure": "true"}, {"rye"}),
        ({"until": None}, {"nine"}),
        ({"topic": "food", "priority": {"lt": 2}}, {"tea"}),
    ],
)
def test_metadata_filters(tenant_a: Tenant, filters: dict[str, Any], expected: set[str]) -> None:
    store(tenant_a, "plain")
    store(
        tenant_a,
        "tea",
        metadata={
            "topic": "food",
            "priority": 1,
            "tags": ["hot", "green"],
            "sure": True,
            "source": {"page": 4},
            "day": "2026-03-01",
        },
    )
    store(
        tenant_a,
        "rye",
        metadata={"topic": "food", "priority": 2, "tags": ["fresh"], "sure": "true"},
    )
    store(tenant_a, "nine", metadata={"topic": "hours", "priority": 10, "until": None})

    assert {*contents(MEMORY.search(tenant_a.id, "anything", filters=filters))} == expected
    assert {*contents(MEMORY.list_by_tenant(tenant_a.id, filters=filters))} == expected


@pytest.mark.parametrize(
    ("filters", "index", "condition"),
    [
        (
            {"topic": "a"},
            "fact_attribute_text",
            "(key = 'topic'::text) AND (kind = 'text'::text) AND (text = 'a'::text)",
        ),
        ({"topic": {"in": ["a", "b"]}}, "fact_attribute_text", "(text = ANY ('{a,b}'::text[]))"),
        ({"topic": {"gte": "a"}}, "fact_attribute_text", "(text >= 'a'::text)"),
        ({"topic": {"exists": True}}, "fact_attribute_text", "Index Cond: (key = 'topic'::text)"),
        (
            {"n": 7},
            "fact_attribute_number",
            "(key = 'n'::text) AND (number = '7'::double precision)",
        ),
        ({"n": {"gt": 7}}, "fact_attribute_number", "(number > '7'::double precision)"),
    ],
)
def test_a_b_tree_answers_filters_under_the_policy(
    tenant_a: Tenant, filters: dict[str, Any], index: str, condition: str
) -> None:
    # An operator that is not leakproof would be applied after the policy, as a "Filter" on all
    # rows. That is the case for @> and ? on the JSON itself.
    with tenant_scope(tenant_a.id):
        connection.set_local({"enable_seqscan": "off"})
        (parsed,) = parse_filters(filters)
        plan = plan_of(matching_attributes(parsed, MemoryAttribute).values("memory_id"))

    assert index in plan
    assert condition in next(line for line in plan.splitlines() if "Index Cond" in line)


@pytest.mark.slow
def test_hnsw_finds_the_nearest_of_many_facts(
    tenant_a: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "EXACT_ROWS", 50)
    words = ["tea", "rye", "door", "office", "train", "river", "music", "winter"]
    texts = [f"{first} and {second}, {n}" for first in words for second in words for n in (1, 2, 3)]
    with tenant_scope(tenant_a.id):
        MemoryEntry.objects.bulk_create(
            MemoryEntry(
                content=text,
                embedding=vector,
                embedding_model=model_version(),
                user_id="ann" if number % 2 else None,
            )
            for number, (text, vector) in enumerate(zip(texts, embed(texts), strict=True))
        )
    query = embed(["tea by the river"])[0]

    exact = MEMORY.search(tenant_a.id, query, limit=192)
    found = MEMORY.search(tenant_a.id, query, limit=10)
    shared = MEMORY.search(tenant_a.id, query, limit=10, shared_only=True)

    assert len(exact) == 192
    assert contents(found) == contents(exact)[:10]
    assert contents(shared) == [e.content for e in exact if e.user_id is None][:10]
