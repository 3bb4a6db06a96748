"""Facts: stored once, changed with their history kept, found by meaning, time and metadata."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from asgiref.sync import async_to_sync
from django.db import ProgrammingError, connection, transaction
from django.utils import timezone

from memory.context import LongTermMemory, MemoryEntry
from memory.embedding.embedder import embed, model_version
from memory.exceptions import DuplicateFact, FactNotFound, InvalidArgument
from memory.facts import reembed_facts, service
from memory.models import MemoryAttribute
from memory.models.fact_filters import parse_filters
from memory.models.fact_querysets import attributes_that_fulfil
from tenants.context import tenant_scope
from tenants.exceptions import TenantPinned, UnknownTenant
from tenants.models import Tenant
from tests.database import plan_of

AGENT, OTHER_AGENT = UUID(int=1), UUID(int=2)
MEMORY = LongTermMemory()


def fact(tenant: Tenant, content: str, **fields: Any) -> MemoryEntry:
    return MemoryEntry(tenant_id=tenant.id, content=content, **{"agent_id": AGENT, **fields})


def store(tenant: Tenant, content: str, **fields: Any) -> UUID:
    return MEMORY.store(fact(tenant, content, **fields))


def contents(entries: list[MemoryEntry]) -> list[str]:
    return [entry.content for entry in entries]


def rows(tenant: Tenant) -> tuple[int, int]:
    """How many facts and versions there are, and how many attributes."""
    with tenant_scope(tenant.id):
        return MemoryEntry.objects.count(), MemoryAttribute.objects.count()


# --- Storing --------------------------------------------------------------------------------------


def test_a_stored_fact_has_what_the_contract_names(tenant_a: Tenant) -> None:
    before = timezone.now()

    memory_id = store(tenant_a, "Ann likes green tea.", metadata={"topic": "food"})

    (entry,) = MEMORY.list_by_tenant(tenant_a.id)
    assert entry.memory_id == memory_id
    assert entry.tenant_id == tenant_a.id
    assert entry.agent_id == AGENT
    assert entry.content == "Ann likes green tea."
    assert entry.metadata == {"topic": "food"}
    assert [*entry.embedding] == pytest.approx(embed(["Ann likes green tea."])[0], abs=1e-6)
    assert entry.embedding_model == model_version()
    assert before <= entry.created_at <= timezone.now()
    assert abs(entry.updated_at - entry.created_at) < timedelta(seconds=1)
    assert (entry.user_id, entry.valid_to, entry.expires_at) == (None, None, None)


def test_the_same_text_is_the_same_entry(tenant_a: Tenant) -> None:
    first = MEMORY.remember(fact(tenant_a, "Ann likes tea.", metadata={"topic": "food"}))
    again = MEMORY.remember(fact(tenant_a, "Ann likes tea.", metadata={"topic": "drink"}))

    assert (first.created, again.created) == (True, False)
    assert again.memory_id == first.memory_id
    assert contents(MEMORY.list_by_tenant(tenant_a.id)) == ["Ann likes tea."]


def test_metadata_that_comes_with_the_same_text_is_added_and_the_old_stays_a_version(
    tenant_a: Tenant,
) -> None:
    memory_id = store(tenant_a, "Ann likes tea.", metadata={"topic": "food", "source": "crm"})

    for _ in range(2):  # said once more, it changes nothing
        assert store(tenant_a, "Ann likes tea.", metadata={"topic": "drink", "n": 1}) == memory_id
    store(tenant_a, "Ann likes tea.")

    versions = MEMORY.history(memory_id, tenant_a.id)
    assert [version.metadata for version in versions] == [
        {"topic": "drink", "source": "crm", "n": 1},
        {"topic": "food", "source": "crm"},
    ]
    assert contents(MEMORY.search(tenant_a.id, "tea", filters={"n": 1, "source": "crm"})) == [
        "Ann likes tea."
    ]
    assert MEMORY.search(tenant_a.id, "tea", filters={"topic": "food"}) == []


def test_an_end_that_comes_with_the_same_text_is_kept(tenant_a: Tenant) -> None:
    memory_id = store(tenant_a, "Ann likes tea.")
    ends = timezone.now() + timedelta(days=1)

    store(tenant_a, "Ann likes tea.", valid_to=ends, expires_at=ends)
    store(tenant_a, "Ann likes tea.")

    entry = MEMORY.get(memory_id, tenant_a.id)
    assert entry is not None
    assert (entry.valid_to, entry.expires_at) == (ends, ends)


def test_a_beginning_that_cannot_be_taken_in_is_refused_and_not_dropped(tenant_a: Tenant) -> None:
    memory_id = store(tenant_a, "Ann likes tea.", metadata={"topic": "food"})

    with pytest.raises(InvalidArgument, match="valid_from"):
        store(
            tenant_a,
            "Ann likes tea.",
            metadata={"topic": "drink"},
            valid_from=timezone.now() - timedelta(days=900),
        )

    assert [v.metadata for v in MEMORY.history(memory_id, tenant_a.id)] == [{"topic": "food"}]


def test_more_metadata_than_a_fact_may_have_is_refused_together(tenant_a: Tenant) -> None:
    store(tenant_a, "Ann likes tea.", metadata={f"a{n}": n for n in range(200)})

    with pytest.raises(InvalidArgument, match="more than 256 values"):
        store(tenant_a, "Ann likes tea.", metadata={f"b{n}": n for n in range(200)})


@pytest.mark.django_db(transaction=True)
def test_metadata_that_many_add_at_once_is_all_there(tenant_a: Tenant) -> None:
    memory_id = store(tenant_a, "Ann likes tea.")

    def add(number: int) -> None:
        try:
            store(tenant_a, "Ann likes tea.", metadata={f"n{number}": number})
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(add, range(8)))

    entry = MEMORY.get(memory_id, tenant_a.id)
    assert entry is not None
    assert entry.metadata == {f"n{number}": number for number in range(8)}


def test_the_same_text_of_another_agent_or_user_is_another_entry(tenant_a: Tenant) -> None:
    scopes = [
        {"agent_id": AGENT},
        {"agent_id": OTHER_AGENT},
        {"agent_id": None},
        {"agent_id": AGENT, "user_id": "ann"},
        {"agent_id": None, "user_id": "ann"},
    ]

    stored = [store(tenant_a, "Tea is served at five.", **scope) for scope in scopes]
    again = [store(tenant_a, "Tea is served at five.", **scope) for scope in scopes]

    assert len(set(stored)) == 5
    assert again == stored


@pytest.mark.django_db(transaction=True)
def test_the_same_text_stored_by_many_at_once_is_one_entry(tenant_a: Tenant) -> None:
    vector = embed(["Ann likes tea."])[0]

    def store_once(_: int) -> UUID:
        try:
            return store(tenant_a, "Ann likes tea.", embedding=vector)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as threads:
        stored = set(threads.map(store_once, range(12)))

    assert len(stored) == 1
    assert rows(tenant_a)[0] == 1


def test_near_duplicates_are_reported_and_not_merged(tenant_a: Tenant) -> None:
    near = store(tenant_a, "Ann's favourite drink is green tea.")
    store(tenant_a, "The office opens at nine.")
    store(tenant_a, "Ann's favourite drink is green tea!", user_id="ann")

    stored = MEMORY.remember(fact(tenant_a, "Ann's favorite drink is green tea"))

    assert stored.created
    assert [entry.memory_id for entry in stored.near_duplicates] == [near]
    assert stored.near_duplicates[0].score > 0.9
    assert rows(tenant_a)[0] == 4


def test_a_given_embedding_is_taken(tenant_a: Tenant) -> None:
    vector = embed(["something else"])[0]

    store(tenant_a, "Ann likes tea.", embedding=vector)

    (found,) = MEMORY.search(tenant_a.id, "something else", threshold=0.99)
    assert found.content == "Ann likes tea."


def test_a_fact_without_a_tenant_belongs_to_the_one_its_maker_is_in(tenant_a: Tenant) -> None:
    with tenant_scope(tenant_a.id):
        MEMORY.store(MemoryEntry(content="Ann likes tea."))

    assert contents(MEMORY.list_by_tenant(tenant_a.id)) == ["Ann likes tea."]
    with pytest.raises(InvalidArgument, match="has no tenant_id"):
        MEMORY.store(MemoryEntry(content="Ann likes tea."))


def test_ids_may_be_given_as_text(tenant_a: Tenant) -> None:
    entry = MemoryEntry(tenant_id=str(tenant_a.id), agent_id=str(AGENT), content="Ann likes tea.")

    memory_id = MEMORY.store(entry)

    assert MEMORY.search(str(tenant_a.id), "tea", agent_id=str(AGENT))[0].memory_id == memory_id
    assert MEMORY.delete(str(memory_id), str(tenant_a.id)) is True


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"content": ""}, "content='' says nothing"),
        ({"content": " \n"}, "says nothing"),
        ({"content": "a\x00b"}, "holds a NUL character"),
        ({"content": None}, "content=None is not text"),
        ({"agent_id": "ann"}, "agent_id='ann' is not a UUID"),
        ({"user_id": ""}, "user_id='' is empty"),
        ({"metadata": [1]}, r"metadata=\[1\] is not an object"),
        ({"metadata": {"a": float("nan")}}, "a=nan is not a finite number"),
        ({"embedding": [1.0, 2.0]}, "embedding has 2 dimensions, not 384"),
        ({"expires_at": datetime(2030, 1, 1)}, "is not a time with a time zone"),  # noqa: DTZ001
    ],
)
def test_a_fact_that_cannot_be_is_refused_and_leaves_nothing(
    tenant_a: Tenant, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidArgument, match=message):
        MEMORY.store(fact(tenant_a, **{"content": "Ann likes tea.", **fields}))

    assert rows(tenant_a) == (0, 0)


def test_an_entry_that_stands_is_not_stored_over(tenant_a: Tenant) -> None:
    entry = fact(tenant_a, "Ann likes tea.")
    MEMORY.store(entry)
    entry.content = "Ann likes rye."

    with pytest.raises(InvalidArgument, match=r"change a fact that stands with update\(\)"):
        MEMORY.store(entry)

    assert contents(MEMORY.list_by_tenant(tenant_a.id)) == ["Ann likes tea."]


# --- Finding --------------------------------------------------------------------------------------


def test_the_nearest_facts_come_first(tenant_a: Tenant) -> None:
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


def test_an_agent_finds_its_own_facts_and_everybodys(tenant_a: Tenant) -> None:
    store(tenant_a, "Tea is in the kitchen.", agent_id=AGENT)
    store(tenant_a, "Tea is in the cellar.", agent_id=OTHER_AGENT)
    store(tenant_a, "Tea is in the garden.", agent_id=None)

    assert {*contents(MEMORY.search(tenant_a.id, "tea", agent_id=AGENT))} == {
        "Tea is in the kitchen.",
        "Tea is in the garden.",
    }
    assert len(MEMORY.search(tenant_a.id, "tea")) == 3
    assert len(MEMORY.list_by_tenant(tenant_a.id, agent_id=OTHER_AGENT)) == 2


def test_a_users_facts_are_not_told_to_another(tenant_a: Tenant) -> None:
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
    # An operator that is not leakproof would be applied after the policy, as a "Filter", to rows
    # that were read one and all: that is what happens to @> and ? on the JSON itself.
    with tenant_scope(tenant_a.id), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        (parsed,) = parse_filters(filters)
        plan = plan_of(attributes_that_fulfil(parsed).values("memory_id"))

    assert index in plan
    assert condition in next(line for line in plan.splitlines() if "Index Cond" in line)


def test_of_many_facts_hnsw_finds_the_nearest(
    tenant_a: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "EXACT_ROWS", 50)
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


def test_vectors_of_another_model_are_not_compared_until_embedded_again(tenant_a: Tenant) -> None:
    memory_id = store(tenant_a, "Ann likes tea.")
    with tenant_scope(tenant_a.id):
        MemoryEntry.objects.update(embedding_model="older", embedding=[1.0] * 384)

    assert MEMORY.search(tenant_a.id, "tea") == []
    assert reembed_facts(tenant_a.id) == 1
    assert reembed_facts(tenant_a.id) == 0

    (found,) = MEMORY.search(tenant_a.id, "Ann likes tea.")
    assert found.memory_id == memory_id
    assert found.score == pytest.approx(1.0, abs=1e-5)


# --- Versions and time ----------------------------------------------------------------------------


def test_an_update_keeps_the_id_and_the_old_version(tenant_a: Tenant) -> None:
    memory_id = store(tenant_a, "Ann lives in Bonn.", metadata={"topic": "home"})
    created = MEMORY.list_by_tenant(tenant_a.id)[0].created_at
    in_bonn = timezone.now()

    updated = MEMORY.update(memory_id, tenant_a.id, content="Ann lives in Rome.")

    assert (updated.memory_id, updated.content) == (memory_id, "Ann lives in Rome.")
    now, then = MEMORY.history(memory_id, tenant_a.id)
    assert contents([now, then]) == ["Ann lives in Rome.", "Ann lives in Bonn."]
    assert now.created_at == then.created_at == created
    assert now.valid_from == now.updated_at == then.valid_to
    assert now.valid_to is None
    assert now.supersedes == then.memory_id
    assert then.version_of == memory_id
    assert then.supersedes is None
    assert then.valid_from < in_bonn < now.valid_from
    assert contents(MEMORY.list_by_tenant(tenant_a.id)) == ["Ann lives in Rome."]
    (found,) = MEMORY.search(tenant_a.id, "Where does Ann live?")
    assert found.content == "Ann lives in Rome."
    assert found.score == pytest.approx(
        float(_cosine("Ann lives in Rome.", "Where does Ann live?")), abs=1e-5
    )


def test_facts_about_nobody_can_be_left_out(tenant_a: Tenant) -> None:
    for user_id in (None, "ann", "bob"):
        store(tenant_a, f"tea of {user_id}", user_id=user_id)

    def found(**narrowed: Any) -> set[str]:
        return set(contents(MEMORY.search(tenant_a.id, "tea", **narrowed)))

    assert found(user_id="ann") == {"tea of None", "tea of ann"}
    assert found(user_id="ann", shared=False) == {"tea of ann"}
    assert found(shared=False) == {"tea of ann", "tea of bob"}
    assert found(shared=False, shared_only=True) == set()


def test_a_fact_can_be_ended_after_the_event(tenant_a: Tenant) -> None:
    since = timezone.now() - timedelta(days=10)
    ended = timezone.now() - timedelta(days=3)
    memory_id = store(tenant_a, "Ann lives in Bonn.", valid_from=since)

    MEMORY.update(memory_id, tenant_a.id, valid_to=ended)

    assert MEMORY.get(memory_id, tenant_a.id) is None
    assert MEMORY.search(tenant_a.id, "Where does Ann live?") == []
    for days, known in ((11, False), (9, True), (4, True), (2, False)):
        at = timezone.now() - timedelta(days=days)
        assert bool(MEMORY.get(memory_id, tenant_a.id, at=at)) is known
    now, then = MEMORY.history(memory_id, tenant_a.id)
    assert (then.valid_from, then.valid_to) == (since, ended)
    assert (now.valid_from, now.valid_to) == (ended, ended)
    with pytest.raises(InvalidArgument, match=r"is before .*, since when the fact is so"):
        MEMORY.update(memory_id, tenant_a.id, valid_to=since)
    assert len(MEMORY.history(memory_id, tenant_a.id)) == 2


def test_an_end_before_the_beginning_is_refused_by_name(tenant_a: Tenant) -> None:
    moment = timezone.now() - timedelta(days=1)
    with pytest.raises(InvalidArgument, match="is before valid_from, since when it is so"):
        store(tenant_a, "tea", valid_from=moment, valid_to=moment - timedelta(days=1))
    assert rows(tenant_a) == (0, 0)


def test_reads_as_of_a_moment_answer_as_they_would_have_then(tenant_a: Tenant) -> None:
    before = timezone.now()
    memory_id = store(tenant_a, "Ann lives in Bonn.", metadata={"since": 2020})
    in_bonn = timezone.now()
    MEMORY.update(memory_id, tenant_a.id, content="Ann lives in Rome.", metadata={"since": 2024})
    in_rome = timezone.now()
    MEMORY.update(memory_id, tenant_a.id, content="Ann lives in Oslo.", metadata={})

    def home(at: datetime | None) -> list[str]:
        found = MEMORY.search(tenant_a.id, "Where does Ann live?", at=at)
        assert contents(MEMORY.list_by_tenant(tenant_a.id, at=at)) == contents(found)
        entry = MEMORY.get(memory_id, tenant_a.id, at=at)
        assert ([entry.content] if entry else []) == contents(found)
        return contents(found)

    assert home(before) == []
    assert home(in_bonn) == ["Ann lives in Bonn."]
    assert home(in_rome) == ["Ann lives in Rome."]
    assert home(None) == ["Ann lives in Oslo."]
    by_metadata = MEMORY.search(tenant_a.id, "Ann", at=in_rome, filters={"since": {"gt": 2021}})
    assert contents(by_metadata) == ["Ann lives in Rome."]
    assert MEMORY.search(tenant_a.id, "Ann", filters={"since": {"exists": True}}) == []


def test_an_update_may_say_since_when_it_is_so(tenant_a: Tenant) -> None:
    moved_in = timezone.now() - timedelta(days=100)
    moved_out = timezone.now() - timedelta(days=10)
    memory_id = store(tenant_a, "Ann lives in Bonn.", valid_from=moved_in)

    MEMORY.update(memory_id, tenant_a.id, content="Ann lives in Rome.", valid_from=moved_out)

    def home(days_ago: int) -> list[str]:
        at = timezone.now() - timedelta(days=days_ago)
        return contents(MEMORY.list_by_tenant(tenant_a.id, at=at))

    assert home(200) == []
    assert home(50) == ["Ann lives in Bonn."]
    assert home(5) == ["Ann lives in Rome."]
    for impossible in (moved_in, timezone.now() + timedelta(days=1)):
        with pytest.raises(InvalidArgument, match="is not between"):
            MEMORY.update(memory_id, tenant_a.id, content="Oslo", valid_from=impossible)
    assert len(MEMORY.history(memory_id, tenant_a.id)) == 2


def test_an_update_of_the_metadata_alone_is_a_version_too(tenant_a: Tenant) -> None:
    memory_id = store(tenant_a, "Ann likes tea.", metadata={"topic": "food"})

    MEMORY.update(memory_id, tenant_a.id, metadata={"topic": "drink"})

    now, then = MEMORY.history(memory_id, tenant_a.id)
    assert (now.content, now.metadata) == ("Ann likes tea.", {"topic": "drink"})
    assert (then.content, then.metadata) == ("Ann likes tea.", {"topic": "food"})
    assert MEMORY.list_by_tenant(tenant_a.id, filters={"topic": "food"}) == []
    assert len(MEMORY.list_by_tenant(tenant_a.id, filters={"topic": "drink"})) == 1


def test_an_update_that_changes_nothing_makes_no_version(tenant_a: Tenant) -> None:
    memory_id = store(tenant_a, "Ann likes tea.", metadata={"topic": "food"})

    MEMORY.update(memory_id, tenant_a.id)
    MEMORY.update(memory_id, tenant_a.id, content="Ann likes tea.", metadata={"topic": "food"})

    assert len(MEMORY.history(memory_id, tenant_a.id)) == 1


def test_a_fact_cannot_become_one_that_stands(tenant_a: Tenant) -> None:
    standing = store(tenant_a, "Ann likes tea.")
    memory_id = store(tenant_a, "Ann likes rye.", metadata={"a": 1})

    with pytest.raises(DuplicateFact, match="says the same") as caught:
        MEMORY.update(memory_id, tenant_a.id, content="Ann likes tea.")

    assert caught.value.memory_id == standing
    assert contents(MEMORY.history(memory_id, tenant_a.id)) == ["Ann likes rye."]
    assert rows(tenant_a) == (2, 1)


def test_an_expired_fact_is_not_found_but_was(tenant_a: Tenant) -> None:
    yesterday = timezone.now() - timedelta(days=1)
    memory_id = store(
        tenant_a,
        "Tea is free today.",
        valid_from=yesterday - timedelta(days=1),
        expires_at=yesterday,
    )

    assert MEMORY.search(tenant_a.id, "tea") == []
    assert MEMORY.list_by_tenant(tenant_a.id) == []
    assert MEMORY.get(memory_id, tenant_a.id) is None
    earlier = yesterday - timedelta(hours=1)
    assert contents(MEMORY.list_by_tenant(tenant_a.id, at=earlier)) == ["Tea is free today."]
    assert contents(MEMORY.history(memory_id, tenant_a.id)) == ["Tea is free today."]


def test_an_expired_fact_that_is_stored_again_is_so_again(tenant_a: Tenant) -> None:
    yesterday = timezone.now() - timedelta(days=1)
    memory_id = store(
        tenant_a, "Tea is free.", valid_from=yesterday - timedelta(days=1), expires_at=yesterday
    )

    again = MEMORY.remember(fact(tenant_a, "Tea is free.", metadata={"new": True}))

    assert (again.memory_id, again.created) == (memory_id, False)
    (entry,) = MEMORY.list_by_tenant(tenant_a.id)
    assert (entry.expires_at, entry.metadata) == (None, {"new": True})
    assert len(MEMORY.history(memory_id, tenant_a.id)) == 2
    assert MEMORY.list_by_tenant(tenant_a.id, at=timezone.now() - timedelta(hours=1)) == []


def test_a_fact_stored_twice_with_the_same_time_makes_no_version(tenant_a: Tenant) -> None:
    now = timezone.now()
    times = [
        {"valid_from": now + timedelta(days=1)},
        {"valid_from": now - timedelta(days=2), "expires_at": now - timedelta(days=1)},
        {"valid_from": now - timedelta(days=2), "valid_to": now - timedelta(days=1)},
    ]
    for number, fields in enumerate(times):
        first = store(tenant_a, f"Fact {number}", **fields)
        assert store(tenant_a, f"Fact {number}", **fields) == first
        assert len(MEMORY.history(first, tenant_a.id)) == 1


def test_an_expiry_can_be_set_moved_and_lifted(tenant_a: Tenant) -> None:
    memory_id = store(tenant_a, "Tea is free.")
    soon = timezone.now() + timedelta(days=1)

    assert MEMORY.update(memory_id, tenant_a.id, expires_at=soon).expires_at == soon
    assert MEMORY.update(memory_id, tenant_a.id, content="Tea costs 1.").expires_at == soon
    assert MEMORY.update(memory_id, tenant_a.id, expires_at=None).expires_at is None


def test_a_fact_of_the_future_is_not_so_yet(tenant_a: Tenant) -> None:
    tomorrow = timezone.now() + timedelta(days=1)
    memory_id = store(tenant_a, "Tea is free.", valid_from=tomorrow)

    assert MEMORY.list_by_tenant(tenant_a.id) == []
    after = tomorrow + timedelta(seconds=1)
    assert contents(MEMORY.list_by_tenant(tenant_a.id, at=after)) == ["Tea is free."]
    assert store(tenant_a, "Tea is free.") == memory_id
    assert contents(MEMORY.list_by_tenant(tenant_a.id)) == ["Tea is free."]


@pytest.mark.django_db(transaction=True)
def test_updates_at_the_same_moment_each_keep_the_one_before(tenant_a: Tenant) -> None:
    memory_id = store(tenant_a, "Version 0")

    def update(number: int) -> None:
        try:
            MEMORY.update(memory_id, tenant_a.id, content=f"Version {number}")
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(update, range(1, 9)))

    history = MEMORY.history(memory_id, tenant_a.id)
    assert sorted(contents(history)) == [f"Version {number}" for number in range(9)]
    assert [newer.supersedes for newer in history] == [
        *(older.memory_id for older in history[1:]),
        None,
    ]
    assert [newer.valid_from for newer in history[:-1]] == [older.valid_to for older in history[1:]]


# --- Deleting -------------------------------------------------------------------------------------


def test_delete_removes_a_fact_with_its_versions(tenant_a: Tenant) -> None:
    memory_id = store(tenant_a, "Ann likes tea.", metadata={"topic": "food"})
    MEMORY.update(memory_id, tenant_a.id, content="Ann likes rye.")
    kept = store(tenant_a, "The office opens at nine.", metadata={"topic": "hours"})

    assert MEMORY.delete(memory_id, tenant_a.id) is True
    assert MEMORY.delete(memory_id, tenant_a.id) is False

    assert MEMORY.history(memory_id, tenant_a.id) == []
    assert [entry.memory_id for entry in MEMORY.list_by_tenant(tenant_a.id)] == [kept]
    assert rows(tenant_a) == (1, 1)


def test_a_version_is_not_deleted_without_its_entry(tenant_a: Tenant) -> None:
    memory_id = store(tenant_a, "Ann likes tea.")
    MEMORY.update(memory_id, tenant_a.id, content="Ann likes rye.")
    version = MEMORY.history(memory_id, tenant_a.id)[1].memory_id

    assert MEMORY.delete(version, tenant_a.id) is False
    assert MEMORY.history(version, tenant_a.id) == []
    with pytest.raises(FactNotFound):
        MEMORY.update(version, tenant_a.id, content="Ann likes ink.")

    assert len(MEMORY.history(memory_id, tenant_a.id)) == 2


# --- Isolation ------------------------------------------------------------------------------------


def test_another_tenant_sees_nothing_and_changes_nothing(
    tenant_a: Tenant, tenant_b: Tenant
) -> None:
    memory_id = store(tenant_a, "Ann likes tea.", metadata={"topic": "food"})
    MEMORY.update(memory_id, tenant_a.id, metadata={"topic": "drink"})

    assert MEMORY.search(tenant_b.id, "Ann likes tea.") == []
    assert MEMORY.list_by_tenant(tenant_b.id) == []
    assert MEMORY.get(memory_id, tenant_b.id) is None
    assert MEMORY.history(memory_id, tenant_b.id) == []
    assert MEMORY.delete(memory_id, tenant_b.id) is False
    with pytest.raises(FactNotFound, match=str(memory_id)):
        MEMORY.update(memory_id, tenant_b.id, content="Ann likes ink.")
    assert MEMORY.store(fact(tenant_b, "Ann likes tea.")) != memory_id

    assert len(MEMORY.history(memory_id, tenant_a.id)) == 2
    (entry,) = MEMORY.list_by_tenant(tenant_a.id)
    assert (entry.memory_id, entry.content) == (memory_id, "Ann likes tea.")


def test_an_unknown_tenant_has_no_facts_and_takes_none(tenant_a: Tenant) -> None:
    memory_id = store(tenant_a, "Ann likes tea.")
    nobody = uuid4()

    assert MEMORY.search(nobody, "tea") == []
    assert MEMORY.list_by_tenant(nobody) == []
    assert MEMORY.get(memory_id, nobody) is None
    assert MEMORY.history(memory_id, nobody) == []
    assert MEMORY.delete(memory_id, nobody) is False
    with pytest.raises(UnknownTenant):
        MEMORY.store(MemoryEntry(tenant_id=nobody, content="Ann likes tea."))
    with pytest.raises(UnknownTenant):
        MEMORY.update(memory_id, nobody, content="Ann likes ink.")

    # The transaction that this test is in has survived all of it.
    assert contents(MEMORY.list_by_tenant(tenant_a.id)) == ["Ann likes tea."]


def test_code_that_serves_one_tenant_cannot_reach_anothers_facts(
    tenant_a: Tenant, tenant_b: Tenant
) -> None:
    memory_id = store(tenant_b, "Ann likes tea.")

    with tenant_scope(tenant_a.id, pinned=True):
        for reach in (
            lambda: MEMORY.search(tenant_b.id, "tea"),
            lambda: MEMORY.list_by_tenant(tenant_b.id),
            lambda: MEMORY.delete(memory_id, tenant_b.id),
            lambda: store(tenant_b, "Ann likes ink."),
        ):
            with pytest.raises(TenantPinned):
                reach()

    assert contents(MEMORY.list_by_tenant(tenant_b.id)) == ["Ann likes tea."]


@pytest.mark.parametrize("table", ["memory_memoryentry", "memory_memoryattribute"])
def test_postgres_itself_hides_another_tenants_facts(
    tenant_a: Tenant, tenant_b: Tenant, table: str
) -> None:
    memory_id = store(tenant_a, "Ann likes tea.", metadata={"topic": "food"})
    with tenant_scope(tenant_b.id), connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {tenant_a.schema_name}.{table}")
        assert cursor.fetchone() == (0,)
        cursor.execute(f"DELETE FROM {tenant_a.schema_name}.{table}")
        assert cursor.rowcount == 0
        with pytest.raises(ProgrammingError, match="row-level security"), transaction.atomic():
            cursor.execute(
                f"INSERT INTO {tenant_a.schema_name}.memory_memoryattribute"
                " (tenant_id, memory_id, key, kind) VALUES (%s, %s, 'a', 'text')",
                [tenant_a.id, memory_id],
            )
    with (
        tenant_scope(tenant_a.id),
        pytest.raises(ProgrammingError, match="row-level security"),
        transaction.atomic(),
    ):
        MemoryEntry.objects.create(
            tenant_id=tenant_b.id, content="x", embedding=[1.0] * 384, embedding_model="m"
        )


def test_a_scope_that_was_open_is_open_again(tenant_a: Tenant, tenant_b: Tenant) -> None:
    store(tenant_b, "Theirs")
    with tenant_scope(tenant_a.id):
        assert contents(MEMORY.list_by_tenant(tenant_b.id)) == ["Theirs"]
        assert MemoryEntry.objects.count() == 0


def test_asynchronous_callers_have_the_same_methods(tenant_a: Tenant, tenant_b: Tenant) -> None:
    async def live() -> list[Any]:
        memory_id = await MEMORY.astore(fact(tenant_a, "Ann likes tea."))
        await MEMORY.aupdate(memory_id, tenant_a.id, content="Ann likes rye.")
        found = await asyncio.gather(
            MEMORY.asearch(tenant_a.id, "rye"),
            MEMORY.asearch(tenant_b.id, "rye"),
            MEMORY.alist_by_tenant(tenant_a.id),
            MEMORY.ahistory(memory_id, tenant_a.id),
        )
        gone = (
            await MEMORY.adelete(memory_id, tenant_b.id),
            await MEMORY.adelete(memory_id, tenant_a.id),
        )
        return [contents(entries) for entries in found] + [gone]

    assert async_to_sync(live)() == [
        ["Ann likes rye."],
        [],
        ["Ann likes rye."],
        ["Ann likes rye.", "Ann likes tea."],
        (False, True),
    ]


def _cosine(first: str, second: str) -> float:
    one, two = embed([first, second])
    return sum(a * b for a, b in zip(one, two, strict=True))
