"""Erasing one message, or a conversation: none of its data is left, and other data stays."""

import json
from typing import Any

import pytest
from django.db.models.functions import Now
from django_redis import get_redis_connection

from konstruct.api.auth.keys import issue_key
from konstruct.api.models import KeyScope
from konstruct.channels import delivery as deliveries
from konstruct.consistency import verify
from konstruct.orchestrator.extraction import runs
from konstruct.orchestrator.models import Agent, AnswerOptions, Escalation, ExtractionRun, ModelCall
from konstruct.orchestrator.tool_catalog import TOOLS, ToolContext
from konstruct.privacy import jobs
from konstruct.privacy.erasure.erasing import carry_out
from memory import indexing as embeddings
from memory.conversations.short_term import get_recent_messages
from memory.conversations.transcript import add_items, copy_for_agent
from memory.models import MemoryEntry, Message, RecallEvent
from memory.recall import recall
from memory.recall.policy import RecallPolicy
from tenants.audit.models import AccessEvent, Action, MessageErasure
from tenants.context import tenant_scope
from tenants.models import Tenant
from tenants.redis_keys import partial_reply_key
from tests import database
from tests.konstruct.conftest import MESSAGES, Program, SendMessage
from tests.konstruct.orchestrator.extraction.conftest import fact
from tests.konstruct.privacy.erasure.test_erasing_exactly import EVA
from tests.konstruct.privacy.erasure.test_erasure import everything
from tests.memory.recall_traces import fact_of, prompt_of, store_trace, trace_of
from tests.servers.llm import Answer, LLMServer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("files_left_alone"),
]

SECRET = "walnuts"
STATEMENT = f"I am allergic to {SECRET}, and it matters to me."
TRANSCRIPT = "/api/v1/conversations/transcript/"


@pytest.fixture
def eraser(tenant_a: Tenant, agent: Agent) -> Program:
    _, key = issue_key(tenant_id=tenant_a.id, name="eraser", scopes=KeyScope.values)
    return Program(tenant_a, agent, str(key))


@pytest.fixture
def target(tenant_a: Tenant, agent: Agent, send_message: SendMessage) -> Message:
    """Create a message with derived rows of every kind, between others."""
    send_message("My sister lives in Porto.", thread_id="t")
    target = send_message(
        STATEMENT, thread_id="t", metadata={"label": SECRET, "about": {SECRET: 1}}
    )
    send_message("Good morning.", thread_id="t")
    last = send_message("And what was it before?", thread_id="other")
    with tenant_scope(tenant_a.id):
        history = [{"role": "user", "content": STATEMENT}, {"role": "assistant", "content": "Yes."}]
        AnswerOptions.objects.create(message=last, options={}, history=history)
        context = ToolContext(agent.id, "maria", target.pk)
        TOOLS["remember_fact"].run({"fact": f"Maria avoids {SECRET}."}, context)
        Escalation.objects.create(
            agent_id=agent.id, user_id="maria", thread_id="t", channel="rest", message_id=target.pk,
            opened_by="user", reason=STATEMENT, resolved_at=Now(),
        )  # fmt: skip
        deliveries.enqueue(target, channel="slack", address={})
        items = [({"said": STATEMENT}, target.pk), ({"call": "Of the thread."}, None)]
        add_items(agent.id, "maria", "t", items)
        bo = Agent.objects.create(name="bo")
        copy_for_agent([target.pk], bo.id)
        ModelCall.objects.create(agent_id=agent.id, purpose="reply", message=target)
        get_redis_connection("default").xadd(
            partial_reply_key(tenant_a.id, target.id), {"text": SECRET}
        )
    embeddings.drain(tenant_a.id)
    get_recent_messages(tenant_a.id, agent.id, "maria")
    return target


def erase(tenant: Tenant) -> None:
    """Run the erasure as the owner, and the jobs that follow."""
    with database.as_owner():
        assert jobs.ERASE_MESSAGES.run_due() == 1
    embeddings.drain(tenant.id)


def contents(tenant: Tenant, **filters: Any) -> list[str]:
    with tenant_scope(tenant.id):
        rows = Message.objects.filter(role="user", **filters).order_by("number")
        return list(rows.values_list("content", flat=True))


