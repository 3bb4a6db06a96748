"""The queue of embeddings: each message is embedded exactly once."""

from datetime import timedelta
from uuid import UUID

import pytest
from django.utils import timezone
from psycopg.pq import TransactionStatus

from memory import indexing
from memory.conversations.transcript import EMBEDDINGS
from memory.embedding import embedder
from memory.indexing import DrainResult, drain, index_messages
from memory.models import ConversationEmbedding, IndexedMessage, Posting
from tenants import transaction
from tenants.context import connection, tenant_scope
from tests.memory.pending import sentence, stored, waiting

IDLE = TransactionStatus.IDLE
AGENT = UUID("0a9e0000-0000-4000-8000-000000000001")


def test_waiting_messages_are_embedded_and_their_jobs_removed(tenant_a, add_message):
    for number in range(3):
        add_message(tenant_a.id, sentence(number))
    assert drain(tenant_a.id) == DrainResult(stored=3, more=False)
    assert stored(tenant_a.id) == {sentence(number): 1 for number in range(3)}
    assert waiting(tenant_a.id) == []
    with tenant_scope(tenant_a.id):
        rows = list(ConversationEmbedding.objects.select_related("message"))
        assert all(
            (row.agent_id, row.user_id, row.role, row.tenant_id)
            == (row.message.agent_id, row.message.user_id, row.message.role, tenant_a.id)
            for row in rows
        )
        assert {row.embedding_model for row in rows} == {embedder.model_version()}
        assert IndexedMessage.objects.count() == 3
        assert Posting.objects.exists()


def test_repeated_task_stores_nothing_again(tenant_a, add_message):
    messages = [add_message(tenant_a.id, sentence(number)) for number in range(3)]
    ids = [message.id for message in messages]
    assert drain(tenant_a.id, ids).stored == 3
    assert drain(tenant_a.id, ids).stored == 0
    assert drain(tenant_a.id).stored == 0
    assert stored(tenant_a.id) == {sentence(number): 1 for number in range(3)}


def test_task_stores_overdue_messages_with_its_own(tenant_a, add_message, monkeypatch):
    monkeypatch.setattr(indexing, "OUTBOX_BATCH", 3)
    overdue = [add_message(tenant_a.id, sentence(number)) for number in range(5)]
    with tenant_scope(tenant_a.id):
        for number, message in enumerate(overdue):
            due_at = timezone.now() - timedelta(minutes=5 - number)
            EMBEDDINGS.jobs([message.id]).update(due_at=due_at, sweep_at=due_at)
    own, in_time = add_message(tenant_a.id, sentence(5)), add_message(tenant_a.id, sentence(6))
    batches = []

    def index(messages, embedded):
        batches.append([message.id for message in sorted(messages, key=lambda row: row.number)])
        index_messages(messages, embedded)

    monkeypatch.setattr(indexing, "index_messages", index)
    # One batch, of its own message and the oldest: tasks of other tenants are waiting.
    assert drain(tenant_a.id, [own.id]) == DrainResult(stored=3, more=False)
    assert batches == [[message.id for message in (*overdue[:2], own)]]
    # A task whose message was stored in another batch takes the rest.
    assert drain(tenant_a.id, [own.id]).stored == 3
    assert waiting(tenant_a.id) == [in_time.content]


@pytest.mark.parametrize("text", ["", "\n", "😀", "你好。再见。", "x" * 32_000])
def test_any_text_can_be_stored(tenant_a, add_message, text):
    add_message(tenant_a.id, text)
    assert drain(tenant_a.id) == DrainResult(stored=1, more=False)
    assert waiting(tenant_a.id) == []


@pytest.fixture
def computing(monkeypatch):
    """The states of the connection when the model computes, and a function to call at that time."""
    model, encode = embedder.get_embedder(), embedder.Embedder.encode_batches
    states, meanwhile = [], []

    def encode_batches(self, texts):
        info = connection.connection and connection.connection.info
        states.append((connection.in_atomic_block, info.transaction_status if info else IDLE))
        if meanwhile:
            meanwhile.pop()()
        return encode(self, texts)

    monkeypatch.setattr(type(model), "encode_batches", encode_batches)
    return states, meanwhile


@pytest.mark.django_db(transaction=True)
def test_no_transaction_is_open_while_the_model_computes(tenant_a, add_message, computing):
    states, meanwhile = computing
    for number in range(3):
        add_message(tenant_a.id, sentence(number))
    # Another worker finds nothing to do.
    others = []
    meanwhile.append(lambda: others.append(drain(tenant_a.id)))
    assert drain(tenant_a.id).stored == 3
    assert others == [DrainResult(stored=0, more=False)]
    assert states == [(False, IDLE)]


@pytest.mark.django_db(transaction=True)
def test_a_worker_whose_lease_has_ended_writes_nothing(tenant_a, add_message, computing):
    _, meanwhile = computing
    add_message(tenant_a.id, sentence(1))

    def end_lease():
        with tenant_scope(tenant_a.id):
            EMBEDDINGS.jobs().update(leased_until=None)
        assert drain(tenant_a.id).stored == 1

    meanwhile.append(end_lease)
    assert drain(tenant_a.id).stored == 0
    assert (stored(tenant_a.id), waiting(tenant_a.id)) == ({sentence(1): 1}, [])


@pytest.mark.django_db(transaction=True)
def test_messages_claimed_by_another_worker_are_skipped(tenant_a, add_message, run_concurrently):
    held, free = add_message(tenant_a.id, sentence(1)), add_message(tenant_a.id, sentence(2))
    with tenant_scope(tenant_a.id), transaction.atomic():
        list(EMBEDDINGS.jobs([held.pk]).select_for_update())
        assert run_concurrently(lambda _: drain(tenant_a.id).stored, [1]) == [1]
    assert waiting(tenant_a.id) == [held.content]
    assert stored(tenant_a.id) == {free.content: 1}
