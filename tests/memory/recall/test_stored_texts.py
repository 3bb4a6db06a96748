"""Texts of `store_embedding` are recalled like messages, by every strategy, and are no turns."""

from collections import OrderedDict
from uuid import UUID

import pytest

from memory.embeddings import embed
from memory.long_term import store_embedding
from memory.models import ConversationEmbedding, IndexedMessage, Message
from memory.recall import recall, service as recall_module
from memory.recall.queries import LIMITS
from memory.short_term import get_recent_messages
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests.memory.messages import AGENT, add_messages
from tests.memory.recalled import SMALL_TALK, UNGATED, contents

SISTER = "My sister Zoe moved to Lisbon."
QUESTION = "Where does my sister live?"


def store(tenant: Tenant, *texts: str, user: str = "ann", role: str = "user") -> list[UUID]:
    vectors = embed(list(texts))
    return [
        store_embedding(tenant.id, AGENT, user, text, role, vector)
        for text, vector in zip(texts, vectors, strict=True)
    ]


@pytest.fixture(params=["whole", "quantized", "hnsw"])
def _strategy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every scope is read as a whole, scanned by signs, or walked by HNSW."""
    monkeypatch.setattr(recall_module, "_large_scopes", OrderedDict())
    monkeypatch.setitem(LIMITS, "whole_scope", 5000 if request.param == "whole" else 0)
    scanned = 5000 if request.param == "quantized" else 0
    monkeypatch.setitem(LIMITS, "scanned_at_least", scanned)
    monkeypatch.setitem(LIMITS, "scanned_to_root", 0)


@pytest.mark.usefixtures("_strategy")
def test_a_stored_text_is_found_among_messages(tenant_a: Tenant) -> None:
    add_messages(tenant_a, *SMALL_TALK)
    store(tenant_a, SISTER)
    store(tenant_a, "I noted that the sister of Ann is in Lisbon.", role="assistant")
    store(tenant_a, "My sister lives in Rome.", user="bob")
    found = recall(tenant_a.id, AGENT, "ann", QUESTION)
    first = found.hits[0]
    assert (first.content, first.role, first.name) == (SISTER, "user", "")
    assert "My sister lives in Rome." not in contents(found)
    (vector,) = embed([QUESTION])
    assert first.channels["cosine"] == pytest.approx(
        sum(a * b for a, b in zip(vector, embed([SISTER])[0], strict=True)), abs=1e-3
    )
    assert found.trace()["hits"][0]["message_id"] == str(first.message_id)
    without = recall(
        tenant_a.id, AGENT, "ann", QUESTION, policy=UNGATED, exclude=[first.message_id]
    )
    assert SISTER not in contents(without)
    assert any(hit.role == "assistant" for hit in without.hits)
    assert [cut.message_id for cut in without.cut if cut.reason == "excluded"] == [first.message_id]


def test_a_stored_text_is_a_message_of_its_channel_and_no_turn_of_the_window(
    tenant_a: Tenant,
) -> None:
    (row_id,) = store(tenant_a, SISTER)
    store(tenant_a, "Noted.", role="assistant")
    assert get_recent_messages(tenant_a.id, AGENT, "ann") == []
    with tenant_scope(tenant_a.id):
        row = ConversationEmbedding.objects.select_related("message").get(pk=row_id)
        assert row.message is not None
        assert (row.message.content, row.message.channel) == (SISTER, "stored")
        assert IndexedMessage.objects.count() == Message.objects.count() == 2
