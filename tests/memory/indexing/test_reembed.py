"""Embedding again with another model: beside the old vectors, resumable, and each text once."""

from io import StringIO

import pytest
from django.core.management import call_command

from memory.embedding.embedder import get_embedder
from memory.facts import LongTermMemory
from memory.indexing import BATCH, reembed, reindex_words
from memory.models import ConversationEmbedding, MemoryEntry, PersonName, Posting
from memory.text.lexical import lexeme_hash
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests.database import as_owner
from tests.memory.messages import add_messages


class AnotherModel:
    """The real model under another name: only the version differs."""

    version = "another@0123456789ab"

    def __init__(self) -> None:
        self.embedded = 0
        self._model = get_embedder()
        self.max_tokens = self._model.max_tokens
        self.count_tokens = self._model.count_tokens

    def encode_batches(self, texts: list[str]) -> object:
        self.embedded += len(texts)
        return self._model.encode_batches(texts)


def versions(tenant: Tenant) -> dict[str, int]:
    with tenant_scope(tenant.id):
        rows = list(ConversationEmbedding.objects.values_list("embedding_model", flat=True))
    return {version: rows.count(version) for version in set(rows)}


def test_new_vectors_are_stored_beside_old_ones(tenant_a: Tenant) -> None:
    add_messages(tenant_a, "I moved to Lisbon.", " ", "I like tea.")
    assert list(reembed(tenant_a.id, AnotherModel())) == [
        (1, 3),
        (3, 3),
    ]
    assert versions(tenant_a) == {get_embedder().version: 2, AnotherModel.version: 2}


@pytest.mark.slow
def test_existing_vectors_are_not_computed_again(tenant_a: Tenant) -> None:
    add_messages(tenant_a, *(f"I bought {number} apples." for number in range(BATCH + 1)))
    model = AnotherModel()
    stopped = reembed(tenant_a.id, model)
    assert next(stopped) == (0, BATCH + 1)
    assert next(stopped) == (BATCH, BATCH + 1)
    stopped.close()
    assert list(reembed(tenant_a.id, model)) == [
        (BATCH, BATCH + 1),
        (BATCH + 1, BATCH + 1),
    ]
    assert model.embedded == BATCH + 1
    assert list(reembed(tenant_a.id, model)) == [(BATCH + 1, BATCH + 1)]


def test_other_tenants_are_left_alone(tenant_a: Tenant, tenant_b: Tenant) -> None:
    add_messages(tenant_a, "I moved to Lisbon.")
    add_messages(tenant_b, "I moved to Rome.")
    list(reembed(tenant_a.id, AnotherModel()))
    assert AnotherModel.version not in versions(tenant_b)


@pytest.mark.slow
def test_the_command_brings_facts_over_to_the_model_in_use(tenant_a: Tenant) -> None:
    memory = LongTermMemory()
    with tenant_scope(tenant_a.id):
        MemoryEntry.objects.bulk_create(
            MemoryEntry(
                content=f"Ann has {number} apples.",
                embedding=[1.0] + 383 * [0.0],
                embedding_model="older",
            )
            for number in range(300)
        )
    assert memory.search(tenant_a.id, "apples") == []
    out = StringIO()
    call_command("verify_memory", "--tenant", "tenant-a", stdout=out)
    assert "0 messages, 300 facts: run reembed" in out.getvalue()
    call_command("reembed", "--tenant", "tenant-a", stdout=out)
    assert "tenant-a: 300 facts" in out.getvalue().splitlines()
    assert len(memory.search(tenant_a.id, "apples", limit=400)) == 300


def hashes(tenant: Tenant) -> set[int]:
    with tenant_scope(tenant.id):
        return set(Posting.objects.values_list("lexeme_hash", flat=True))


@pytest.mark.django_db(transaction=True)
def test_words_and_names_are_written_again(tenant_a: Tenant, tenant_b: Tenant) -> None:
    add_messages(tenant_a, "Wir haben die Wohnungen gesehen.", "Das ist gut.", name="Jörg")
    add_messages(tenant_b, "Wir haben die Wohnungen gesehen.")
    written = hashes(tenant_a), hashes(tenant_b)
    with as_owner():
        with tenant_scope(tenant_a.id):
            changed = Posting.objects.filter(lexeme_hash=lexeme_hash("wohnung"))
            assert changed.update(lexeme_hash=lexeme_hash("wohnungen")) == 1
            assert PersonName.objects.update(folded="joerg") == 1
        assert list(reindex_words(tenant_a.id)) == [(0, 2), (2, 2)]
    assert (hashes(tenant_a), hashes(tenant_b)) == written
    with tenant_scope(tenant_a.id):
        assert PersonName.objects.get().folded == "jorg"


def test_a_message_without_frequent_words_has_the_language_of_the_turns_before(
    tenant_a: Tenant,
) -> None:
    add_messages(tenant_a, "Wir haben gestern viele Katzen gesehen.", "Wohnungen!")
    assert lexeme_hash("wohnung") in hashes(tenant_a)
    assert lexeme_hash("wohnungen") not in hashes(tenant_a)
