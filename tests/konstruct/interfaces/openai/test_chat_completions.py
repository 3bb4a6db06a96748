"""Requests for chat completions: users, accepted requests, and refusals."""

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from konstruct.llm.completions import LLMRefused, LLMTimeout
from konstruct.orchestrator import pipeline, replies
from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.messages import konstruct_message
from konstruct.orchestrator.models import HeldFor, PendingReply
from memory.models import Message
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tenants.limits.quotas import Limit, Quota, set_limits
from tests.konstruct.interfaces.openai.conftest import CHAT, Chat
from tests.servers.llm import Answer, LLMServer


def error_of(response: Any, status: int) -> dict[str, Any]:
    """Check the form of OpenAI's error. Return it."""
    assert response.status_code == status, response.content
    assert response.headers["Content-Type"] == "application/json"
    document = response.json()
    assert list(document) == ["error"]
    assert list(document["error"]) == ["message", "type", "param", "code"]
    assert document["error"]["message"]
    return dict(document["error"])


def events_of(response: Any) -> list[Any]:
    """Return the events of a complete stream."""
    assert response.headers["Content-Type"] == "text/event-stream"
    *events, last, rest = response.content.decode().split("\n\n")
    assert (last, rest) == ("data: [DONE]", "")
    return [json.loads(event.removeprefix("data: ")) for event in events]


def accepted_messages(chat: Chat) -> list[tuple[str, str, str]]:
    """Return user, thread and text of each accepted message."""
    return [(message.user_id, message.thread_id, message.content) for message in chat.accepted]


def test_the_last_message_is_accepted_and_its_reply_is_the_completion(chat: Chat) -> None:
    response = chat.ask("My sister lives in Porto.")
    (message,) = chat.accepted
    assert response.json() == {
        "id": f"chatcmpl-{message.id.hex}",
        "object": "chat.completion",
        "created": int(message.created_at.timestamp()),
        "model": "ada",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "1. My sister lives in Porto.!",
                    "refusal": None,
                },
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
    }
    assert accepted_messages(chat) == [("maria", "maria", "My sister lives in Porto.")]
    assert (message.channel, message.agent_id) == ("openai", chat.program.agent.id)


def test_a_stream_has_the_same_in_chunks(chat: Chat) -> None:
    events = events_of(chat.ask("Hello", stream=True))
    deltas = [event["choices"][0]["delta"] for event in events]
    assert deltas == [{"role": "assistant", "content": ""}, {"content": "1. Hello!"}, {}]
    assert [event["choices"][0]["finish_reason"] for event in events] == [None, None, "stop"]
    assert {event["object"] for event in events} == {"chat.completion.chunk"}
    assert {event["id"] for event in events} == {f"chatcmpl-{chat.accepted[0].id.hex}"}


@pytest.mark.parametrize(
    ("sent", "user", "thread"),
    [
        ({"user": "paul"}, "paul", "paul"),
        ({"user": None, "safety_identifier": "paul"}, "paul", "paul"),
        ({"metadata": {"user_id": "paul", "thread_id": "t"}}, "paul", "t"),
        ({"metadata": {"conversation_id": "t"}, "prompt_cache_key": "other"}, "maria", "t"),
        ({"prompt_cache_key": "t"}, "maria", "t"),
        ({"headers": {"X-OpenWebUI-User-Id": "paul", "X-OpenWebUI-Chat-Id": "t"}}, "paul", "t"),
        ({"headers": {"x-sm-user-id": "Zoë", "x-sm-conversation-id": "t"}}, "Zoë", "t"),
        ({"headers": {"X-OpenWebUI-User-Id": ""}}, "maria", "maria"),
    ],
)
def test_user_and_thread_are_found_where_clients_put_them(
    chat: Chat, sent: dict[str, Any], user: str, thread: str
) -> None:
    headers = {
        name: value.encode().decode("latin-1") for name, value in sent.pop("headers", {}).items()
    }
    chat.says("Hello", headers=headers, **sent)
    assert accepted_messages(chat) == [(user, thread, "Hello")]


