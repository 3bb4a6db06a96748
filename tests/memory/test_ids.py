"""Ids are compared by code points. Invisible characters are refused in new ids."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError

from konstruct.orchestrator.identities import channel_identities
from konstruct.privacy.archive.exporting import export_memory
from konstruct.privacy.archive.importing import import_memory
from memory.archive import SQLiteManager
from memory.arguments import as_code_points, new_id_argument
from memory.conversations.short_term import append_message, clear_window, get_recent_messages
from memory.conversations.transcript import ImportedTurn, import_turns, record_message
from memory.exceptions import InvalidArgument
from memory.facts import LongTermMemory
from memory.indexing import drain
from memory.long_term import store_embedding
from memory.models import MemoryEntry, Message, Scope
from memory.recall import recall
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests.memory.messages import AGENT

pytestmark = pytest.mark.django_db(transaction=True)

# All of them look alike, or nearly.
SIMILAR_IDS = (
    "zoé",
    "zoe\u0301",
    "Zoé",
    "zoé ",
    " zoé",
    "zoé\u00a0",
    "\uff5aoé",
    "zо\u0301é".replace("\u0301", ""),  # a Cyrillic о
)
NEVER = ("zo\u00adé", "zo\u200bé", "zo\u200dé", "\ufeffzoé", "zoé\ufe0f", "+43 1\u2060",
         "\U000e0041a", "رضا\u200c", ".", "..",
         "a\nb", "a\tb", "a\x00b", "a\x7fb", "a\x85b", "a\u2028b", "a\u2029b", "a\u202eb",
         "\u2066a", "a\u2069", "a\ud800", "", " ", "\u3000", "x" * 1025,
         f"erased:{'0' * 32}")  # fmt: skip


def turn(user_id: str, external_id: str = "e") -> ImportedTurn:
    return ImportedTurn(
        external_id,
        AGENT,
        user_id,
        "t",
        "user",
        f"I am {user_id}.",
        datetime(2026, 1, 1, tzinfo=UTC),
    )


@pytest.mark.slow
def test_ids_that_look_alike_are_different_users(
    tenant_a: Tenant, tenant_b: Tenant, tmp_path: Path
) -> None:
    assert len(set(SIMILAR_IDS)) == len(SIMILAR_IDS)
    import_turns(tenant_a.id, [turn(user_id) for user_id in SIMILAR_IDS])
    drain(tenant_a.id)
    for user_id in SIMILAR_IDS:
        append_message(tenant_a.id, AGENT, user_id, "user", f"window of {user_id}")
        LongTermMemory().store(
            MemoryEntry(
                tenant_id=tenant_a.id,
                agent_id=AGENT,
                user_id=user_id,
                content=f"Fact of {user_id}.",
            )
        )
    for user_id in SIMILAR_IDS:
        hits = recall(tenant_a.id, AGENT, user_id, "Who are you?").hits
        assert {hit.content for hit in hits} <= {f"I am {user_id}."}
        contents = [
            message["content"] for message in get_recent_messages(tenant_a.id, AGENT, user_id)
        ]
        assert contents[-1] == f"window of {user_id}"
        assert {f"window of {other}" for other in SIMILAR_IDS if other != user_id}.isdisjoint(
            contents
        )
    clear_window(tenant_a.id, AGENT, SIMILAR_IDS[0])
    assert get_recent_messages(tenant_a.id, AGENT, SIMILAR_IDS[0]) == []
    assert all(get_recent_messages(tenant_a.id, AGENT, user_id) for user_id in SIMILAR_IDS[1:])
    with tenant_scope(tenant_a.id):
        assert set(Scope.objects.values_list("user_id", flat=True)) == set(SIMILAR_IDS)

    for user_id in SIMILAR_IDS[:3]:
        path = tmp_path / f"{SIMILAR_IDS.index(user_id)}.db"
        export_memory(tenant_a, path, user_id=user_id)
        import_memory(tenant_b, path)
    with tenant_scope(tenant_b.id):
        found = Message.objects.values_list("user_id", flat=True)
        assert sorted(found) == sorted(SIMILAR_IDS[:3])


def test_an_archives_ids_are_exact(tmp_path: Path) -> None:
    with SQLiteManager(tmp_path / "a.db") as file:
        for id in SIMILAR_IDS:
            file.create_conversation(id, id=id)
        assert [file.get_conversation(id).title for id in SIMILAR_IDS] == list(SIMILAR_IDS)


WRITERS: dict[str, Callable[[Tenant, str], Any]] = {
    "record_message": lambda tenant, id: record_message(
        tenant_id=tenant.id, agent_id=AGENT, user_id=id, thread_id="t", channel="rest",
        role="user", content="Hello",
    ),
    "its thread": lambda tenant, id: record_message(
        tenant_id=tenant.id, agent_id=AGENT, user_id="u", thread_id=id, channel="rest",
        role="user", content="Hello",
    ),
    "import_turns": lambda tenant, id: import_turns(tenant.id, [turn(id)]),
    "its external id": lambda tenant, id: import_turns(tenant.id, [turn("u", id)]),
    "append_message": lambda tenant, id: append_message(tenant.id, AGENT, id, "user", "Hello"),
    "store_embedding": lambda tenant, id: store_embedding(
        tenant.id, AGENT, id, "Hello", "user", [1.0] + [0.0] * 383
    ),
    "store": lambda tenant, id: LongTermMemory().store(
        MemoryEntry(tenant_id=tenant.id, agent_id=AGENT, user_id=id, content="Hello")
    ),
    "user_of": lambda tenant, id: _user_of(tenant, id),
}  # fmt: skip


def _user_of(tenant: Tenant, id: str) -> str:
    with tenant_scope(tenant.id):
        return channel_identities.user_of("slack", "T1", id)


@pytest.mark.parametrize("id", ["a\u202eb", "a\u200bb", "\u3000", "x" * 1025], ids=ascii)
@pytest.mark.parametrize("writer", WRITERS)
def test_invisible_characters_are_refused(tenant_a: Tenant, writer: str, id: str) -> None:
    with pytest.raises(InvalidArgument):
        WRITERS[writer](tenant_a, id)
    with tenant_scope(tenant_a.id):
        assert not Message.objects.exists()


def test_the_refusal_names_the_character_and_its_place() -> None:
    for id in NEVER:
        with pytest.raises(InvalidArgument):
            new_id_argument("user_id", id)
    with pytest.raises(InvalidArgument, match=r"user_id='a\\u202eb' holds U\+202E \(RIGHT"):
        new_id_argument("user_id", "a\u202eb")
    with pytest.raises(InvalidArgument, match=r"user_id='\\u3000' is blank"):
        new_id_argument("user_id", "\u3000")
    for id in (
        "maria",
        "U024BE7LH",
        "C1/17.5",
        "maria@example.org",
        "zoe ",
        "漢字",
        "👩‍👩‍👧",
        "❤️‍🔥",
        "علی\u200cرضا",
        "...",
        "ä b",
    ):
        assert new_id_argument("user_id", id) == id


def test_an_id_is_spelled_for_people() -> None:
    assert as_code_points("maria@example.org") == ""
    assert as_code_points("zoe ") == "zoe‹U+0020›"
    assert as_code_points("zo\u200bé") == "zo‹U+200B›‹U+00E9›"


def test_one_id_is_one_identity(tenant_a: Tenant) -> None:
    with tenant_scope(tenant_a.id):
        users = {channel_identities.user_of("slack", "T1", id) for id in SIMILAR_IDS}
        assert len(users) == len(SIMILAR_IDS)
        assert users == {channel_identities.user_of("slack", "T1", id) for id in SIMILAR_IDS}
        with pytest.raises(IntegrityError):
            Scope.objects.bulk_create(
                [Scope(agent_id=AGENT, user_id="x"), Scope(agent_id=AGENT, user_id="x")]
            )
