"""An update keeps the old version, and reads as of a moment return the values of that moment."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from memory.embedding.embedder import embed
from memory.exceptions import InvalidArgument
from memory.facts.rows import value_in
from memory.models import MemoryEntry
from memory.models.facts import Author, AuthorKind, FactEvent
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests.memory.facts.keeping import MEMORY, contents, rows, store


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


def test_the_value_of_a_slot_follows_the_content() -> None:
    fact = MemoryEntry(tenant_id=uuid4(), content="Ann lives in York, UK.", value="York")
    for content, value in (
        ("Ann lives in Bath, UK.", "Bath"),
        ("Ann lives in New York, UK.", "New York"),
        ("Ann and Bo live in york.", "York"),
        ("Ann lives in Yorkshire.", ""),
        ("Ann moved to Rome.", ""),
        ("Ann lives in , UK.", ""),
    ):
        assert value_in(content, fact) == value, content
    assert value_in("Ann.", MemoryEntry(tenant_id=uuid4(), content="Ann lives.")) == ""


def test_a_replaced_text_of_an_external_id_names_its_author(tenant_a: Tenant) -> None:
    author = Author(AuthorKind.PROGRAM, "k1", "crm")
    for content in ("Ann lives in Bonn.", "Ann lives in Rome."):
        entry = MemoryEntry(tenant_id=tenant_a.id, content=content, external_id="home")
        MEMORY.remember(entry, author=author)
    with tenant_scope(tenant_a.id):
        events = FactEvent.objects.order_by("number").values_list("action", "author_name")
        assert [*events] == [("enter", "crm"), ("change", "crm")]
        assert MemoryEntry.objects.entries().get().asserter == "crm"


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
    assert (then.valid_from, then.valid_to) == (since, since)
    assert (now.valid_from, now.valid_to) == (since, ended)
    with pytest.raises(InvalidArgument, match=r"is before .*, since when the fact is so"):
        MEMORY.update(memory_id, tenant_a.id, valid_to=since - timedelta(days=1))
    assert len(MEMORY.history(memory_id, tenant_a.id)) == 2


def test_an_end_before_the_beginning_is_refused_by_name(tenant_a: Tenant) -> None:
    moment = timezone.now() - timedelta(days=1)
    with pytest.raises(InvalidArgument, match="is before valid_from, since when it is so"):
        store(tenant_a, "tea", valid_from=moment, valid_to=moment - timedelta(days=1))
    for fields in ({"valid_from": moment, "expires_at": moment}, {"expires_at": moment}):
        with pytest.raises(InvalidArgument, match=r"expires_at=.* is not after"):
            store(tenant_a, "tea", **fields)
    assert rows(tenant_a) == (0, 0)


def test_reads_as_of_a_moment_answer_as_they_would_have_then(tenant_a: Tenant) -> None:
    before = timezone.now()
    memory_id = store(tenant_a, "Ann lives in Bonn.", metadata={"since": 2020})
    in_bonn = timezone.now()
    MEMORY.update(memory_id, tenant_a.id, content="Ann lives in Rome.", metadata={"since": 2024})
    in_rome = timezone.now()
    MEMORY.update(memory_id, tenant_a.id, content="Ann lives in Oslo.", metadata={"since": None})

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


def test_update_can_set_valid_from(tenant_a: Tenant) -> None:
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


def test_a_fact_of_the_future_is_not_so_yet(tenant_a: Tenant) -> None:
    tomorrow = timezone.now() + timedelta(days=1)
    memory_id = store(tenant_a, "Tea is free.", valid_from=tomorrow)

    assert MEMORY.list_by_tenant(tenant_a.id) == []
    after = tomorrow + timedelta(seconds=1)
    assert contents(MEMORY.list_by_tenant(tenant_a.id, at=after)) == ["Tea is free."]
    assert store(tenant_a, "Tea is free.") == memory_id
    assert contents(MEMORY.list_by_tenant(tenant_a.id)) == ["Tea is free."]


@pytest.mark.django_db(transaction=True)
def test_updates_at_the_same_moment_each_keep_the_one_before(
    tenant_a: Tenant, run_concurrently: Callable[..., list[Any]]
) -> None:
    memory_id = store(tenant_a, "Version 0")

    def update(number: int) -> None:
        MEMORY.update(memory_id, tenant_a.id, content=f"Version {number}")

    run_concurrently(update, list(range(1, 9)))

    history = MEMORY.history(memory_id, tenant_a.id)
    assert sorted(contents(history)) == [f"Version {number}" for number in range(9)]
    assert [newer.supersedes for newer in history] == [
        *(older.memory_id for older in history[1:]),
        None,
    ]
    assert [newer.valid_from for newer in history[:-1]] == [older.valid_to for older in history[1:]]


def _cosine(first: str, second: str) -> float:
    one, two = embed([first, second])
    return sum(a * b for a, b in zip(one, two, strict=True))
