"""The index rows of a message: complete and written once, also by concurrent writers."""

import random
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from memory.indexing import drain, index_messages
from memory.models import ConversationEmbedding, IndexedMessage, Message, Posting, Scope
from memory.models.recall import scope_number
from memory.text import lexical
from tenants import transaction
from tenants.context import connection, tenant_scope
from tenants.models import Tenant
from tests.memory.messages import AGENT, START, add_messages


def weights_of(message: Message) -> dict[int, float]:
    rows = Posting.objects.filter(message_number=message.number)
    return {posting.lexeme_hash: posting.weight for posting in rows}


def test_a_message_has_vectors_words_and_features(tenant_a: Tenant) -> None:
    text = (
        "My sister Zoe lives in Lisbon with two cats."
        " They all moved there together by train last spring."
    )
    (message,) = add_messages(tenant_a, text, name="Ann Lee")
    with tenant_scope(tenant_a.id):
        pieces = ConversationEmbedding.objects.order_by("piece")
        assert [(row.piece, row.content) for row in pieces] == [
            (0, "Ann Lee: My sister Zoe lives in Lisbon with two cats."),
            (1, "Ann Lee: They all moved there together by train last spring."),
        ]
        assert {(row.message_id, row.role, row.user_id) for row in pieces} == {
            (message.id, "user", "ann")
        }
        scope = Scope.objects.get()
        assert (scope.id, scope.agent_id, scope.user_id) == (
            scope_number(AGENT, "ann"),
            AGENT,
            "ann",
        )
        indexed = IndexedMessage.objects.get()
        assert (indexed.message_id, indexed.scope_id) == (message.id, scope.id)
        assert indexed.subject == lexical.lexeme_hash("ann")
        assert (indexed.by_user, indexed.words, indexed.has_time) == (True, 18, True)
        # ann lee, sister zoe live lisbon two cat, move togeth train last spring; @user, the date
        assert indexed.lexemes == 2 + 6 + 5 + 1 + 3
        for lexeme in ("sister", "lisbon", "ann", "march", "2024", "@user"):
            assert weights_of(message)[lexical.lexeme_hash(lexeme)] > 0


def test_repeated_indexing_changes_nothing(tenant_a: Tenant) -> None:
    messages = add_messages(tenant_a, "My sister lives in Lisbon.", "She has two cats.")
    with tenant_scope(tenant_a.id), transaction.atomic():
        tables = (ConversationEmbedding, IndexedMessage, Posting, Scope)
        before = [list(table.objects.order_by("pk").values()) for table in tables]
        index_messages(messages)
        assert [list(table.objects.order_by("pk").values()) for table in tables] == before


def test_empty_text_has_no_index_rows(tenant_a: Tenant) -> None:
    add_messages(tenant_a, " \n ")
    with tenant_scope(tenant_a.id):
        assert not ConversationEmbedding.objects.exists()
        assert IndexedMessage.objects.get().words == 0


def test_speakers_without_a_name_are_user_and_assistant(tenant_a: Tenant) -> None:
    add_messages(tenant_a, "I have moved to Lisbon.")
    add_messages(
        tenant_a, "How nice, how is it?", role="assistant", start=START + timedelta(hours=1)
    )
    with tenant_scope(tenant_a.id):
        contents = set(ConversationEmbedding.objects.values_list("content", flat=True))
    assert contents == {"User: I have moved to Lisbon.", "Assistant: How nice, how is it?"}


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_document_frequencies_are_exact_under_concurrent_writers(
    tenant_a: Tenant, run_concurrently: Callable[..., list[Any]]
) -> None:
    """Four writers drain one scope at once. Then every frequency is recounted from the texts."""
    chance = random.Random(11)
    words = [f"word{number}" for number in range(40)]
    messages = [
        message
        for thread in range(12)
        for message in add_messages(
            tenant_a,
            *(" ".join(chance.choices(words, k=6)) for _ in range(10)),
            thread=f"t{thread}",
            index=False,
        )
    ]

    stored = 0
    while stored < len(messages):
        stored += sum(run_concurrently(lambda _: drain(tenant_a.id, limit=60).stored, [0] * 4))
    expected = Counter(
        lexical.lexeme_hash(lexeme)
        for message in messages
        for lexeme in {
            *lexical.lexemes(f"User {message.content}"),
            *lexical.date_lexemes(message.created_at),
            "@user",
        }
    )
    with tenant_scope(tenant_a.id), connection.cursor() as cursor:
        cursor.execute(
            "SELECT lexeme_hash, count(*) FROM memory_posting WHERE scope_id = %s GROUP BY 1",
            [scope_number(AGENT, "ann")],
        )
        assert dict(cursor.fetchall()) == expected
        assert IndexedMessage.objects.count() == len(messages)
        assert ConversationEmbedding.objects.values("message").distinct().count() == len(messages)
        assert Scope.objects.count() == 1