def test_request_requires_a_user_unless_the_key_has_one(chat: Chat, other_chat: Any) -> None:
    error = error_of(chat.ask("Hello", user=None), 400)
    assert (error["param"], error["code"]) == ("user", "user_required")
    assert "X-OpenWebUI-User-Id" in error["message"]
    assert error["message"].endswith("or use a key that is bound to a user.")
    bound_chat = other_chat(chat.program.with_key(user_id="paul"))
    bound_chat.says("Hello", user=None)
    assert accepted_messages(chat) == [("paul", "paul", "Hello")]


@pytest.mark.parametrize(
    "sent",
    [
        {"user": "maria"},
        {"metadata": {"user_id": "maria"}},
        {"user": "paul", "headers": {"X-OpenWebUI-User-Id": "maria"}},
    ],
)
def test_user_key_refuses_another_user(chat: Chat, other_chat: Any, sent: dict[str, Any]) -> None:
    bound_chat = other_chat(chat.program.with_key(user_id="paul"))
    error = error_of(bound_chat.ask("Hello", **sent), 403)
    assert (error["type"], error["code"]) == ("permission_error", "outside_of_key")
    assert accepted_messages(chat) == []


def test_models_are_the_active_agents_of_the_key(chat: Chat) -> None:
    program = chat.program
    other = create_agent(tenant_id=program.tenant.id, name="bo/b", system_prompt="Secret.")
    create_agent(tenant_id=program.tenant.id, name="gone", is_active=False)
    listed = program.get("/v1/models").json()
    assert listed["object"] == "list"
    assert [model["id"] for model in listed["data"]] == ["ada", "bo/b"]
    assert listed["data"][1] == {
        "id": "bo/b",
        "object": "model",
        "created": int(other.created_at.timestamp()),
        "owned_by": "konstruct",
    }
    assert program.get("/v1/models/bo/b").json() == listed["data"][1]
    of_bo = program.with_key(agent_id=other.id).get("/v1/models").json()
    assert [model["id"] for model in of_bo["data"]] == ["bo/b"]
    assert error_of(program.with_key(agent_id=other.id).get("/v1/models/ada"), 404)


def test_key_without_the_scope_is_refused(chat: Chat) -> None:
    stranger = replace(chat.program, key="ks_no")
    for response in (stranger.get("/v1/models"), stranger.post(CHAT, {})):
        error = error_of(response, 401)
        assert (error["type"], error["code"]) == ("authentication_error", "invalid_api_key")


MESSAGE = {"role": "user", "content": "Hello"}


@pytest.mark.parametrize(
    ("sent", "param"),
    [
        ({"messages": "Hello"}, "messages"),
        ({"messages": [MESSAGE, 5]}, "messages[1]"),
        ({"messages": [{"role": ["user"], "content": "x"}]}, "messages[0]"),
        ({"messages": [{"role": "system", "content": "x"}]}, "messages"),
        ({"messages": [MESSAGE, {"role": "assistant", "content": "x"}]}, "messages[1].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"type": {}}]}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": " "}]}, "messages"),
        ({"messages": [{"role": "user", "content": "x" * 32_769}]}, "messages"),
        ({"messages": [{**MESSAGE, "name": 5}]}, "messages[0].name"),
        ({"messages": [{**MESSAGE, "name": "\n"}]}, "messages"),
        ({"model": 5}, "model"),
        ({"model": "\0"}, "model"),
        ({"user": "x" * 256}, "user"),
        ({"metadata": []}, "metadata"),
        ({"metadata": {"thread_id": {}}}, "metadata.thread_id"),
        ({"logprobs": True}, "logprobs"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"functions": [{}]}, "functions"),
    ],
)
def test_unsupported_request_is_refused_by_field(
    chat: Chat, sent: dict[str, Any], param: str
) -> None:
    status = 404 if sent.get("model") == "\0" else 400
    error = error_of(chat.ask("Hello", **sent), status)
    assert (error["type"], error["param"]) == ("invalid_request_error", param)
    assert accepted_messages(chat) == []


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"5", b'{"model": 1, "model": 2}', b"\xff"])
def test_body_that_is_not_an_object_is_refused(chat: Chat, body: bytes) -> None:
    assert error_of(chat.program.post(CHAT, body), 400)["type"] == "invalid_request_error"


