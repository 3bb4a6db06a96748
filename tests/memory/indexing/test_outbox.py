"""The outbox: each message is embedded exactly once, whatever fails."""

import logging
from datetime import timedelta
from itertools import pairwise
from uuid import UUID, uuid4

import pytest
from asgiref.sync import async_to_sync
from celery.exceptions import SoftTimeLimitExceeded
from django.db import OperationalError, transaction
from django.db.models import F
from django.utils import timezone

from memory.conf import OUTBOX_SUSPECT
from memory.embedding import embedder
from memory.exceptions import EmbeddingModelError
from memory.indexing import outbox
from memory.indexing.outbox import UNFINISHED, Drained, adrain, drain, retry_now
from memory.indexing.service import index_messages
from memory.models import (
    ConversationEmbedding,
    IndexedMessage,
    PendingEmbedding,
    Posting,
    RecallEvent,
)
from tenants.context import tenant_scope
from tenants.exceptions import InvalidTenantId, TenantPinned, UnknownTenant
from tests.memory.pending import TRACE, make_due, sentence, stored, waiting
from tests.outbox import claimed

AGENT = UUID("0a9e0000-0000-4000-8000-000000000001")


def pending(tenant_id, content):
    with tenant_scope(tenant_id):
        return PendingEmbedding.objects.get(message__content=content)


@pytest.fixture
def failing(monkeypatch):
    """Let the indexing of texts that hold a word fail: ``failing("poison")``."""

    def fail(word, error=ValueError):
        def index(messages):
            index_messages(messages)
            if any(word in message.content for message in messages):
                raise error(f"cannot index {word}")

        monkeypatch.setattr(outbox, "index_messages", index)

    return fail


def test_what_waits_is_stored_and_waits_no_more(tenant_a, say):
    for number in range(3):
        say(tenant_a.id, sentence(number))
    assert drain(tenant_a.id) == Drained(stored=3, more=False)
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


def test_nothing_waits_nothing_is_done(tenant_a):
    assert drain(tenant_a.id) == Drained(stored=0, more=False)


def test_twice_is_once(tenant_a, say):
    messages = [say(tenant_a.id, sentence(number)) for number in range(3)]
    ids = [message.id for message in messages]
    assert drain(tenant_a.id, ids).stored == 3
    assert drain(tenant_a.id, ids).stored == 0
    assert drain(tenant_a.id).stored == 0
    assert stored(tenant_a.id) == {sentence(number): 1 for number in range(3)}


def test_only_the_messages_asked_for_are_taken(tenant_a, say):
    first, second = say(tenant_a.id, sentence(1)), say(tenant_a.id, sentence(2))
    assert drain(tenant_a.id, [str(second.id), uuid4()]) == Drained(stored=1, more=False)
    assert waiting(tenant_a.id) == [first.content]
    assert drain(tenant_a.id, []) == Drained(stored=0, more=False)
    assert waiting(tenant_a.id) == [first.content]


def test_a_limit_leaves_the_rest_for_the_next_task(tenant_a, say, monkeypatch):
    monkeypatch.setattr(outbox, "OUTBOX_BATCH", 2)
    for number in range(7):
        say(tenant_a.id, sentence(number))
    assert drain(tenant_a.id, limit=3) == Drained(stored=3, more=True)
    assert drain(tenant_a.id, limit=3) == Drained(stored=3, more=True)
    assert drain(tenant_a.id, limit=3) == Drained(stored=1, more=False)
    assert len(stored(tenant_a.id)) == 7


