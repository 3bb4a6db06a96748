"""People are found by their ids and by all names of their messages."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from memory.browse.lists import people, with_text
from memory.conversations.transcript import MAX_NAME_CHARACTERS, ImportedTurn, import_turns
from memory.facts import LongTermMemory
from memory.models import MemoryEntry, Message, PersonName
from memory.text.lexical import fold
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests.memory.conftest import AGENT, USER

OTHER = UUID("0a9e0000-0000-4000-8000-000000000002")


def users_found(tenant: Tenant, text: str, **narrowed: Any) -> list[str]:
    agent_id = narrowed.get("agent_id")
    with tenant_scope(tenant.id):
        found = people(agent_id=agent_id).filter(with_text(text, **narrowed))
        return [user.user_id for user in found]


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("José  Núñez", "jose nunez"),
        ("Łukasz Sørensen", "lukasz sorensen"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("İstanbul", "istanbul"),
        ("\uff2d\uff41\uff52\uff49\uff41", "maria"),
        ("मिरा", "मिरा"),
        ("李 雷", "李 雷"),
    ],
)
def test_folding_removes_case_and_accents(text: str, folded: str) -> None:
    assert fold(text) == folded


@pytest.mark.parametrize(
    "text", ["jose", "JOSÉ", "nunez josé", "núñ", "u1", "U1", "ñe", "Pepe", "pe"]
)
def test_a_person_is_found_by_words_of_a_name_and_by_id(
    tenant_a: Tenant, tenant_b: Tenant, add_message: Callable[..., Message], text: str
) -> None:
    add_message(tenant_a.id, "Hello", user_id="U1", name="Pepe")
    add_message(tenant_a.id, "Hello again", user_id="U1", name="José Núñez")
    add_message(tenant_a.id, "Hello", user_id="X2", name="Eve")
    add_message(tenant_b.id, "Hello", user_id="U1", name="Zoë")
    assert users_found(tenant_a, text) == ["U1"]
    assert users_found(tenant_b, "zoe") == ["U1"]
    assert users_found(tenant_b, "jose") == []


def test_found_people_are_narrowed(tenant_a: Tenant, add_message: Callable[..., Message]) -> None:
    for number in range(4):
        agent = OTHER if number == 2 else AGENT
        add_message(tenant_a.id, "Hello", user_id=f"u{number}", name="Ann", agent_id=agent)
    assert users_found(tenant_a, "ann") == ["u0", "u1", "u2", "u3"]
    assert users_found(tenant_a, "ann", agent_id=OTHER) == ["u2"]
    assert users_found(tenant_a, "nobody", also_ids=["u3", "u9"]) == ["u3"]


def test_name_is_kept_if_later_messages_have_none(
    tenant_a: Tenant, add_message: Callable[..., Message]
) -> None:
    for day, name in ((1, "Kim"), (2, "Kim Possible"), (3, "")):
        add_message(tenant_a.id, "Hello", name=name, created_at=datetime(2026, 3, day, tzinfo=UTC))
    with tenant_scope(tenant_a.id):
        (user,) = people()
    assert (user.name, user.names) == ("Kim Possible", ["Kim Possible", "Kim"])
    add_message(tenant_a.id, "Hello", name="Kim")
    with tenant_scope(tenant_a.id):
        (user,) = people()
        assert PersonName.objects.filter(user_id=USER).count() == 2
    assert user.name == "Kim"


def test_only_valid_names_of_users_are_stored(
    tenant_a: Tenant, add_message: Callable[..., Message]
) -> None:
    message = add_message(tenant_a.id, "Hello", name=" ")
    add_message(tenant_a.id, "Hello", name="x" * (MAX_NAME_CHARACTERS + 1))
    add_message(tenant_a.id, "Hi", role="assistant", in_reply_to=message.pk, name="Iris")
    with tenant_scope(tenant_a.id):
        assert not PersonName.objects.exists()


def test_imported_turns_bring_names(tenant_a: Tenant) -> None:
    then = datetime(2026, 3, 1, tzinfo=UTC)
    turn = {"agent_id": AGENT, "thread_id": "t", "content": "Hi", "created_at": then}
    import_turns(
        tenant_a.id,
        [
            ImportedTurn(external_id="1", user_id="u1", role="user", name="Ann", **turn),
            ImportedTurn(external_id="2", user_id="u1", role="user", name="Ann", **turn),
            ImportedTurn(external_id="3", user_id="u1", role="assistant", name="Iris", **turn),
        ],
    )
    with tenant_scope(tenant_a.id):
        assert list(PersonName.objects.values_list("user_id", "name", "first_seen")) == [
            ("u1", "Ann", then)
        ]


def test_facts_count_only_while_they_are_active(
    tenant_a: Tenant, add_message: Callable[..., Message]
) -> None:
    add_message(tenant_a.id, "Hello")
    facts = LongTermMemory()
    for content in ("Sings.", "Dances."):
        facts.store(MemoryEntry(tenant_id=tenant_a.id, user_id=USER, content=content))
    with tenant_scope(tenant_a.id):
        MemoryEntry.objects.filter(content="Sings.").update(state="proposed")
        assert [user.facts for user in people()] == [1]