def test_erased_message_leaves_no_data(
    tenant_a: Tenant, agent: Agent, target: Message, eraser: Program
) -> None:
    with tenant_scope(tenant_a.id):
        reply = Message.objects.get(in_reply_to=target)
        others = RecallEvent.objects.exclude(reply=reply).count()
    assert SECRET in everything(tenant_a)
    address = f"{MESSAGES}{target.pk}/?reason=asked+by+mail"
    answer = eraser.request("DELETE", address)
    assert answer.status_code == 202, answer.content
    # A repeated request returns the same one.
    assert eraser.request("DELETE", address).json() == answer.json()
    erase(tenant_a)

    left = everything(tenant_a).splitlines()
    assert [line for line in left if SECRET in line] == []
    assert [line for line in left if str(reply.pk) in line] == []
    lines = [line.split(":")[0] for line in left if str(target.pk) in line]
    assert set(lines) <= {"audit_accessevent", "audit_messageerasure"}
    receipt = eraser.get(answer.headers["Location"]).json()
    assert (receipt["state"], receipt["reason"]) == ("done", "asked by mail")
    assert receipt["receipt"]["tables"]["memory_message"]["removed"] == 3  # and the copy
    assert receipt["receipt"]["tables"]["memory_memoryentry"]["removed"] == 1
    assert eraser.get(f"{MESSAGES}{target.pk}/").status_code == 404
    assert eraser.request("DELETE", address).status_code == 404

    assert contents(tenant_a, thread_id="t") == [
        "My sister lives in Porto.", "Good morning.",
    ]  # fmt: skip
    window = get_recent_messages(tenant_a.id, agent.id, "maria")
    assert [turn["content"] for turn in window if turn["role"] == "user"] == contents(tenant_a)
    found = recall(
        tenant_a.id, agent.id, "maria", f"Which {SECRET}?", policy=RecallPolicy(gate=False)
    )
    assert found.hits
    assert all(SECRET not in hit.content for hit in found.hits)
    # The turns after it do not contain its words any more.
    assert all(hit.channels["lexical"] == 0 for hit in found.hits)
    with tenant_scope(tenant_a.id):
        assert RecallEvent.objects.count() == others
        event = AccessEvent.objects.filter(action=Action.ERASE).first()
        assert event is not None
        assert (event.actor, event.subject, event.subject_id) == (
            "eraser",
            "message",
            str(target.pk),
        )
    assert verify(tenant_a.id, "a").findings == []


def test_erasing_a_reply_keeps_its_question_without_a_new_answer(
    tenant_a: Tenant, target: Message, eraser: Program
) -> None:
    with tenant_scope(tenant_a.id):
        reply = Message.objects.get(in_reply_to=target)
    assert eraser.request("DELETE", f"{MESSAGES}{reply.pk}/").status_code == 202
    erase(tenant_a)
    assert STATEMENT in contents(tenant_a)
    document = eraser.get(f"{MESSAGES}{target.pk}/").json()
    assert (document["status"], document["reply"]) == ("closed", None)
    assert document["error"]["detail"] == "Its reply was erased."
    assert verify(tenant_a.id, "a").findings == []


