"""The REST channel: sending messages and asking for replies."""

import json
import uuid
from typing import Any
from unittest.mock import Mock
from urllib.parse import urlsplit

import pytest
from django.db import OperationalError

from konstruct.channels.rest import views
from konstruct.channels.rest.held import DETAILS
from konstruct.channels.rest.serializers import MessageSerializer
from konstruct.orchestrator.exceptions import LLMRefused, LLMUnavailable
from konstruct.orchestrator.llm.wire import Requested
from konstruct.orchestrator.messages import konstruct_message
from konstruct.orchestrator.models import Agent, HeldFor, PendingReply, ToolCall
from konstruct.orchestrator.replies import outbox
from konstruct.orchestrator.replies.status import Status
from konstruct.orchestrator.tools import tool_calls
from memory.conversations.transcript import record_message
from memory.models import Message, PendingEmbedding
from tenants.context import tenant_scope
from tests.konstruct.conftest import MESSAGES, Program


def rows(program: Program) -> tuple[int, int, int]:
    """Count what a message leaves behind."""
    with tenant_scope(program.tenant.id):
        return (
            Message.objects.count(),
            PendingReply.objects.count(),
            PendingEmbedding.objects.count(),
        )


def answer(program: Program, message_id: str, content: str = "Hi there") -> Message:
    """Let the message be answered, as a worker does."""
    with tenant_scope(program.tenant.id):
        message = Message.objects.get(pk=message_id)
        reply, _ = record_message(
            tenant_id=program.tenant.id,
            agent_id=message.agent_id,
            user_id=message.user_id,
            thread_id=message.thread_id,
            channel=message.channel,
            role="assistant",
            content=content,
            in_reply_to=message.id,
        )
        outbox.finish(message.id)
    return reply


def refused_fields(response: Any) -> list[str]:
    """Return the fields that a problem document names."""
    assert response.headers["Content-Type"] == "application/problem+json"
    return [error["field"] for error in response.json()["errors"]]


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
        "reply": None,
        "waits_for": None,
        "answered_by": "",
        "answered_by_id": None,
        "error": None,
    }
    assert response.headers["Location"] == document["url"]
    assert (message.role, message.content, message.name) == ("user", "Hello", "Maria")
    assert rows(program_a) == (1, 1, 1)


def test_without_a_thread_a_user_has_one_of_their_own(program_a: Program) -> None:
    assert program_a.send().json()["thread_id"] == "maria"


def test_content_is_kept_verbatim(program_a: Program) -> None:
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
    }


def test_a_reply_that_is_not_delivered_yet_is_not_shown(program_a: Program) -> None:
    sent = program_a.send().json()
    with tenant_scope(program_a.tenant.id):
        message = Message.objects.get()
        record_message(
            tenant_id=program_a.tenant.id,
            agent_id=message.agent_id,
            user_id=message.user_id,
            thread_id=message.thread_id,
            channel="rest",
            role="assistant",
            content="Hi",
            in_reply_to=message.id,
        )
    document = program_a.get(f"{MESSAGES}{sent['id']}/").json()
    assert (document["status"], document["reply"]) == ("queued", None)


def test_a_reply_that_is_tried_again_says_why_and_when(program_a: Program) -> None:
    sent = program_a.send().json()
    with tenant_scope(program_a.tenant.id):
        outbox.record_failure(uuid.UUID(sent["id"]), LLMUnavailable("It is busy."))
        due_at = PendingReply.objects.get().due_at
    document = program_a.get(f"{MESSAGES}{sent['id']}/").json()
    assert document["status"] == "queued"
    assert document["error"] == {
        "code": "llm_unavailable",
        "detail": "It is busy.",
        "attempts": 1,
        "next_attempt_at": due_at.isoformat().replace("+00:00", "Z"),
    }


def test_a_reply_that_was_given_up_says_why(program_a: Program) -> None:
    sent = program_a.send().json()
    with tenant_scope(program_a.tenant.id):
        outbox.record_failure(uuid.UUID(sent["id"]), LLMRefused("No such model."))
    response = program_a.get(f"{MESSAGES}{sent['id']}/?wait=60")
    document = response.json()
    assert (response.status_code, document["status"]) == (200, "failed")
    assert document["error"] == {
        "code": "llm_refused",
        "detail": "No such model.",
        "attempts": 1,
        "next_attempt_at": None,
    }


