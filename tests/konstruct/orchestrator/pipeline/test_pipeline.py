"""The pipeline of a message, on the real database, cache and embedding model."""

import os
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from django.db.models.functions import Now

from konstruct.llm.client import MAX_ATTEMPTS
from konstruct.logs import RedactingFormatter
from konstruct.orchestrator import pipeline
from konstruct.orchestrator.exceptions import MessageNotFound, NothingToRetry
from konstruct.orchestrator.messages import konstruct_message
from konstruct.orchestrator.models import PendingReply
from konstruct.orchestrator.pipeline import respond
from konstruct.orchestrator.pipeline.accept import read_snapshot, retry_reply
from konstruct.orchestrator.pipeline.respond import Draft
from konstruct.orchestrator.replies import REPLIES
from memory import indexing as embedding_outbox
from memory.conversations.short_term import get_recent_messages
from memory.models import Message, PendingEmbedding, RecallEvent, Role
from tenants.context import tenant_scope
from tests.jobs import claimable, expire_leases, work
from tests.konstruct.conftest import MESSAGES, Program, SendMessage
from tests.konstruct.orchestrator.conftest import handle
from tests.konstruct.running import run_python
from tests.memory.recall_traces import trace_of
from tests.servers.llm import Answer, LLMServer


@pytest.fixture
def send(send_message: SendMessage) -> SendMessage:
    """Accept a message of maria."""
    return partial(send_message, name="Maria", handled=False)


def window(message: Message) -> list[tuple[str, str]]:
    turns = get_recent_messages(message.tenant_id, message.agent_id, message.user_id)
    return [(turn["role"], turn["content"]) for turn in turns]


def replies() -> list[tuple[str, str]]:
    """Return every answered message with its reply, in the order of the replies."""
    answered = Message.objects.filter(in_reply_to__isnull=False).order_by("number")
    return [(reply.in_reply_to.content, reply.content) for reply in answered]


def make_due(message: Message) -> None:
    """Make its next attempt due."""
    past = Now() - timedelta(seconds=1)
    PendingReply.objects.filter(pk=message.id, failed_at=None).update(due_at=past, sweep_at=past)
    assert message.id in claimable(REPLIES)


def test_a_message_gets_a_reply_and_both_turns_are_remembered(
    send: SendMessage, program: Program
) -> None:
    message = send("Hello")
    handle(message)
    reply = Message.objects.get(in_reply_to=message)
    assert (reply.role, reply.content, reply.name) == ("assistant", "Noted.", "ada")
    assert (reply.agent_id, reply.user_id) == (message.agent_id, message.user_id)
    assert (reply.thread_id, reply.channel) == (message.thread_id, message.channel)
    assert window(message) == [("user", "Hello"), ("assistant", "Noted.")]
    assert not PendingReply.objects.exists()
    assert set(PendingEmbedding.objects.values_list("message_id", flat=True)) == {
        message.id,
        reply.id,
    }


def test_running_twice_answers_once(send: SendMessage, llm_server: LLMServer) -> None:
    message = send()
    handle(message)
    handle(message)
    assert len(llm_server.requests) == 1
    assert replies() == [("Hello", "Noted.")]
    assert window(message) == [("user", "Hello"), ("assistant", "Noted.")]


def test_stored_reply_is_finished_without_a_second_model_call(
    send: SendMessage, llm_server: LLMServer, program: Program
) -> None:
    message = send()
    respond.record_reply(konstruct_message(message), Draft(program.agent, "Noted."))
    handle(message)
    assert llm_server.requests == []
    assert replies() == [("Hello", "Noted.")]
    assert window(message) == [("user", "Hello"), ("assistant", "Noted.")]
    assert not PendingReply.objects.exists()


def test_first_reply_of_two_workers_is_stored(
    send: SendMessage, llm_server: LLMServer, program: Program
) -> None:
    """The first one lost its lease after it had recorded its reply."""
    message = konstruct_message(send())
    for content, is_late in (("First.", True), ("Second.", False)):
        lease = REPLIES.lease(message.id)
        assert lease is not None
        reply = read_snapshot(message.id).reply or respond.record_reply(
            message, Draft(program.agent, content)
        )
        assert reply.content == "First."
        respond.append_to_window(message, reply)
        if is_late:
            expire_leases()
        else:
            respond.finish(read_snapshot(message.id), reply, lease)
    assert replies() == [("Hello", "First.")]
    assert window(send("next")) == [("user", "Hello"), ("assistant", "First.")]


