"""Messages before a link follow the person: all of them, exactly, after any number of starts."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django_redis import get_redis_connection

from konstruct.consistency import verify
from konstruct.orchestrator import pipeline, replies
from konstruct.orchestrator.handoff import escalations
from konstruct.orchestrator.identities import channel_identities
from konstruct.orchestrator.identities.erasure_requests import request_erasure
from konstruct.orchestrator.models import Agent, Escalation, HistoryMerge, ToolCall
from konstruct.orchestrator.pipeline import respond
from konstruct.orchestrator.pipeline.accept import Incoming, accept, read_snapshot
from konstruct.orchestrator.pipeline.respond import Draft
from konstruct.privacy import jobs
from konstruct.privacy.erasure.erasing import carry_out as erase
from konstruct.privacy.jobs import merge_histories
from memory import indexing
from memory.conversations.short_term import clear_window, get_recent_messages
from memory.conversations.transcript import ImportedTurn, import_turns
from memory.facts import LongTermMemory
from memory.long_term import store_embedding
from memory.models import (
    Conversation,
    ConversationEmbedding,
    ConversationItem,
    MemoryEntry,
    Message,
    Posting,
    RecallEvent,
    Scope,
)
from memory.models.recall import scope_number
from memory.recall import recall
from tenants.audit.access_log import Actor, record_access
from tenants.audit.models import AccessEvent, Action, ActorKind, about_people
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests import database
from tests.konstruct.conftest import SendMessage
from tests.konstruct.privacy.conftest import save_session
from tests.konstruct.privacy.erasure.test_erasure import helped

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

NOW = timedelta(0)
EVA = Actor(ActorKind.PERSON, "1", "eva")


@pytest.fixture
def populated(tenant_a: Tenant, agent: Agent, send_message: SendMessage) -> Iterator[Tenant]:
    """Create messages of the identity U1 and of the user maria before their link."""
    with tenant_scope(tenant_a.id):
        identity = channel_identities.identity_of("slack", "T1", "U1")
    first = send_message("My dog is called Rex.", "U1", "dm")
    send_message("I live in Lisbon.", "maria", "t")
    clear_window(tenant_a.id, agent.id, "maria")
    send_message("My dog is three years old.", "U1", "dm")
    clear_window(tenant_a.id, agent.id, "U1")
    send_message("I am allergic to walnuts.", "maria", "t")
    send_message("And my cat is called Tom.", "U1", "dm")
    store_embedding(tenant_a.id, agent.id, "U1", "Directly.", "user", [1.0] * 384)
    facts = LongTermMemory()
    for user, content in (("U1", "Has a dog."), ("U1", "Has a cat."), ("maria", "Has a dog.")):
        entry = MemoryEntry(tenant_id=tenant_a.id, agent_id=agent.id, user_id=user, content=content)
        stored = facts.store(entry)
        facts.update(stored, tenant_a.id, metadata={"topic": "pets"})
    turn = {"thread_id": "old", "role": "user", "name": "", "created_at": first.created_at}
    import_turns(
        tenant_a.id,
        [
            ImportedTurn(external_id="e1", agent_id=agent.id, user_id=user, content=user, **turn)
            for user in ("U1", "maria")
        ],
    )
    indexing.drain(tenant_a.id)
    save_session(tenant_a, "dm", "Session.")
    with tenant_scope(tenant_a.id):
        record_access(Action.VIEW, "person", by=EVA, user_id="U1")
        Conversation.objects.create(
            agent_id=agent.id, user_id="U1", thread_id="dm", title="Pets", metadata={"n": 1}
        )
        helped(first, "U1")
        thread = escalations.Thread(agent.id, "U1", "dm")
        escalations.open_escalation(
            thread, opened_by=Escalation.OpenedBy.PERSON, name="eva", reason="Mine."
        )
        assert escalations.current_escalation(thread) is not None
        channel_identities.link(identity, "maria", by="eva")
        get_recent_messages(tenant_a.id, agent.id, "maria")
        yield tenant_a


def counts() -> dict[str, int]:
    models: tuple[Any, ...] = (
        Message, Conversation, ConversationItem, ConversationEmbedding, Posting, RecallEvent,
        MemoryEntry, ToolCall, Escalation,
    )  # fmt: skip
    return {model.__name__: model.objects.count() for model in models}


def move(tenant: Tenant, *, min_age: timedelta = NOW) -> bool:
    with database.as_owner(), tenant_scope(tenant.id):
        done = [merge_histories(merge, min_age=min_age) for merge in HistoryMerge.objects.open()]
        return all(done)


def test_all_messages_are_merged_without_loss(
    populated: Tenant, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = counts()
    monkeypatch.setattr(jobs, "MIN_AGE", NOW)
    with database.as_owner():
        assert jobs.MERGE.run_due() == 2
    assert counts() == before
    assert set(Message.objects.values_list("user_id", flat=True)) == {"maria"}
    assert set(Scope.objects.values_list("user_id", flat=True)) == {"maria"}
    assert set(Posting.objects.values_list("scope_id", flat=True)) == {
        scope_number(agent.id, "maria")
    }
    assert verify(populated.id, "a").findings == []
    hits = recall(populated.id, agent.id, "maria", "What is my dog called?").hits
    assert "My dog is called Rex." in [hit.content for hit in hits]
    assert recall(populated.id, agent.id, "U1", "What is my dog called?").hits == ()
    # Messages before a clear of either stay cleared, and later ones of both are one window.
    window = [turn["content"] for turn in get_recent_messages(populated.id, agent.id, "maria")]
    assert "I live in Lisbon." not in window
    assert "My dog is three years old." not in window
    assert window.index("I am allergic to walnuts.") < window.index("And my cat is called Tom.")
    facts = MemoryEntry.objects.entries().values_list("user_id", "content")
    assert sorted(facts) == [("maria", "Has a cat."), ("maria", "Has a dog.")]
    assert Message.objects.filter(external_id="e1").count() == 1
    assert Message.objects.filter(external_id__startswith="e1#").count() == 1
    assert escalations.current_escalation(escalations.Thread(agent.id, "maria", "dm")) is not None
    assert escalations.current_escalation(escalations.Thread(agent.id, "U1", "dm")) is None
    assert AccessEvent.objects.filter(about_people("maria"), subject="earlier messages").exists()
    done = HistoryMerge.objects.get(from_user="U1")
    assert (done.done_at is not None, done.moved["memory_message"]) == (True, 8)
    keys = get_redis_connection("default").keys("*memory:short*")
    assert [key for key in keys if key.endswith(b":U1")] == []

    # Erasing the person finds all of them, including waiting messages.
    accept(Incoming(agent.id, "U9", "t9", "rest", "I am Maria."), tenant_id=populated.id)
    channel_identities.link(channel_identities.identity_of("slack", "T1", "U9"), "maria", by="eva")
    with database.as_owner(), tenant_scope(populated.id):
        receipt = erase(request_erasure("maria", by=EVA)).receipt
    assert receipt is not None
    assert receipt["left"] == 0
    assert not Message.objects.exists()
    assert not HistoryMerge.objects.exists()


def test_late_rows_of_the_old_id_are_merged_unless_unlinked(
    populated: Tenant, agent: Agent
) -> None:
    assert not move(populated, min_age=timedelta(hours=1))
    late, _ = accept(Incoming(agent.id, "U1", "late", "rest", "Late."), tenant_id=populated.id)
    answered = read_snapshot(late.id)
    lease = replies.REPLIES.lease(late.id)
    assert lease is not None
    draft = Draft(agent, "Noted.")
    assert move(populated)
    # A worker that started with the old id leaves the message to a new attempt.
    respond.write_reply(answered, draft, lease)
    assert not Message.objects.filter(in_reply_to=late).exists()
    pipeline.handle(tenant_id=populated.id, message_id=late.id)
    assert Message.objects.get(in_reply_to=late).user_id == "maria"
    indexing.drain(populated.id)
    assert verify(populated.id, "a").findings == []

    identity = channel_identities.unlink(channel_identities.identity_of("slack", "T1", "U1"))
    channel_identities.link(identity, "maria", by="eva")
    accept(Incoming(agent.id, "U1", "late", "rest", "Mine."), tenant_id=populated.id)
    channel_identities.unlink(identity)
    assert move(populated)
    assert Message.objects.get(content="Mine.").user_id == "U1"