def test_the_same_key_again_is_the_same_message(program_a: Program) -> None:
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
    "different", [{"content": "Other"}, {"user_id": "eve"}, {"thread_id": "t2"}, {"name": "Eve"}]
)
def test_a_reused_key_with_another_body_is_refused(
    program_a: Program, different: dict[str, str]
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


@pytest.mark.parametrize("key", ["", "with space", "x" * 256, "ümlaut"])
def test_an_idempotency_key_must_be_visible_ascii(program_a: Program, key: str) -> None:
    response = program_a.send(headers={"Idempotency-Key": key})
    assert (response.status_code, refused_fields(response)) == (400, ["Idempotency-Key"])
    assert rows(program_a) == (0, 0, 0)


BAD_BODIES = [
    ({"content": ""}, 400, ["content"]),
    ({"content": " \n\t"}, 400, ["content"]),
    ({"content": None}, 400, ["content"]),
    ({"content": 7}, 400, ["content"]),
    ({"content": ["Hello"]}, 400, ["content"]),
    ({"content": "x" * 32_769}, 400, ["content"]),
    ({"content": "x" * 1_048_576}, 400, ["content"]),
    ({"content": "a\0b"}, 400, ["content"]),
    ({"content": "half \ud83d"}, 400, ["content"]),
    ({"user_id": ""}, 400, ["user_id"]),
    ({"user_id": " "}, 400, ["user_id"]),
    ({"user_id": "a\0b"}, 400, ["user_id"]),
    ({"user_id": "a\nb"}, 400, ["user_id"]),
    ({"user_id": "x" * 256}, 400, ["user_id"]),
    ({"user_id": 42}, 400, ["user_id"]),
    ({"thread_id": ""}, 400, ["thread_id"]),
    ({"thread_id": "t\0"}, 400, ["thread_id"]),
    ({"name": "x" * 121}, 400, ["name"]),
    ({"name": "M\0"}, 400, ["name"]),
    ({"agent": ""}, 400, ["agent"]),
    ({"agent": {"name": "ada"}}, 400, ["agent"]),
    ({"agent": "nobody"}, 422, ["agent"]),
    ({"agent": "00000000-0000-0000-0000-000000000000"}, 422, ["agent"]),
    ({"role": "assistant"}, 400, ["role"]),
    ({"tenant_id": "x", "thread": "y"}, 400, ["tenant_id", "thread"]),
    ({"\ud83d": "x"}, 400, ["\ud83d"]),
]


@pytest.mark.parametrize(("fields", "status", "named"), BAD_BODIES)
def test_a_bad_field_is_named_and_nothing_is_left_behind(
    program_a: Program, fields: dict[str, Any], status: int, named: list[str]
) -> None:
    response = program_a.send(**{"content": "Hello", **fields})
    assert (response.status_code, refused_fields(response)) == (status, named)
    assert rows(program_a) == (0, 0, 0)


@pytest.mark.parametrize("missing", ["agent", "user_id", "content"])
def test_a_missing_field_is_named(program_a: Program, missing: str) -> None:
    body = {"agent": "ada", "user_id": "maria", "content": "Hello"}
    response = program_a.post(
        MESSAGES, {name: value for name, value in body.items() if name != missing}
    )
    assert (response.status_code, refused_fields(response)) == (400, [missing])
    assert rows(program_a) == (0, 0, 0)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"nonsense", b'{"content": NaN}', b"\xff\xfe", b"[" * 100_000, b'"text"', b"[]",
     b"null", b"1" * 5000, b'{"content": 1e999}'],
)  # fmt: skip
def test_a_body_that_is_no_json_object_is_refused(program_a: Program, body: bytes) -> None:
    response = program_a.post(MESSAGES, body)
    assert response.status_code == 400
    assert rows(program_a) == (0, 0, 0)
    assert refused_fields(response)