def test_parameters_without_an_effect_here_are_not_refused(chat: Chat) -> None:
    parameters = {"temperature": 0.5, "max_tokens": 5, "n": 1, "response_format": {"type": "text"}}
    unknown = {"chat_id": "5", "tools": [], "stream_options": {"include_usage": True}}
    instructions = {"role": "system", "content": "You are a pirate."}
    parts = [{"type": "text", "text": "Hello"}, {"type": "text", "text": "there"}]
    message = {"role": "user", "content": parts, "name": "Maria"}
    messages = [instructions, message, instructions]
    assert chat.says(messages=messages, **parameters, **unknown) == "1. Hello\nthere!"
    assert chat.accepted[0].name == "Maria"


def held(chat: Chat, held_for: HeldFor) -> None:
    with tenant_scope(chat.program.tenant.id):
        replies.hold(konstruct_message(chat.accepted[0]), held_for)


def given_up(chat: Chat, error: Exception) -> None:
    with tenant_scope(chat.program.tenant.id):
        replies.REPLIES.record_failure(chat.accepted[0].id, error)


KEY = {"Idempotency-Key": "k1"}


def test_late_and_held_replies_are_reported(chat: Chat) -> None:
    chat.answers = False
    error = error_of(chat.ask("Hello", headers=KEY), 504)
    assert (error["type"], error["code"]) == ("server_error", "reply_late")
    (late,) = events_of(chat.ask("Hello", headers=KEY, stream=True))[1:]
    assert late["error"]["code"] == "reply_late"
    held(chat, HeldFor.PERSON)
    assert "A person answers" in chat.says("Hello", headers=KEY)
    assert len(chat.accepted) == 1


def test_failed_reply_is_reported_once_and_retried_by_the_next_request(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(vars(replies.REPLIES), "max_attempts", 1)
    chat.answers = False
    chat.ask("Hello", headers=KEY)
    (message,) = chat.accepted
    for failure, status in ((LLMRefused("It refused."), 503), (LLMTimeout("Too slow."), 504)):
        given_up(chat, failure)
        view_of = {"message": str(failure), "code": failure.code}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                "konstruct.interfaces.openai.views.retry_reply", lambda *args, **options: None
            )
            response = chat.ask("Hello", headers=KEY)
        assert error_of(response, status).items() >= view_of.items()
        assert response.headers["X-Should-Retry"] == "false"
        assert error_of(chat.ask("Hello", headers=KEY), 504)["code"] == "reply_late"
    assert [message.id for message in chat.accepted] == [message.id]


@pytest.mark.parametrize(
    ("answer", "seconds", "code", "retry_after"),
    [
        (Answer("busy", 429, {"Retry-After": "120"}), 60, "llm_unavailable", 120),
        (Answer("busy", 429, {"Retry-After": "40"}), 60, "reply_late", None),
        (Answer("no JSON"), 60, "reply_late", None),
        (Answer("no JSON"), 1, "llm_reply_invalid", None),
    ],
)
def test_a_completion_is_tried_again_only_within_the_time_of_the_language_model(
    chat: Chat,
    llm_server: LLMServer,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    answer: Answer,
    seconds: int,
    code: str,
    retry_after: int | None,
) -> None:
    settings.LLM_POOL_URL, settings.LLM_TIMEOUT = llm_server.url, seconds
    monkeypatch.setattr("konstruct.llm.client.MAX_ATTEMPTS", 1)
    llm_server.default, chat.answers = answer, False
    chat.ask("Hello", headers=KEY)
    pipeline.handle(tenant_id=chat.program.tenant.id, message_id=chat.accepted[0].id)
    monkeypatch.setattr("konstruct.interfaces.openai.views.retry_reply", lambda *_, **__: None)
    response = chat.ask("Hello", headers=KEY)
    assert error_of(response, 504 if code == "reply_late" else 503)["code"] == code
    given = response.headers.get("Retry-After")
    assert given is None if retry_after is None else 0 < int(given) <= retry_after


