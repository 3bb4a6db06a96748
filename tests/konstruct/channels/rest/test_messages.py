"""The REST channel: sending messages and polling for replies."""

import uuid
from typing import Any
from urllib.parse import urlsplit

import pytest

from konstruct.channels.rest.responses import DETAILS
from konstruct.channels.rest.serializers import MessageSerializer
from konstruct.llm.completions import (
    Completion,
    LLMError,
    LLMRefused,
    LLMUnavailable,
    RequestedCall,
)
from konstruct.orchestrator import replies, tool_calls
from konstruct.orchestrator.messages import Thread, konstruct_message
from konstruct.orchestrator.models import Agent, AnswerOptions, HeldFor, PendingReply, ToolCall
from konstruct.orchestrator.replies import Status
from memory.conversations.transcript import record_message
from memory.models import Message
from tenants.context import tenant_scope
from tests.konstruct.api.seed_data import answer
from tests.konstruct.channels.rest.sent import refused_fields, rows
from tests.konstruct.conftest import MESSAGES, Program


def test_a_message_is_accepted_and_written_down(program_a: Program) -> None:
    response = program_a.send("Hello", name="Maria", thread_id="t1")
    document = response.json()
    with tenant_scope(program_a.tenant.id):
        message = Message.objects.get()
    assert response.status_code == 202
    assert document == {
        "id": str(message.id),
        "status": "queued",
        "url": f"http://localhost/api/v1/messages/{message.id}/",
        "agent": "ada",
        "agent_id": str(program_a.agent.id),
        "user_id": "maria",
        "thread_id": "t1",
        "channel": "rest",
        "name": "Maria",
        "content": "Hello",
        "metadata": {},
        "created_at": message.created_at.isoformat().replace("+00:00", "Z"),
        "indexed": False,
        "reply": None,
        "waits_for": None,
        "answered_by": "",
        "answered_by_id": None,
        "error": None,
    }
    assert response.headers["Location"] == document["url"]
    assert (message.role, message.content, message.name) == ("user", "Hello", "Maria")
    assert rows(program_a) == (1, 1, 1)


def test_thread_defaults_to_one_thread_of_the_user(program_a: Program) -> None:
    assert program_a.send().json()["thread_id"] == "maria"


def test_content_is_stored_verbatim(program_a: Program) -> None:
    content = "  Grüße 👋\n\ttab \u202e rtl\r\n "
    assert program_a.send(content).json()["content"] == content
    with tenant_scope(program_a.tenant.id):
        assert Message.objects.get().content == content


def test_an_agent_is_found_by_its_id_too(program_a: Program) -> None:
    response = program_a.send(agent=str(program_a.agent.id))
    assert (response.status_code, response.json()["agent"]) == (202, "ada")


def test_an_answered_message_shows_its_reply(program_a: Program) -> None:
    sent = program_a.send().json()
    reply = answer(program_a, sent["id"])
    document = program_a.get(f"{MESSAGES}{sent['id']}/").json()
    assert (document["status"], document["error"]) == ("answered", None)
    assert document["reply"] == {
        "id": str(reply.id),
        "content": "Hi there",
        "created_at": reply.created_at.isoformat().replace("+00:00", "Z"),
        "finish_reason": reply.finish_reason,
    }


def test_a_reply_that_is_not_delivered_yet_is_not_shown(program_a: Program) -> None:
    sent = program_a.send().json()
    with tenant_scope(program_a.tenant.id):
        message = Message.objects.get()
        record_message(
            tenant_id=program_a.tenant.id,
            **Thread.of(message).as_filter,
            channel="rest",
            role="assistant",
            content="Hi",
            in_reply_to=message.id,
        )
    document = program_a.get(f"{MESSAGES}{sent['id']}/").json()
    assert (document["status"], document["reply"]) == ("queued", None)


@pytest.mark.parametrize(
    ("error", "status"), [(LLMUnavailable("It is busy."), "queued"), (LLMRefused("No."), "failed")]
)
def test_the_error_of_a_reply_is_shown_with_the_next_time(
    program_a: Program, error: LLMError, status: str
) -> None:
    sent = program_a.send().json()
    with tenant_scope(program_a.tenant.id):
        replies.REPLIES.record_failure(uuid.UUID(sent["id"]), error)
        due_at = PendingReply.objects.get().due_at.isoformat().replace("+00:00", "Z")
    wait = "?wait=60" if status == "failed" else ""
    response = program_a.get(f"{MESSAGES}{sent['id']}/{wait}")
    assert (response.status_code, response.json()["status"]) == (200, status)
    assert response.json()["error"] == {
        "code": error.code,
        "detail": str(error),
        "attempts": 1,
        "next_attempt_at": due_at if status == "queued" else None,
    }


def test_same_idempotency_key_returns_the_same_message(program_a: Program) -> None:
    first, second = (program_a.send(headers={"Idempotency-Key": "k1"}) for _ in range(2))
    assert (first.status_code, second.status_code) == (202, 202)
    assert first.json() == second.json()
    assert rows(program_a) == (1, 1, 1)