def test_a_body_beyond_the_limit_is_refused_unread(program_a: Program, settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    response = program_a.send("x" * 1000)
    assert (response.status_code, refused_fields(response)) == (413, ["body"])
    assert rows(program_a) == (0, 0, 0)


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_only_json_is_taken(program_a: Program, content_type: str) -> None:
    body = b'{"agent": "ada", "user_id": "maria", "content": "Hello"}'
    response = program_a.post(MESSAGES, body, content_type=content_type)
    assert response.status_code == 415
    assert response.json()["type"] == "urn:konstruct:problem:unsupported-media-type"
    assert rows(program_a) == (0, 0, 0)


@pytest.mark.parametrize("wait", ["abc", "-1", "61", "nan", "inf", "", "1e9", "1&wait=2"])
def test_a_wait_that_is_none_is_refused(program_a: Program, wait: str) -> None:
    response = program_a.send(query=f"?wait={wait}")
    assert (response.status_code, refused_fields(response)) == (400, ["wait"])
    assert rows(program_a) == (0, 0, 0)


def test_an_unknown_query_parameter_is_refused(program_a: Program) -> None:
    response = program_a.send(query="?timeout=5")
    assert (response.status_code, refused_fields(response)) == (400, ["timeout"])
    assert rows(program_a) == (0, 0, 0)


def test_an_inactive_agent_accepts_nothing(program_a: Program) -> None:
    with tenant_scope(program_a.tenant.id):
        program_a.agent.is_active = False
        program_a.agent.save()
    response = program_a.send()
    assert (response.status_code, refused_fields(response)) == (422, ["agent"])
    assert rows(program_a) == (0, 0, 0)


def hold_for_consent(program: Program, message_id: str, *facts: str) -> list[ToolCall]:
    """Let the agent ask for tools, as a worker does."""
    with tenant_scope(program.tenant.id):
        Agent.objects.update(tools=["remember_fact"])
        requested = [Requested(f"call_{fact}", "remember_fact", {"fact": fact}) for fact in facts]
        message = konstruct_message(Message.objects.get(pk=message_id))
        agent = Agent.objects.get(pk=message.agent_id)
        assert tool_calls.record(message, agent, requested, round_number=0)
        return tool_calls.waiting_for(message.id)


def test_a_message_that_awaits_consent_says_which_calls_to_decide_on(program_a: Program) -> None:
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
                "question": call.question,
                "expires_at": call.expires_at.isoformat().replace("+00:00", "Z"),
                "url": f"{url}/{call.id}/",
                "decision_url": f"{url}/{call.id}/decision/",
            }
            for call in calls
        ],
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
    MessageSerializer(documents[0]).data  # noqa: B018 (it has every field that is described)
    first, second = expected["tool_calls"]
    program_a.post(urlsplit(first["decision_url"]).path, {"approve": True})
    left = program_a.get(f"{MESSAGES}{sent['id']}/").json()["waits_for"]
    assert left["tool_calls"] == [second]
    program_a.post(urlsplit(second["decision_url"]).path, {"approve": False})
    done = program_a.get(f"{MESSAGES}{sent['id']}/").json()
    assert (done["status"], done["waits_for"]) == ("queued", None)