def test_the_prompt_holds_agent_memories_window_and_message(
    send: SendMessage, llm_server: LLMServer, program: Program
) -> None:
    message = send("I have adopted a beagle called Rex.", thread_id="long ago")
    handle(message)
    embedding_outbox.drain(program.tenant.id)
    for number in range(10):
        handle(send(f"Small talk about the weather, part {number}."))
    question = send("What is my beagle called?", thread_id="today")
    handle(question)
    prompt = llm_server.requests[-1].body["messages"]
    assert prompt[0]["content"].startswith("You are Ada.")
    assert prompt[1]["content"].splitlines()[2] == (
        f"- [{message.created_at:%A, %Y-%m-%d %H:%M}] Maria: I have adopted a beagle called Rex."
    )
    assert [turn["role"] for turn in prompt[2:]] == ["user", "assistant"] * 10 + ["user"]
    assert prompt[-1] == {"role": "user", "content": "What is my beagle called?"}
    embedding_outbox.drain(program.tenant.id)
    trace = trace_of(RecallEvent.objects.get(reply__in_reply_to=question))
    assert (trace["query"], trace["hits"][0]["message_id"]) == (question.content, str(message.id))
    assert trace["injected"][0].endswith("Maria: I have adopted a beagle called Rex.")


def test_memory_follows_a_user_across_threads_only(
    send: SendMessage, llm_server: LLMServer
) -> None:
    handle(send("I live in Porto.", thread_id="t1"))
    handle(send("And you?", thread_id="t2"))
    handle(send("And you?", user_id="eve"))
    assert [len(request.body["messages"]) for request in llm_server.requests] == [2, 4, 2]


def test_failure_of_the_language_model_is_recorded_and_retried_later(
    send: SendMessage, llm_server: LLMServer
) -> None:
    llm_server.answers = [Answer("busy", 429, {"Retry-After": "60"})]
    message = send()
    handle(message)
    pending = PendingReply.objects.get()
    assert (pending.attempts, pending.failed_at) == (1, None)
    assert "(HTTP 429)" in pending.last_error
    assert (pending.due_at - pending.created_at) >= timedelta(seconds=59)
    handle(message)
    assert (len(llm_server.requests), replies()) == (1, [])
    make_due(message)
    handle(message)
    assert replies() == [("Hello", "Noted.")]
    assert not PendingReply.objects.exists()