def test_the_same_key_after_the_reply_does_not_ask_for_another(program_a: Program) -> None:
    headers = {"Idempotency-Key": "k1"}
    sent = program_a.send(headers=headers).json()
    answer(program_a, sent["id"])
    again = program_a.send(headers=headers, query="?wait=5")
    assert (again.status_code, again.json()["id"]) == (200, sent["id"])
    assert again.json()["reply"]["content"] == "Hi there"
    assert rows(program_a) == (2, 0, 2)


@pytest.mark.parametrize(
    "different",
    [
        {"content": "Other"},
        {"user_id": "eve"},
        {"thread_id": "t2"},
        {"name": "Eve"},
        {"metadata": {"a": 1}},
    ],
)
def test_a_reused_key_with_another_body_is_refused(
    program_a: Program, different: dict[str, object]
) -> None:
    headers = {"Idempotency-Key": "k1"}
    program_a.send(headers=headers)
    response = program_a.send(**{"headers": headers, "content": "Hello", **different})
    assert response.status_code == 422
    assert response.json()["type"] == "urn:konstruct:problem:idempotency-key-reused"
    assert next(iter(different)) in response.json()["detail"]
    assert refused_fields(response) == ["Idempotency-Key"]
    assert rows(program_a) == (1, 1, 1)


def test_two_tenants_may_use_the_same_key(program_a: Program, program_b: Program) -> None:
    headers = {"Idempotency-Key": "k1"}
    first = program_a.send("of A", headers=headers).json()
    second = program_b.send("of B", headers=headers).json()
    assert first["id"] != second["id"]
    assert (rows(program_a), rows(program_b)) == ((1, 1, 1), (1, 1, 1))


def hold_for_consent(program: Program, message_id: str, *facts: str) -> list[ToolCall]:
    """Request tool calls with consent, as a worker does."""
    with tenant_scope(program.tenant.id):
        Agent.objects.update(tools=["remember_fact"])
        calls = (RequestedCall(f"call_{fact}", "remember_fact", {"fact": fact}) for fact in facts)
        completion = Completion("", tuple(calls))
        message = konstruct_message(Message.objects.get(pk=message_id))
        agent = Agent.objects.get(pk=message.agent_id)
        assert tool_calls.record(message, agent, completion, round_number=0)
        return tool_calls.calls_awaiting_consent(message.id)


def test_message_awaiting_consent_names_its_tool_calls(program_a: Program) -> None:
    sent = program_a.send(headers={"Idempotency-Key": "k"}).json()
    calls = hold_for_consent(program_a, sent["id"], "Maria likes tea.", "Maria has a cat.")
    url = "http://localhost/api/v1/tool-calls"
    expected = {
        "who": "user",
        "detail": DETAILS[Status.AWAITING_CONSENT],
        "tool_calls": [
            {
                "id": str(call.id),
                "name": "remember_fact",
                "arguments": call.arguments,
                "content": "",
                "question": call.question,
                "expires_at": call.expires_at.isoformat().replace("+00:00", "Z"),
                "url": f"{url}/{call.id}/",
                "decision_url": f"{url}/{call.id}/decision/",
            }
            for call in calls
        ],
        "results_url": None,
        "escalation": None,
    }
    responses = [
        program_a.get(f"{MESSAGES}{sent['id']}/?wait=60"),
        program_a.send(headers={"Idempotency-Key": "k"}, query="?wait=60"),
    ]
    documents = [response.json() for response in responses]
    documents += program_a.get(MESSAGES).json()["results"]
    assert [response.status_code for response in responses] == [200, 200]
    for document in documents:
        assert (document["status"], document["reply"]) == ("awaiting_consent", None)
        assert document["waits_for"] == expected
    assert documents[0].keys() == MessageSerializer().fields.keys()
    first, second = expected["tool_calls"]
    program_a.post(urlsplit(first["decision_url"]).path, {"approve": True})
    left = program_a.get(f"{MESSAGES}{sent['id']}/").json()["waits_for"]
    assert left["tool_calls"] == [second]
    program_a.post(urlsplit(second["decision_url"]).path, {"approve": False})
    done = program_a.get(f"{MESSAGES}{sent['id']}/").json()
    assert (done["status"], done["waits_for"]) == ("queued", None)


def test_message_waiting_for_a_person_names_its_escalation(program_a: Program) -> None:
    sent = program_a.send().json()
    body = {"agent": "ada", "user_id": "maria", "thread_id": "maria", "reason": "She is angry."}
    escalation = program_a.post("/api/v1/escalations/", body).json()
    with tenant_scope(program_a.tenant.id):
        replies.REPLIES.hold(uuid.UUID(sent["id"]), HeldFor.PERSON)
    document = program_a.get(f"{MESSAGES}{sent['id']}/?wait=60").json()
    assert document["status"] == "with_person"
    assert document["waits_for"] == {
        "who": "person",
        "detail": DETAILS[Status.WITH_PERSON],
        "tool_calls": [],
        "results_url": None,
        "escalation": {name: escalation[name] for name in ("id", "reason", "opened_at", "url")},
    }