def test_a_task_takes_what_is_overdue_with_its_own(tenant_a, say, monkeypatch):
    monkeypatch.setattr(outbox, "OUTBOX_BATCH", 3)
    overdue = [say(tenant_a.id, sentence(number)) for number in range(5)]
    with tenant_scope(tenant_a.id):
        for number, message in enumerate(overdue):
            due_at = timezone.now() - timedelta(minutes=5 - number)
            PendingEmbedding.objects.filter(pk=message.id).update(due_at=due_at)
    own, in_time = say(tenant_a.id, sentence(5)), say(tenant_a.id, sentence(6))
    taken = []

    def index(messages):
        taken.append([message.id for message in messages])
        index_messages(messages)

    monkeypatch.setattr(outbox, "index_messages", index)
    # Its own first, then one batch of the oldest: other tenants' tasks wait behind this one.
    assert drain(tenant_a.id, [own.id]) == Drained(stored=4, more=False)
    assert taken == [[own.id], [message.id for message in overdue[:3]]]
    # One whose message was stored with another's finds the rest.
    assert drain(tenant_a.id, [own.id]).stored == 2
    assert waiting(tenant_a.id) == [in_time.content]


def test_alone_what_is_overdue_is_noted_before_it_is_begun_too(tenant_a, say, monkeypatch):
    """A task may have died over what it took besides its own."""
    say(tenant_a.id, "This is poison.")
    make_due(tenant_a.id)
    own = say(tenant_a.id, sentence(1))

    def index(messages):
        if any("poison" in message.content for message in messages):
            raise SystemExit  # as good as killed
        index_messages(messages)

    monkeypatch.setattr(outbox, "index_messages", index)
    with pytest.raises(SystemExit):
        drain(tenant_a.id, [own.id])
    with pytest.raises(SystemExit):
        drain(tenant_a.id, [own.id], alone=True)
    row = pending(tenant_a.id, "This is poison.")
    assert (row.attempts, row.last_error) == (1, UNFINISHED)
    assert drain(tenant_a.id, [own.id]) == Drained(stored=0, more=False)


def test_what_a_batch_was_begun_with_and_still_stands_is_tried_by_itself(
    tenant_a, say, monkeypatch
):
    """A worker that was killed lately may have been killed for anything: once, nothing is noted."""
    for number in range(3):
        say(tenant_a.id, sentence(number))
    seen = []

    def index(messages):
        seen.append(len(messages))
        raise SystemExit  # as good as killed

    monkeypatch.setattr(outbox, "index_messages", index)
    for age in (timedelta(0), timedelta(0), OUTBOX_SUSPECT):
        with tenant_scope(tenant_a.id):
            PendingEmbedding.objects.update(begun_at=F("begun_at") - age)
        with pytest.raises(SystemExit):
            drain(tenant_a.id)
    assert seen == [3, 3, 1]
    with tenant_scope(tenant_a.id):
        assert sorted(PendingEmbedding.objects.values_list("attempts", flat=True)) == [0, 0, 1]


def test_a_time_limit_ends_a_batch_and_what_was_in_it_is_tried_by_itself(
    tenant_a, say, monkeypatch
):
    for number in range(4):
        say(tenant_a.id, sentence(number))

    def index(messages):
        if any(message.content == sentence(2) for message in messages):
            raise SoftTimeLimitExceeded
        index_messages(messages)

    monkeypatch.setattr(outbox, "index_messages", index)
    with pytest.raises(SoftTimeLimitExceeded):
        drain(tenant_a.id)
    with pytest.raises(SoftTimeLimitExceeded):
        drain(tenant_a.id, alone=True)
    row = pending(tenant_a.id, sentence(2))
    assert (row.attempts, row.last_error) == (
        1,
        "It took longer than a worker may take, and was stopped.",
    )
    drain(tenant_a.id)
    assert [sentence(2)] == waiting(tenant_a.id)


def test_only_this_tenants_messages_are_taken(tenant_a, tenant_b, say):
    for tenant in (tenant_a, tenant_b):
        say(tenant.id, sentence(1))
    assert drain(tenant_a.id).stored == 1
    assert waiting(tenant_b.id) == [sentence(1)]
    assert stored(tenant_b.id) == {}
    with tenant_scope(tenant_a.id, pinned=True), pytest.raises(TenantPinned):
        drain(tenant_b.id)


def test_no_tenant_no_outbox(db):
    with pytest.raises(InvalidTenantId):
        drain("acme")
    with pytest.raises(UnknownTenant):
        drain(uuid4())