def test_conversation_is_erased_completely_and_others_are_kept(
    tenant_a: Tenant,
    agent: Agent,
    target: Message,
    send_message: SendMessage,
    eraser: Program,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("konstruct.privacy.erasure.messages.BATCH", 2)
    send_message("Theo speaks there, too.", "theo", "t")
    where = f"{TRANSCRIPT}?agent=ada&user_id=maria&thread_id=t"
    assert eraser.request("DELETE", where).status_code == 202
    erase(tenant_a)
    assert contents(tenant_a) == ["And what was it before?", "Theo speaks there, too."]
    assert SECRET not in everything(tenant_a)
    assert verify(tenant_a.id, "a").findings == []
    # An unknown id is not found.
    again = eraser.request("DELETE", where).json()
    erase(tenant_a)
    assert eraser.get(again["url"]).json()["receipt"]["found"] is False


def test_a_message_that_waits_for_its_reply_is_not_answered(
    tenant_a: Tenant, eraser: Program
) -> None:
    sent = eraser.send(f"Are there {SECRET}?").json()
    assert eraser.request("DELETE", f"{MESSAGES}{sent['id']}/").status_code == 202
    erase(tenant_a)
    assert SECRET not in everything(tenant_a)
    assert verify(tenant_a.id, "a").findings == []


def test_key_without_the_scope_or_of_another_user_cannot_erase(
    tenant_a: Tenant, agent: Agent, target: Message
) -> None:
    keys = {
        403: {"scopes": ["read", "write"]},
        404: {"scopes": KeyScope.values, "user_id": "theo"},
    }
    for status, options in keys.items():
        _, key = issue_key(tenant_id=tenant_a.id, name="narrow", **options)  # type: ignore[arg-type]
        program = Program(tenant_a, agent, str(key))
        assert program.request("DELETE", f"{MESSAGES}{target.pk}/").status_code == status
        where = f"{TRANSCRIPT}?agent=ada&user_id=maria&thread_id=t"
        assert program.request("DELETE", where).status_code == 403
    with tenant_scope(tenant_a.id):
        assert not MessageErasure.objects.exists()
        assert MemoryEntry.objects.exists()


def test_facts_extracted_from_the_message_are_erased(
    tenant_a: Tenant,
    agent: Agent,
    target: Message,
    eraser: Program,
    llm_server: LLMServer,
    settings: Any,
) -> None:
    """The fact has other words than the message. It was recalled, changed and logged."""
    settings.LLM_POOL_URL = llm_server.url
    found = fact(
        "tree nuts", f"allergic to {SECRET}", subject="maria", slot="allergy",
        fact="Maria must not eat tree nuts.",
    )  # fmt: skip
    with tenant_scope(tenant_a.id):
        Agent.objects.filter(pk=agent.pk).update(extracts_facts=True, fact_review="none")
        llm_server.answers.append(Answer({"content": json.dumps({"facts": [found]})}))
        runs.apply(runs.preview(messages=[target], requested_by="person:1").pk)
        entry = MemoryEntry.objects.get(value="tree nuts")
        turn = {"role": "user", "content": f"- {entry.content}\nA program adds tree nuts."}
        event = store_trace(
            agent.id, "maria", sources=[entry.pk], facts=[fact_of(entry.pk, entry.content)],
            prompt=prompt_of(turn),
        )  # fmt: skip
        assert trace_of(event)["prompt"]["sections"][0]["messages"] == [turn]
    url = f"/api/v1/facts/{entry.pk}/"
    # The new words belong to the program: they stay, and the replaced ones are erased.
    change = {"data": json.dumps({"content": "Maria avoids cashews."})}
    changed = eraser.request("PATCH", url, content_type="application/json", **change)
    assert changed.status_code == 200
    left = everything(tenant_a)
    assert left.count("tree nuts") >= 5
    eraser.request("DELETE", f"{MESSAGES}{target.pk}/")
    erase(tenant_a)
    assert [line for line in everything(tenant_a).splitlines() if "tree nuts" in line] == []
    with tenant_scope(tenant_a.id):
        event.refresh_from_db()
        trace = trace_of(event)
        assert [fact["content"] for fact in trace["facts"]] == ["[erased]"]
        (message,) = trace["prompt"]["sections"][0]["messages"]
        assert message["content"] == "- [erased]\n[erased]"
        assert not ExtractionRun.objects.exists()
        assert MemoryEntry.objects.get(pk=entry.pk).content == "Maria avoids cashews."
        receipt = MessageErasure.objects.get().receipt
        assert receipt["tables"]["orchestrator_extractionrun"]["removed"] == 1
        assert receipt["tables"]["memory_memoryentry"]["removed"] >= 1


def test_receipts_of_the_person_are_erased(
    tenant_a: Tenant, target: Message, eraser: Program
) -> None:
    eraser.request("DELETE", f"{MESSAGES}{target.pk}/")
    with database.as_owner(), tenant_scope(tenant_a.id):
        assert jobs.ERASE_MESSAGES.run_due() == 1
        from konstruct.orchestrator.identities.erasure_requests import request_erasure

        receipt = carry_out(request_erasure("maria", by=EVA)).receipt
        assert receipt is not None
        assert receipt["tables"]["audit_messageerasure"]["removed"] == 1
        assert not MessageErasure.objects.exists()