@pytest.mark.slow
def test_reply_fails_after_max_attempts_and_can_be_retried(
    send: SendMessage, llm_server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(vars(REPLIES), "max_attempts", 3)
    llm_server.default = Answer("<html>", 200)
    message = send()
    handle(message)
    for _ in range(2):
        make_due(message)
        handle(message)
    pending = PendingReply.objects.get()
    assert (pending.attempts, len(llm_server.requests)) == (3, 3 * MAX_ATTEMPTS)
    assert pending.failed_at is not None
    assert "it is not JSON" in pending.last_error
    assert claimable(REPLIES) == []
    llm_server.default = Answer({"content": "Back again."})
    retry_reply(message.id, tenant_id=message.tenant_id)
    handle(message)
    assert replies() == [("Hello", "Back again.")]


def test_a_refusal_of_the_model_is_the_reply(send: SendMessage, llm_server: LLMServer) -> None:
    refused = {
        "message": {"content": None, "refusal": "I cannot."},
        "finish_reason": "content_filter",
    }
    llm_server.answers = [Answer({"choices": [refused]})]
    handle(send())
    reply = Message.objects.get(role=Role.ASSISTANT)
    assert (reply.content, reply.finish_reason) == ("I cannot.", "content_filter")
    assert len(llm_server.requests) == 1


def test_refusal_fails_at_once_and_is_not_logged_with_the_message(
    send: SendMessage, llm_server: LLMServer, caplog: pytest.LogCaptureFixture
) -> None:
    llm_server.default = Answer({"error": {"message": "flagged: my zebra is ill"}}, 400)
    handle(send("My zebra is ill"))
    pending = PendingReply.objects.get()
    assert pending.failed_at is not None
    assert "(HTTP 400)" in pending.last_error
    logged = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert any("flagged" in line for line in logged)
    assert "zebra" not in pending.last_error + "".join(logged)


def test_only_a_failed_reply_can_be_retried(send: SendMessage) -> None:
    message = send()
    with pytest.raises(NothingToRetry, match=f"message {message.id} was not given up"):
        retry_reply(message.id, tenant_id=message.tenant_id)


def test_an_unknown_message_is_an_error(program: Program) -> None:
    with pytest.raises(MessageNotFound, match="No user's message has the id"):
        pipeline.handle(tenant_id=program.tenant.id, message_id=UUID(int=1))


def test_a_thread_is_answered_oldest_first(send: SendMessage) -> None:
    send("first")
    send("second")
    send("elsewhere", thread_id="t2")
    handle(send("third"))
    assert replies() == [("first", "Noted."), ("second", "Noted."), ("third", "Noted.")]


def test_one_message_of_a_thread_is_claimed_at_a_time(send: SendMessage) -> None:
    first, second = send("first"), send("second")
    elsewhere = send("elsewhere", thread_id="t2")
    assert claimable(REPLIES) == [first.id, elsewhere.id]
    REPLIES.finish(first.id)
    assert claimable(REPLIES) == [second.id, elsewhere.id]
    work("reply")
    assert sorted(replies()) == [(text, "Noted.") for text in ("elsewhere", "second")]


def test_a_message_that_waits_for_its_next_try_does_not_hold_up_its_thread(
    send: SendMessage, llm_server: LLMServer
) -> None:
    llm_server.answers = [Answer("busy", 429, {"Retry-After": "60"})]
    first = send("first")
    handle(first)
    handle(send("second"))
    assert replies() == [("second", "Noted.")]
    make_due(first)
    handle(first)
    assert replies() == [("second", "Noted."), ("first", "Noted.")]


MODEL_ERROR = "tenant 7 has used up its quota of gpt-x"
PASSWORD = "pass-word"


@pytest.fixture
def failing(program_a: Program, llm_server: LLMServer, settings: Any) -> LLMServer:
    """A language model with a password, which refuses with its own message."""
    settings.LLM_POOL_URL = llm_server.url.replace("://", f"://user:{PASSWORD}@")
    llm_server.default = Answer(f"{MODEL_ERROR} at {settings.LLM_POOL_URL}", 400)
    return llm_server


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (Answer(MODEL_ERROR, 400), "llm_refused"),
        (Answer(MODEL_ERROR, 404), "llm_refused"),
        (Answer(MODEL_ERROR, 503, {"Retry-After": "60"}), "llm_unavailable"),
        (Answer(MODEL_ERROR), "llm_reply_invalid"),
        (Answer({"nothing": MODEL_ERROR}), "llm_reply_invalid"),
        (None, "llm_unavailable"),
    ],
)
def test_a_caller_gets_a_code_and_a_plain_sentence(
    program_a: Program,
    failing: LLMServer,
    settings: Any,
    caplog: pytest.LogCaptureFixture,
    answer: Answer | None,
    code: str,
) -> None:
    if answer is None:
        settings.LLM_POOL_URL = f"http://user:{PASSWORD}@127.0.0.1:1"
    else:
        failing.default = answer
    of_user = program_a.with_key(user_id="maria")
    sent = of_user.send().json()["id"]
    pipeline.handle(tenant_id=program_a.tenant.id, message_id=UUID(sent))
    for program in (program_a, of_user):
        read_back = program.get(f"{MESSAGES}{sent}/")
        assert read_back.json()["error"]["code"] == code
        assert read_back.json()["error"]["detail"].startswith("The language model")
        for hidden in (MODEL_ERROR, PASSWORD, "127.0.0.1"):
            assert hidden not in read_back.content.decode()
    with tenant_scope(program_a.tenant.id):
        assert MODEL_ERROR not in PendingReply.objects.get().last_error
    # Operators read the message in the log.
    assert answer is None or MODEL_ERROR in caplog.text
    lines = [RedactingFormatter("%(message)s").format(record) for record in caplog.records]
    assert PASSWORD not in "\n".join(lines)


def test_internal_error_is_reported_by_its_type(
    program_a: Program, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*args: object, **options: object) -> None:
        raise ValueError("Failing row contains (bob, secret)")

    monkeypatch.setattr(respond, "gather_context", fail)
    sent = program_a.send().json()["id"]
    pipeline.handle(tenant_id=program_a.tenant.id, message_id=UUID(sent))
    error = program_a.get(f"{MESSAGES}{sent}/").json()["error"]
    assert error["code"] == "internal_error"
    assert (
        error["detail"] == "An error inside Konstruct (ValueError). The operators' log says more."
    )
    assert "Failing row contains (bob, secret)" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "password"), [("DATABASE_URL", "pa/ssword"), ("LLM_POOL_URL", "pa#ssword")]
)
def test_invalid_url_is_refused_and_not_shown(name: str, password: str) -> None:
    environment = {**os.environ, "SECRET_KEY": "x" * 50, name: f"redis://user:{password}@host/0"}
    ran = run_python("-c", "import konstruct.settings", env=environment)
    assert ran.returncode != 0
    assert ran.stderr.strip() == (
        f"konstruct: {name} is not a URL. Percent-encode special characters in its user and "
        "password."
    )
