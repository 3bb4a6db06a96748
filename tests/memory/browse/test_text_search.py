"""Finding messages by their words among all users of a tenant."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from memory.browse.search import search_messages
from memory.browse.threads import numbers_of_messages_with
from memory.conversations.importing import ImportedTurn, import_turns
from memory.indexing import embedding_jobs
from memory.models import Message
from tenants.context import tenant_scope
from tenants.models import Tenant

AGENT = UUID(int=1)
TEXTS = ("tea and cake", "tea", "cake", "coffee and cake", "tea, cake and coffee", "tea again")


@pytest.fixture
def numbers(tenant_a: Tenant) -> dict[tuple[str, str], int]:
    """Return the message numbers of three users, by user and text."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    turns = [
        ImportedTurn(
            external_id=f"{text} {user}",
            agent_id=AGENT,
            user_id=user,
            thread_id="t",
            role="user",
            content=text,
            created_at=start + timedelta(minutes=3 * place + offset),
        )
        for place, text in enumerate(TEXTS)
        for offset, user in enumerate(("ann", "bob", "eve"))
    ]
    import_turns(tenant_a.id, turns)
    embedding_jobs.drain(tenant_a.id)
    with tenant_scope(tenant_a.id):
        rows = Message.objects.values_list("user_id", "content", "number")
        return {(user, content): number for user, content, number in rows}


@pytest.mark.parametrize("asked", ["cake", "tea cake", "cake coffee tea", "coffee", "tea beer"])
@pytest.mark.parametrize("limit", [1, 4, 100])
def test_the_newest_that_hold_every_word_are_found(
    tenant_a: Tenant, numbers: dict[tuple[str, str], int], asked: str, limit: int
) -> None:
    expected = sorted(
        (
            number
            for (_, content), number in numbers.items()
            if all(word in content for word in asked.split())
        ),
        reverse=True,
    )
    with tenant_scope(tenant_a.id):
        assert numbers_of_messages_with(asked, limit=limit) == expected[:limit]


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("wir suchen eine schöne Wohnung mit einem Balkon", "Wohnungen"),
        ("mi hermana vive con dos gatas en la casa", "gata"),
        ("Мы купили новую книгу о море", "книги"),
        ("kediler bu ışıkta hiç uyumuyor", "KEDİ"),
        ("w domu jest nowe łóżko i szafa", "lozko"),
        ("اشتريتُ الكتابَ من هنا", "كتاب"),
        ("札幌の大学に通っています", "大学"),
        ("the wedding was in Lisbon", "weddings"),
    ],
)
def test_a_word_alone_finds_its_forms_in_any_language(
    tenant_a: Tenant, add_message: Callable[..., Message], said: str, asked: str
) -> None:
    message = add_message(tenant_a.id, said)
    add_message(tenant_a.id, "Something else was said in the meantime")
    with tenant_scope(tenant_a.id):
        assert numbers_of_messages_with(asked) == [message.number]
    embedding_jobs.drain(tenant_a.id)
    with tenant_scope(tenant_a.id):
        assert numbers_of_messages_with(asked) == [message.number]
        first, *_ = search_messages(asked).hits
    assert (first.message, first.words) == (message, 1.0)