def test_a_message_that_waits_for_a_person_says_under_which_escalation(
    program_a: Program,
) -> None:
    sent = program_a.send().json()
    body = {"agent": "ada", "user_id": "maria", "thread_id": "maria", "reason": "She is angry."}
    escalation = program_a.post("/api/v1/escalations/", body).json()
    with tenant_scope(program_a.tenant.id):
        outbox.hold(uuid.UUID(sent["id"]), HeldFor.PERSON)
    document = program_a.get(f"{MESSAGES}{sent['id']}/?wait=60").json()
    assert document["status"] == "with_person"
    assert document["waits_for"] == {
        "who": "person",
        "detail": DETAILS[Status.WITH_PERSON],
        "tool_calls": [],
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


def test_another_tenants_message_is_not_found(program_a: Program, program_b: Program) -> None:
    sent = program_a.send("secret of A").json()
    response = program_b.get(f"{MESSAGES}{sent['id']}/?wait=1")
    assert response.status_code == 404
    assert "secret" not in response.content.decode()


def test_another_tenants_agent_is_unknown(program_a: Program, program_b: Program) -> None:
    response = program_a.send(agent=str(program_b.agent.id))
    assert (response.status_code, refused_fields(response)) == (422, ["agent"])
    assert (rows(program_a), rows(program_b)) == ((0, 0, 0), (0, 0, 0))


def listed(response: Any) -> list[str]:
    """Return the contents of a page of messages."""
    assert response.status_code == 200
    return [document["content"] for document in response.json()["results"]]


def test_the_list_is_newest_first_in_pages(program_a: Program) -> None:
    for number in range(5):
        program_a.send(f"message {number}")
    first = program_a.get(f"{MESSAGES}?limit=2")
    second = program_a.get(first.json()["next"])
    third = program_a.get(second.json()["next"])
    assert [listed(page) for page in (first, second, third)] == [
        ["message 4", "message 3"],
        ["message 2", "message 1"],
        ["message 0"],
    ]
    assert third.json()["next"] is None
    assert listed(program_a.get(third.json()["previous"])) == ["message 2", "message 1"]


def test_the_list_holds_what_was_sent_with_its_replies(program_a: Program) -> None:
    sent = program_a.send("question").json()
    answer(program_a, sent["id"], "the answer")
    (document,) = program_a.get(MESSAGES).json()["results"]
    assert document == program_a.get(f"{MESSAGES}{sent['id']}/").json()
    assert document["reply"]["content"] == "the answer"


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
        ("limit=0", ["limit"]),
        ("limit=201", ["limit"]),
        ("limit=two", ["limit"]),
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


@pytest.mark.parametrize("cursor", ["nonsense", "cD1hYmM", "a.b", "."])
def test_a_place_that_is_none_is_not_found(program_a: Program, cursor: str) -> None:
    response = program_a.get(f"{MESSAGES}?cursor={cursor}")
    assert refused_fields(response) == ["cursor"]
    assert response.status_code == 404


def test_the_list_asks_the_database_the_same_for_any_length(
    program_a: Program, django_assert_max_num_queries: Any
) -> None:
    for number in range(12):
        answer(program_a, program_a.send(f"message {number}").json()["id"])
    with django_assert_max_num_queries(8):
        assert len(listed(program_a.get(MESSAGES))) == 12


def test_other_methods_are_refused(program_a: Program) -> None:
    response = program_a.request("DELETE", MESSAGES)
    assert (response.status_code, response.headers["Allow"]) == (405, "GET, POST, HEAD, OPTIONS")
    assert response.json()["type"] == "urn:konstruct:problem:method-not-allowed"


def test_messages_are_written_as_they_are_described(program_a: Program) -> None:
    answered, failed = (program_a.send(text).json() for text in ("Hello", "Hello again"))
    answer(program_a, answered["id"])
    with tenant_scope(program_a.tenant.id):
        PendingReply.objects.filter(pk=answered["id"]).delete()
        outbox.record_failure(uuid.UUID(failed["id"]), LLMRefused("no"))
    listed = program_a.get(MESSAGES).json()["results"]
    assert [document["status"] for document in listed] == ["failed", "answered"]
    assert listed == [dict(MessageSerializer(document).data) for document in listed]
    assert all(program_a.get(f"{MESSAGES}{each['id']}/").json() == each for each in listed)
    assert list(listed[0]) == list(MessageSerializer().fields)


EVENTS = {"Accept": "text/event-stream"}


def events_of(response: Any) -> list[tuple[str, Any]]:
    """Return the events of a stream that is complete."""
    assert (response.status_code, response.headers["Content-Type"]) == (200, "text/event-stream")
    *events, rest = response.content.decode().split("\n\n")
    assert rest == ""
    lines = [each.removeprefix("event: ").split("\ndata: ") for each in events]
    return [(name, json.loads(data)) for name, data in lines]


def test_a_stream_tells_the_message_first_and_as_it_is_last(program_a: Program) -> None:
    body, key = {"agent": "ada", "user_id": "maria", "content": "Hi"}, {"Idempotency-Key": "k"}
    (opening, (name, late)) = events_of(
        program_a.post(f"{MESSAGES}?wait=0.01", body, headers={**EVENTS, **key})
    )
    assert opening == ("accepted", late)
    assert (name, late["status"]) == ("message", "queued")
    answer(program_a, late["id"], "Line 1\n\nLine 2")
    _, (name, document) = events_of(program_a.post(MESSAGES, body, headers={**EVENTS, **key}))
    assert (name, document) == ("message", program_a.get(urlsplit(late["url"]).path).json())
    assert document["reply"]["content"] == "Line 1\n\nLine 2"


def test_a_stream_that_cannot_be_ended_ends_with_a_problem(
    program_a: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "_message", Mock(side_effect=OperationalError("lost")))
    body = {"agent": "ada", "user_id": "maria", "content": "Hi"}
    response = program_a.post(f"{MESSAGES}?wait=0.01", body, headers=EVENTS)
    _, (name, problem) = events_of(response)
    assert (name, problem["type"]) == ("error", "urn:konstruct:problem:unavailable")


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("text/event-stream", "text/event-stream"),
        ("text/event-stream, */*;q=0.1", "text/event-stream"),
        ("application/json;q=0.5, text/event-stream", "text/event-stream"),
        ("application/json, text/event-stream;q=0.5", "application/json"),
        ("*/*", "application/json"),
    ],
)
def test_who_prefers_events_gets_them(program_a: Program, accept: str, media_type: str) -> None:
    body = {"agent": "ada", "user_id": "maria", "content": "Hi"}
    response = program_a.post(f"{MESSAGES}?wait=0.01", body, headers={"Accept": accept})
    assert response.headers["Content-Type"] == media_type


def test_what_is_refused_is_no_stream(program_a: Program) -> None:
    refused = program_a.post(MESSAGES, {}, headers=EVENTS)
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert refused.status_code == 400
    assert program_a.get(MESSAGES, headers=EVENTS).status_code == 406