def test_what_was_recalled_for_a_reply_becomes_an_event_once(tenant_a, say):
    message = say(tenant_a.id, "Where does my sister live?")
    reply = say(
        tenant_a.id,
        "She lives in Lisbon.",
        role="assistant",
        in_reply_to=message.id,
        recall_trace=TRACE,
    )
    drain(tenant_a.id)
    drain(tenant_a.id)
    with tenant_scope(tenant_a.id):
        event = RecallEvent.objects.get()
    assert (event.reply_id, event.agent_id, event.user_id) == (reply.id, AGENT, "U024BE7LH")
    assert {field: getattr(event, field) for field in TRACE} == TRACE


def test_a_trace_from_before_prompts_were_kept_becomes_an_event_without_one(tenant_a, say):
    before = {name: TRACE[name] for name in TRACE if name not in ("facts", "prompt")}
    say(tenant_a.id, "In Lisbon.", role="assistant", recall_trace=before)
    drain(tenant_a.id)
    with tenant_scope(tenant_a.id):
        event = RecallEvent.objects.get()
    assert (event.facts, event.prompt) == ([], None)


def test_a_message_of_many_sentences_is_wholly_stored_once(tenant_a, say):
    say(tenant_a.id, " ".join(sentence(number) for number in range(40)))
    drain(tenant_a.id)
    (pieces,) = stored(tenant_a.id).values()
    with tenant_scope(tenant_a.id):
        rows = ConversationEmbedding.objects.order_by("piece").values_list("piece", "content")
        positions, texts = zip(*rows, strict=True)
    assert positions == tuple(range(pieces))
    assert all(any(sentence(number) in text for text in texts) for number in range(40))


@pytest.mark.parametrize("text", ["", " ", "\n", "?", "😀", "ok", "你好。再见。", "x" * 32_000])
def test_any_text_can_be_stored(tenant_a, say, text):
    say(tenant_a.id, text)
    assert drain(tenant_a.id) == Drained(stored=1, more=False)
    assert waiting(tenant_a.id) == []


# --- failures -------------------------------------------------------------------------------------


def test_one_that_fails_takes_no_other_with_it(tenant_a, say, failing, caplog):
    for number in range(5):
        say(tenant_a.id, sentence(number))
    say(tenant_a.id, "This is poison.")
    for number in range(5, 8):
        say(tenant_a.id, sentence(number))
    failing("poison")
    with caplog.at_level(logging.WARNING, logger="memory"):
        assert drain(tenant_a.id) == Drained(stored=8, more=False)
    assert stored(tenant_a.id) == {sentence(number): 1 for number in range(8)}
    row = pending(tenant_a.id, "This is poison.")
    assert (row.attempts, row.last_error) == (
        1,
        "An error inside Konstruct (ValueError). The operators' log says more.",
    )
    assert row.due_at > timezone.now()
    assert "could not be embedded: cannot index poison" in caplog.text


def test_what_failed_waits_ever_longer_and_is_stored_when_it_can_be(
    tenant_a, say, failing, monkeypatch
):
    say(tenant_a.id, "This is poison.")
    failing("poison")
    waits = []
    for attempt in range(1, 14):
        assert drain(tenant_a.id).stored == 0
        assert drain(tenant_a.id).stored == 0  # not due: not tried
        row = pending(tenant_a.id, "This is poison.")
        assert row.attempts == attempt
        waits.append((row.due_at - timezone.now()).total_seconds())
        make_due(tenant_a.id)
    assert all(a < b for a, b in pairwise(waits[:9]))
    assert 3500 < waits[-1] <= 3600
    monkeypatch.undo()
    assert drain(tenant_a.id).stored == 1
    assert (stored(tenant_a.id), waiting(tenant_a.id)) == ({"This is poison.": 1}, [])


def test_a_failure_leaves_no_half(tenant_a, say, failing):
    say(tenant_a.id, "This is poison.")
    failing("poison")
    drain(tenant_a.id)
    with tenant_scope(tenant_a.id):
        assert ConversationEmbedding.objects.count() == 0
        assert Posting.objects.count() == IndexedMessage.objects.count() == 0


