"""Messages that failed to embed: retried alone, with growing delays."""

import logging
from datetime import timedelta
from itertools import pairwise
from uuid import uuid4

import pytest
from django.utils import timezone

from memory import indexing
from memory.conversations.transcript import EMBEDDINGS
from memory.models import IndexedMessage, Message, Posting
from tenants.context import tenant_scope
from tests.jobs import claimable
from tests.memory.pending import make_due, sentence, stored, waiting


def job_of(tenant_id, content):
    with tenant_scope(tenant_id):
        return EMBEDDINGS.jobs([Message.objects.get(content=content).pk]).get()


def test_remaining_messages_of_a_failed_batch_are_retried_one_by_one(
    tenant_a, add_message, monkeypatch
):
    for number in range(3):
        add_message(tenant_a.id, sentence(number))
    seen = []

    def index(messages, embedded):
        seen.append(len(messages))
        raise SystemExit  # as if killed

    monkeypatch.setattr(indexing, "index_messages", index)
    for _ in range(2):
        with pytest.raises(SystemExit):
            indexing.drain(tenant_a.id)
    assert seen == [3, 1]
    with tenant_scope(tenant_a.id):
        assert sorted(EMBEDDINGS.jobs().values_list("attempts", flat=True)) == [1, 1, 2]


def test_failed_message_does_not_fail_others(tenant_a, add_message, failing, caplog):
    for number in range(5):
        add_message(tenant_a.id, sentence(number))
    add_message(tenant_a.id, "This is poison.")
    for number in range(5, 8):
        add_message(tenant_a.id, sentence(number))
    failing("poison")
    with caplog.at_level(logging.WARNING):
        assert indexing.drain(tenant_a.id) == indexing.DrainResult(stored=8, more=False)
    assert stored(tenant_a.id) == {sentence(number): 1 for number in range(8)}
    with tenant_scope(tenant_a.id):
        assert IndexedMessage.objects.count() == 8
        assert Posting.objects.values("message_number").distinct().count() == 8
    row = job_of(tenant_a.id, "This is poison.")
    assert (row.attempts, row.last_error) == (
        1,
        "An error inside Konstruct (ValueError). The operators' log says more.",
    )
    assert row.due_at > timezone.now()
    assert "will be tried again: ValueError: cannot index poison" in caplog.text
    assert caplog.text.count("A batch of 9 messages failed") == 1
    assert caplog.text.count("stored in halves: ValueError: cannot index poison") == 1


def test_failed_message_is_retried_with_growing_delays(tenant_a, add_message, failing, monkeypatch):
    add_message(tenant_a.id, "This is poison.")
    failing("poison")
    waits = []
    for attempt in range(1, 14):
        assert indexing.drain(tenant_a.id).stored == 0
        assert indexing.drain(tenant_a.id).stored == 0  # not due, so not tried
        row = job_of(tenant_a.id, "This is poison.")
        assert row.attempts == attempt
        waits.append((row.due_at - timezone.now()).total_seconds())
        make_due(tenant_a.id)
    assert all(a < b for a, b in pairwise(waits[:9]))
    assert 3500 < waits[-1] <= 3600
    monkeypatch.undo()
    assert indexing.drain(tenant_a.id).stored == 1
    assert (stored(tenant_a.id), waiting(tenant_a.id)) == ({"This is poison.": 1}, [])


def test_a_message_that_failed_can_be_tried_at_once(tenant_a, add_message, failing, monkeypatch):
    message = add_message(tenant_a.id, "This is poison.")
    failing("poison")
    indexing.drain(tenant_a.id)
    monkeypatch.undo()
    with tenant_scope(tenant_a.id):
        assert claimable(EMBEDDINGS) == []
        assert indexing.retry_now(message.id)
        assert claimable(EMBEDDINGS) == [message.id]
    assert indexing.drain(tenant_a.id, [message.id]).stored == 1


def test_a_message_that_kills_its_workers_is_tried_ever_more_rarely(
    tenant_a, add_message, monkeypatch
):
    """First with others, then alone, and then like a failed one."""
    add_message(tenant_a.id, "This is poison.")

    def index(messages, embedded):
        raise SystemExit  # as if killed

    monkeypatch.setattr(indexing, "index_messages", index)
    for attempts in (1, 2):
        with pytest.raises(SystemExit):
            indexing.drain(tenant_a.id)
        assert job_of(tenant_a.id, "This is poison.").attempts == attempts
    assert indexing.drain(tenant_a.id).stored == 0
    job = job_of(tenant_a.id, "This is poison.")
    assert (job.attempts, job.begun_at, job.error_code) == (2, None, "worker_lost")
    assert job.due_at > timezone.now() + timedelta(seconds=15)


def test_job_of_a_deleted_message_is_removed(tenant_a, add_message):
    with tenant_scope(tenant_a.id):
        EMBEDDINGS.enqueue(uuid4())
    add_message(tenant_a.id, sentence(1))
    assert indexing.drain(tenant_a.id) == indexing.DrainResult(stored=1, more=False)
    with tenant_scope(tenant_a.id):
        assert not EMBEDDINGS.jobs().exists()