def test_waiting_ends_with_the_time(program_a: Program) -> None:
    response = program_a.send(query="?wait=0.1")
    assert (response.status_code, response.json()["status"]) == (202, "queued")


def test_an_unknown_message_is_not_found(program_a: Program) -> None:
    for path in (f"{MESSAGES}{uuid.uuid4()}/", f"{MESSAGES}nonsense/"):
        response = program_a.get(path)
        assert response.status_code == 404
        assert response.headers["Content-Type"] == "application/problem+json"


def test_an_erased_message_that_is_waited_for_is_named(
    program_a: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replies, "sent_messages", Message.objects.none)
    response = program_a.send(query="?wait=0.1")
    with tenant_scope(program_a.tenant.id):
        message_id = str(Message.objects.get().id)
    assert response.status_code == 404
    assert (
        response.json()["detail"] == f"There is no message {message_id!r} that this caller may see."
    )


def test_another_tenants_message_is_not_found(program_a: Program, program_b: Program) -> None:
    sent = program_a.send("secret of A").json()
    response = program_b.get(f"{MESSAGES}{sent['id']}/?wait=1")
    assert response.status_code == 404
    assert "secret" not in response.content.decode()


def test_messages_are_written_as_they_are_described(program_a: Program) -> None:
    answered, failed = (program_a.send(text).json() for text in ("Hello", "Hello again"))
    answer(program_a, answered["id"])
    with tenant_scope(program_a.tenant.id):
        PendingReply.objects.filter(pk=answered["id"]).delete()
        replies.REPLIES.record_failure(uuid.UUID(failed["id"]), LLMRefused("no"))
    listed = program_a.get(MESSAGES).json()["results"]
    assert [document["status"] for document in listed] == ["failed", "answered"]
    assert listed == [dict(MessageSerializer(document).data) for document in listed]
    assert all(program_a.get(f"{MESSAGES}{message['id']}/").json() == message for message in listed)
    assert list(listed[0]) == list(MessageSerializer().fields)


def listed(response: Any) -> list[str]:
    """Return the contents of a page of messages."""
    assert response.status_code == 200
    return [document["content"] for document in response.json()["results"]]


def test_the_list_is_filtered(program_a: Program) -> None:
    program_a.send("one", user_id="maria", thread_id="t1")
    program_a.send("two", user_id="eve", thread_id="t1")
    program_a.send("three", user_id="eve", thread_id="t2")
    assert listed(program_a.get(f"{MESSAGES}?user_id=eve")) == ["three", "two"]
    assert listed(program_a.get(f"{MESSAGES}?thread_id=t1")) == ["two", "one"]
    assert listed(program_a.get(f"{MESSAGES}?agent=ada&user_id=eve&thread_id=t1")) == ["two"]


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("cursor=%ff", ["cursor"]),
        ("cursor=%00", ["cursor"]),
        ("user_id=a%00b", ["user_id"]),
        ("user=eve", ["user"]),
        ("user_id=a&user_id=b", ["user_id"]),
    ],
)
def test_a_bad_filter_is_named(program_a: Program, query: str, named: list[str]) -> None:
    response = program_a.get(f"{MESSAGES}?{query}")
    assert (response.status_code, refused_fields(response)) == (400, named)


def test_options_of_the_reply_are_kept_until_it_is_written(program_a: Program) -> None:
    options = {"temperature": 0, "stop": ["END"], "max_completion_tokens": 50}
    sent = program_a.send("Hello", instructions="Rhyme.", options=options).json()
    with tenant_scope(program_a.tenant.id):
        kept = AnswerOptions.objects.get(message=sent["id"])
    assert (kept.options, kept.instructions, kept.history) == (options, ["Rhyme."], None)
    program_a.send("Hello")
    with tenant_scope(program_a.tenant.id):
        assert AnswerOptions.objects.count() == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"options": {"temperature": 3}}, {"options": {"temperature": True}},
        {"options": {"stop": []}}, {"options": {"tools": []}}, {"options": {"n": 1}},
        {"instructions": " "}, {"instructions": "\x00"}, {"instructions": "word " * 20_000},
    ],
)  # fmt: skip
def test_options_that_are_not_followed_are_refused(
    program_a: Program, fields: dict[str, Any]
) -> None:
    assert program_a.send("Hello", **fields).status_code == 400
    with tenant_scope(program_a.tenant.id):
        assert not Message.objects.exists()


def test_instructions_are_for_agents_that_accept_them_and_keys_of_the_tenant(
    program_a: Program,
) -> None:
    bound = program_a.with_key(user_id="maria")
    assert bound.send("Hello", instructions="Rhyme.").status_code == 400
    with tenant_scope(program_a.tenant.id):
        Agent.objects.update(accepts_client_instructions=False)
    assert program_a.send("Hello", instructions="Rhyme.").status_code == 400