@pytest.mark.slow
def test_a_later_attempt_of_a_completion_has_the_time_that_is_left(
    chat: Chat, llm_server: LLMServer, settings: Any
) -> None:
    settings.LLM_POOL_URL, settings.LLM_TIMEOUT = llm_server.url, 2
    llm_server.default, chat.answers = Answer("late", wait=True), False
    chat.ask("Hello", headers=KEY)
    with tenant_scope(chat.program.tenant.id):
        PendingReply.objects.update(attempts=1)
    pipeline.handle(tenant_id=chat.program.tenant.id, message_id=chat.accepted[0].id)
    with tenant_scope(chat.program.tenant.id):
        failed = PendingReply.objects.get(failed_at__isnull=False)
    assert (failed.error_code, failed.attempts) == ("llm_timeout", 2)
    assert "did not answer within 1." in failed.last_error


def test_idempotency_key_of_another_message_is_refused(chat: Chat) -> None:
    chat.says("Hello", headers=KEY)
    error = error_of(chat.ask("Goodbye", headers=KEY), 400)
    assert error["code"] == "idempotency_key_reused"


def test_throttled_request_gets_retry_after(chat: Chat, settings: Any) -> None:
    settings.RATE_LIMIT_BURST = settings.RATE_LIMIT_PER_SECOND = 2
    responses = [chat.ask("Hello") for _ in range(3)]
    error = error_of(responses[-1], 429)
    assert (error["type"], error["code"]) == ("rate_limit_error", "rate_limit_exceeded")
    assert int(responses[-1].headers["Retry-After"]) >= 1


def test_a_used_quota_has_openais_code_and_a_text_for_people(chat: Chat) -> None:
    set_limits(chat.program.tenant.id, {Quota.MESSAGES: Limit(hard=Decimal(0))})
    response = chat.ask("Hello")
    error = error_of(response, 429)
    assert (error["type"], error["code"]) == ("insufficient_quota", "insufficient_quota")
    assert error["message"].startswith("No more messages can be taken this month")
    assert response.headers["X-Should-Retry"] == "false"


def test_unknown_address_is_answered_in_the_format_of_openai(chat: Chat) -> None:
    assert error_of(chat.program.get(CHAT), 405)
    assert error_of(chat.program.get("/v1/chat/nothing"), 404)
    assert error_of(chat.program.get("/v1/models/nobody"), 404)["code"] == "model_not_found"
    for address in ("responses", "embeddings", "completions", "chat/completions/", "nothing"):
        error = error_of(chat.program.post(f"/v1/{address}", {}), 404)
        assert "/v1/chat/completions" in error["message"]
    elsewhere = replace(chat.program, host="nobody.localhost")
    assert error_of(elsewhere.post(CHAT, {}), 404)
    too_long = b'{"model": "' + b"x" * 2_500_000 + b'"}'
    assert error_of(chat.program.post(CHAT, too_long), 413)
    assert error_of(chat.program.post(CHAT, b"x", content_type="text/plain"), 415)


def test_every_request_is_in_the_access_log(chat: Chat) -> None:
    chat.says("Hello", headers=KEY)
    chat.says("Hello", headers=KEY)
    chat.ask("Hello", model="nobody")
    chat.program.get("/v1/models")
    with tenant_scope(chat.program.tenant.id):
        events = AccessEvent.objects.values_list("action", "subject")
        assert sorted(events) == [
            ("list", "agents"),
            ("refuse", "message"),
            ("send", "message"),
            ("view", "message"),
        ]
        assert Message.objects.filter(channel="openai", role="user").count() == 1


def test_the_reply_is_found_by_the_id_of_the_completion(chat: Chat) -> None:
    message_id = UUID(chat.ask("Hello").json()["id"].removeprefix("chatcmpl-"))
    found = chat.program.get(f"/api/v1/messages/{message_id}/").json()
    assert (found["channel"], found["reply"]["content"]) == ("openai", "1. Hello!")
