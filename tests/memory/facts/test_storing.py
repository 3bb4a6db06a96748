"""Facts are stored once, and invalid values are refused by name."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from memory.context import MemoryEntry
from memory.embedding.embedder import embed, model_version
from memory.exceptions import InvalidArgument
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests.memory.facts.keeping import AGENT, MEMORY, OTHER_AGENT, contents, fact, rows, store


def test_stored_fact_has_the_fields_of_the_contract(tenant_a: Tenant) -> None:
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


def test_metadata_given_with_the_same_text_is_added_in_a_new_version(tenant_a: Tenant) -> None:
    memory_id = store(tenant_a, "Ann likes tea.", metadata={"topic": "food", "source": "crm"})

    for _ in range(2):  # a repetition changes nothing
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


def test_valid_until_given_with_the_same_text_is_stored(tenant_a: Tenant) -> None:
    memory_id = store(tenant_a, "Ann likes tea.")
    ends = timezone.now() + timedelta(days=1)

    store(tenant_a, "Ann likes tea.", valid_to=ends, expires_at=ends)
    store(tenant_a, "Ann likes tea.")

    entry = MEMORY.get(memory_id, tenant_a.id)
    assert entry is not None
    assert (entry.valid_to, entry.expires_at) == (ends, ends)


def test_too_much_combined_metadata_is_refused(tenant_a: Tenant) -> None:
    store(tenant_a, "Ann likes tea.", metadata={f"a{n}": n for n in range(200)})

    with pytest.raises(InvalidArgument, match="more than 256 values"):
        store(tenant_a, "Ann likes tea.", metadata={f"b{n}": n for n in range(200)})


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
def test_the_same_text_stored_by_many_at_once_is_one_entry(
    tenant_a: Tenant, run_concurrently: Callable[..., list[Any]]
) -> None:
    vector = embed(["Ann likes tea."])[0]
    stored = run_concurrently(
        lambda _: store(tenant_a, "Ann likes tea.", embedding=vector), list(range(8))
    )
    assert len(set(stored)) == 1
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


def test_a_fact_without_a_tenant_belongs_to_the_one_its_maker_is_in(tenant_a: Tenant) -> None:
    with tenant_scope(tenant_a.id):
        MEMORY.store(MemoryEntry(content="Ann likes tea."))

    assert contents(MEMORY.list_by_tenant(tenant_a.id)) == ["Ann likes tea."]
    with pytest.raises(InvalidArgument, match="has no tenant_id"):
        MEMORY.store(MemoryEntry(content="Ann likes tea."))


def test_ids_can_be_text(tenant_a: Tenant) -> None:
    entry = MemoryEntry(tenant_id=str(tenant_a.id), agent_id=str(AGENT), content="Ann likes tea.")

    memory_id = MEMORY.store(entry)

    assert MEMORY.search(str(tenant_a.id), "tea", agent_id=str(AGENT))[0].memory_id == memory_id
    assert MEMORY.delete(str(memory_id), str(tenant_a.id)) is True


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"content": " \n"}, "is blank"),
        ({"content": "a\x00b"}, "holds U.0000"),
        ({"content": 7}, "content=7 is not text"),
        ({"agent_id": "ann"}, "agent_id='ann' is not a UUID"),
        ({"user_id": ""}, "user_id='' is empty"),
        ({"embedding": [1.0, 2.0]}, "embedding has 2 dimensions, not 384"),
        ({"expires_at": datetime(2030, 1, 1)}, "is not a time with a time zone"),  # noqa: DTZ001
    ],
)
def test_invalid_fact_is_refused_and_not_stored(
    tenant_a: Tenant, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidArgument, match=message):
        MEMORY.store(fact(tenant_a, **{"content": "Ann likes tea.", **fields}))

    assert rows(tenant_a) == (0, 0)


def test_an_entry_without_content_is_refused_when_it_is_made() -> None:
    with pytest.raises(InvalidArgument, match="content is missing: give the text that is to be"):
        MemoryEntry(tenant_id=UUID(int=9))


def test_existing_entry_is_not_overwritten(tenant_a: Tenant) -> None:
    entry = fact(tenant_a, "Ann likes tea.")
    MEMORY.store(entry)
    entry.content = "Ann likes rye."

    with pytest.raises(InvalidArgument, match=r"change an active fact with update\(\)"):
        MEMORY.store(entry)

    assert contents(MEMORY.list_by_tenant(tenant_a.id)) == ["Ann likes tea."]


@pytest.mark.django_db(transaction=True)
def test_an_external_id_is_one_fact_also_for_simultaneous_writers(
    tenant_a: Tenant, run_concurrently: Callable[..., list[Any]]
) -> None:
    def put(number: int) -> tuple[UUID, bool]:
        entry = fact(tenant_a, f"Ann has {number} cups.", external_id="cups", user_id="ann")
        entry.metadata = {"n": number, "inner": {str(number): None}}
        stored = MEMORY.remember(entry)
        return stored.memory_id, stored.created

    results = run_concurrently(put, list(range(8)))

    assert len({memory_id for memory_id, _ in results}) == 1
    assert sum(created for _, created in results) == 1
    (entry,) = MEMORY.list_by_tenant(tenant_a.id)
    number = entry.metadata["n"]
    assert (entry.content, entry.metadata) == (
        f"Ann has {number} cups.",
        {"n": number, "inner": {str(number): None}},
    )
    assert rows(tenant_a)[0] == 8  # the fact and seven versions


def test_an_external_id_is_of_an_agent_and_a_user_and_the_text_of_others_is_free(
    tenant_a: Tenant,
) -> None:
    ids = {
        store(tenant_a, "Ann likes tea.", **owner, **named)
        for owner in ({}, {"user_id": "ann"}, {"agent_id": OTHER_AGENT}, {"agent_id": None})
        for named in ({}, {"external_id": "1"}, {"external_id": "2"})
        for _ in range(2)
    }

    assert len(ids) == 12
    with pytest.raises(InvalidArgument, match="external_id='' is empty"):
        store(tenant_a, "Ann likes tea.", external_id="")


def test_metadata_is_merged_at_each_depth_and_null_removes(tenant_a: Tenant) -> None:
    stored = {"topic": "food", "source": {"url": "a", "page": 1, "tags": ["x"]}, "n": {"a": 1}}
    sent = {"topic": None, "source": {"page": 2, "tags": ["y"]}, "n": 3, "new": {"a": {"b": None}}}
    merged = {"source": {"url": "a", "page": 2, "tags": ["y"]}, "n": 3, "new": {"a": {}}}

    again = store(tenant_a, "Ann likes tea.", metadata=stored)
    store(tenant_a, "Ann likes tea.", metadata=sent)
    updated = store(tenant_a, "Ann likes rye.", metadata=stored)
    MEMORY.update(updated, tenant_a.id, metadata=sent)
    replaced = store(tenant_a, "Ann likes ham.", metadata=stored)
    MEMORY.update(replaced, tenant_a.id, metadata=sent, replaces_metadata=True)

    found = {entry.memory_id: entry.metadata for entry in MEMORY.list_by_tenant(tenant_a.id)}
    assert found == {again: merged, updated: merged, replaced: sent}


@pytest.mark.parametrize("name", ["metadata", "expires_at", "valid_to"])
def test_a_change_of_something_else_keeps_the_validity(tenant_a: Tenant, name: str) -> None:
    since = timezone.now() - timedelta(days=900)
    ends = timezone.now() + timedelta(days=9)
    value: Any = {"topic": "food"} if name == "metadata" else ends
    memory_id = store(tenant_a, "Ann likes tea.", valid_from=since)

    MEMORY.update(memory_id, tenant_a.id, **{name: value})
    store(tenant_a, "Ann likes tea.", **{name: {"n": 1} if name == "metadata" else value})

    now, *_ = MEMORY.history(memory_id, tenant_a.id)
    assert now.valid_from == since
    (then,) = MEMORY.list_by_tenant(tenant_a.id, at=since + timedelta(days=1))
    assert then.version_of is None