def test_an_error_of_the_database_is_isolated_too(tenant_a, say, failing):
    say(tenant_a.id, sentence(1))
    say(tenant_a.id, "This is poison.")
    failing("poison", OperationalError)
    assert drain(tenant_a.id).stored == 1
    assert pending(tenant_a.id, "This is poison.").last_error == (
        "An error inside Konstruct (OperationalError). The operators' log says more."
    )


def test_a_bad_trace_is_seen_and_can_be_tried_again(tenant_a, say):
    say(tenant_a.id, sentence(1), recall_trace={"query": "no more than this"})
    assert drain(tenant_a.id).stored == 0
    assert (
        pending(tenant_a.id, sentence(1)).last_error
        == "An error inside Konstruct (KeyError). The operators' log says more."
    )


def test_a_message_that_failed_can_be_tried_at_once(tenant_a, say, failing, monkeypatch):
    message = say(tenant_a.id, "This is poison.")
    failing("poison")
    drain(tenant_a.id)
    monkeypatch.undo()
    with tenant_scope(tenant_a.id):
        assert claimed(outbox.EMBEDDINGS) == []
        assert retry_now([message.id]) == 1
        assert claimed(outbox.EMBEDDINGS) == [message.id]
    assert drain(tenant_a.id, [message.id]).stored == 1


def test_a_model_that_does_not_load_is_said_on_the_rows(tenant_a, say, monkeypatch):
    say(tenant_a.id, sentence(1))

    def fail():
        raise EmbeddingModelError("the weights are gone")

    monkeypatch.setattr(outbox, "get_embedder", fail)
    with pytest.raises(EmbeddingModelError):
        drain(tenant_a.id)
    row = pending(tenant_a.id, sentence(1))
    assert (row.attempts, row.last_error) == (0, EmbeddingModelError.public)
    monkeypatch.undo()  # or another host, whose model loads: it need not wait
    assert drain(tenant_a.id).stored == 1


def test_alone_each_message_is_noted_before_it_is_begun(tenant_a, say, monkeypatch):
    for number in range(3):
        say(tenant_a.id, sentence(number))
    seen = []

    def index(messages):
        seen.append([message.content for message in messages])
        if messages[0].content == sentence(1):
            raise SystemExit  # as good as killed: nothing of ours runs after it
        index_messages(messages)

    monkeypatch.setattr(outbox, "index_messages", index)
    with pytest.raises(SystemExit):
        drain(tenant_a.id, alone=True)
    assert seen == [[sentence(0)], [sentence(1)]]
    row = pending(tenant_a.id, sentence(1))
    assert (row.attempts, row.last_error) == (1, UNFINISHED)
    assert row.due_at > timezone.now()
    assert drain(tenant_a.id, alone=True).stored == 1  # the culprit waits, the last is stored
    assert waiting(tenant_a.id) == [sentence(1)]


# --- many workers ---------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_many_workers_store_each_message_once(tenant_a, say, at_once, monkeypatch):
    monkeypatch.setattr(outbox, "OUTBOX_BATCH", 5)
    for number in range(40):
        say(tenant_a.id, sentence(number))
    done = at_once(lambda _: drain(tenant_a.id).stored, list(range(4)))
    assert sum(done) == 40
    assert stored(tenant_a.id) == {sentence(number): 1 for number in range(40)}
    assert waiting(tenant_a.id) == []


@pytest.mark.django_db(transaction=True)
def test_what_another_worker_holds_is_left_to_it(tenant_a, say, at_once):
    held, free = say(tenant_a.id, sentence(1)), say(tenant_a.id, sentence(2))
    with tenant_scope(tenant_a.id), transaction.atomic():
        list(PendingEmbedding.objects.filter(pk=held.pk).unlocked())
        assert at_once(lambda _: drain(tenant_a.id).stored, [1]) == [1]
    assert waiting(tenant_a.id) == [held.content]
    assert stored(tenant_a.id) == {free.content: 1}


@pytest.mark.django_db(transaction=True)
def test_the_asynchronous_twin_does_the_same(tenant_a, say):
    say(tenant_a.id, sentence(1))
    assert async_to_sync(adrain)(tenant_a.id) == Drained(stored=1, more=False)
