"""Tool calls: requested, approved in every way, run at most once, and returned to the model."""

import json
import threading
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.exceptions import ValidationError
from django.db import connections
from django.db.models.functions import Now
from django_redis import get_redis_connection

from konstruct.consistency import HELD_WITHOUT_QUESTION, LOST, find
from konstruct.orchestrator import tool_calls
from konstruct.orchestrator.exceptions import AlreadyDecided, RowNotFound
from konstruct.orchestrator.models import Agent, PendingReply, ToolCall
from konstruct.orchestrator.pipeline.accept import read_snapshot
from konstruct.orchestrator.replies import Status
from memory.models import MemoryEntry
from tenants.context import connection, tenant_scope
from tests.konstruct.conftest import Program, SendMessage
from tests.konstruct.orchestrator.conftest import handle, reply, status
from tests.servers.llm import Answer, LLMServer


def wants(*facts: str, name: str = "remember_fact", openai: bool = False) -> Answer:
    """Return a language model's answer that remembers facts."""
    calls = [
        {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps({"fact": fact})},
        }
        for number, fact in enumerate(facts)
    ]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    return Answer({"choices": [{"message": message}]} if openai else message)


@pytest.fixture
def able(program: Program) -> Program:
    """Allow the program's agent to remember facts."""
    Agent.objects.update(tools=["remember_fact"])
    return program


def decide(call: ToolCall, approve: bool, **options: Any) -> ToolCall:
    return tool_calls.decide(call.tenant_id, call.pk, approve, by="tests", **options)


def facts() -> list[tuple[UUID | None, str | None, str]]:
    return list(MemoryEntry.objects.values_list("agent_id", "user_id", "content"))


@pytest.mark.parametrize("openai", [False, True])
def test_approved_tool_call_runs_and_its_result_reaches_the_model(
    send_message: SendMessage, able: Program, llm_server: LLMServer, settings: Any, openai: bool
) -> None:
    if openai:
        settings.LLM_POOL_URL = f"{llm_server.url}/v1"
    llm_server.answers = [wants("Maria likes tea.", openai=openai), Answer({"content": "Done!"})]
    message = send_message("Please keep in mind that I like tea.")
    (call,) = tool_calls.calls_awaiting_consent(message.id)
    assert call.question == "May I remember this: “Maria likes tea.”?"
    assert (status(message), facts()) == (Status.AWAITING_CONSENT, [])
    later = send_message("And the weather?")
    assert reply(later) == "Done!"  # a message that waits for consent does not block others
    llm_server.answers = [Answer({"content": "I will remember it."})]
    decide(call, True, user_id="maria")
    handle(message)
    assert facts() == [(able.agent.id, "maria", "Maria likes tea.")]
    assert reply(message) == "I will remember it."
    offered, _, continued = (request.body for request in llm_server.requests)
    assert [tool["function"]["name"] for tool in offered["tools"]] == ["remember_fact"]
    assert [turn["role"] for turn in continued["messages"][-3:]] == ["user", "assistant", "tool"]
    assert (
        continued["messages"][-2]["tool_calls"][0]["id"]
        == continued["messages"][-1]["tool_call_id"]
    )
    assert continued["messages"][-1]["content"] == "Remembered."
    call.refresh_from_db()
    assert (call.state, call.decided_by) == ("done", "tests")
    assert find(LOST, HELD_WITHOUT_QUESTION) == []


def test_an_agent_without_tools_is_asked_as_ever(
    send_message: SendMessage, program: Program, llm_server: LLMServer
) -> None:
    send_message()
    assert set(llm_server.requests[0].body) == {"model_tier", "messages"}


def test_denied_tool_call_does_not_run(
    send_message: SendMessage, able: Program, llm_server: LLMServer
) -> None:
    llm_server.answers = [wants("Maria likes tea.")]
    message = send_message()
    (call,) = tool_calls.calls_awaiting_consent(message.id)
    decide(call, False)
    decide(call, False)
    with pytest.raises(AlreadyDecided, match="it is denied"):
        decide(call, True)
    handle(message)
    assert (facts(), reply(message)) == ([], "Noted.")
    assert llm_server.requests[-1].question == tool_calls.DENIED


def test_only_the_user_can_decide_in_a_channel(
    send_message: SendMessage, able: Program, program_b: Program, llm_server: LLMServer
) -> None:
    llm_server.answers = [wants("Maria likes tea.")]
    message = send_message()
    (call,) = tool_calls.calls_awaiting_consent(message.id)
    for attempt in (
        lambda: decide(call, True, user_id="eve"),
        lambda: tool_calls.decide(program_b.tenant.id, call.pk, True, by="b", user_id="maria"),
        lambda: tool_calls.decide(call.tenant_id, uuid4(), True, by="x"),
        lambda: tool_calls.decide(call.tenant_id, "x", True, by="x"),
    ):
        with pytest.raises(RowNotFound):
            attempt()
    call.refresh_from_db()
    assert (call.state, status(message)) == ("waiting", Status.AWAITING_CONSENT)


@pytest.mark.slow
@pytest.mark.parametrize(("words", "kept"), [("Yes, please!", 1), ("no", 0)])
def test_a_plain_yes_or_no_of_that_user_in_that_thread_decides(
    send_message: SendMessage, able: Program, llm_server: LLMServer, words: str, kept: int
) -> None:
    llm_server.answers = [wants("Maria likes tea.")]
    message = send_message()
    send_message(words, user_id="eve")
    send_message(words, thread_id="t2")
    get_redis_connection("default").flushdb()
    assert tool_calls.calls_awaiting_consent(message.id)
    asked_message = send_message(words)
    assert reply(asked_message) == (
        tool_calls.CONSENT_GIVEN_REPLY if kept else tool_calls.CONSENT_DENIED_REPLY
    )
    assert (len(facts()), reply(message)) == (kept, "Noted.")


def test_undecided_tool_call_expires(
    send_message: SendMessage, able: Program, llm_server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm_server.answers = [wants("Maria likes tea.")]
    message = send_message()
    (call,) = tool_calls.calls_awaiting_consent(message.id)
    assert tool_calls.expire_overdue(message.id) == 0
    held = PendingReply.objects.get()
    assert call.expires_at <= held.sweep_at < call.expires_at + timedelta(seconds=1)
    with connection.cursor() as cursor:  # the application cannot change the requesting user
        cursor.execute(
            "SELECT has_column_privilege(%s, 'expires_at', 'UPDATE')", [ToolCall._meta.db_table]
        )
        assert cursor.fetchone() == (False,)
    monkeypatch.setattr(
        type(ToolCall.objects.all()),
        "overdue",
        lambda rows: rows.waiting().filter(expires_at__gt=Now()),
    )
    with pytest.raises(AlreadyDecided, match="in time"):
        decide(call, True)
    handle(message)
    call.refresh_from_db()
    assert (call.state, facts(), reply(message)) == ("expired", [], "Noted.")
    assert llm_server.requests[-1].question == tool_calls.EXPIRED


def test_invalid_tool_call_is_reported_to_the_model_with_a_limit(
    send_message: SendMessage, able: Program, llm_server: LLMServer
) -> None:
    llm_server.default = wants("x", name="launch_rocket")
    odd = [
        Answer({"tool_calls": [{"function": {"name": "remember_fact", "arguments": arguments}}]})
        for arguments in ("{not json", {"fact": 7}, {"fact": "x", "user_id": "eve"})
    ]
    llm_server.answers = [*odd, wants("x", name="launch_rocket"), Answer({"content": "I give up."})]
    message = send_message()
    assert reply(message) == "I give up."
    results = [call.result for call in ToolCall.objects.of_message(message.id)]
    assert results == [
        "Error: the arguments are not a JSON object",
        "Error: fact=7 is blank; give one sentence",
        "Error: unknown argument 'user_id'; give `fact` alone",
        "Error: there is no tool 'launch_rocket' here; there are: remember_fact",
    ]
    assert llm_server.requests[-1].body["tool_choice"] == "none"
    assert facts() == []


def test_unknown_tool_cannot_be_assigned_to_an_agent() -> None:
    with pytest.raises(ValidationError, match="There is no tool 'rm'"):
        Agent(name="x", tools=["rm"]).clean()


def test_the_built_in_responder_asks_before_it_remembers(
    send_message: SendMessage, able: Program, settings: Any
) -> None:
    settings.LLM_POOL_URL = ""
    message = send_message("Please remember that my dog is called Rex.")
    assert status(message) is Status.AWAITING_CONSENT
    send_message("yes")
    assert facts() == [(able.agent.id, "maria", "my dog is called Rex.")]
    assert str(reply(message)).startswith("Remembered.")


@pytest.mark.django_db(transaction=True)
def test_concurrent_approvals_and_executions_run_the_tool_once(
    send_message: SendMessage, able: Program, llm_server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm_server.answers = [wants("Maria likes tea.")]
    message = send_message()
    (call,) = tool_calls.calls_awaiting_consent(message.id)
    ran: list[int] = []
    tool = tool_calls.TOOLS["remember_fact"]
    run = type(tool).run

    def counted(self: Any, *arguments: Any) -> str:
        ran.append(1)
        return run(self, *arguments)

    monkeypatch.setattr(type(tool), "run", counted)
    barrier = threading.Barrier(2)
    errors: list[Exception] = []

    def approve_and_do() -> None:
        try:
            barrier.wait(60)
            decide(call, True)
            with tenant_scope(message.tenant_id):
                barrier.wait(60)
                tool_calls.run_approved(read_snapshot(message.id).calls)
        except Exception as error:
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=approve_and_do) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (errors, ran) == ([], [1])
    handle(message)
    assert (len(facts()), reply(message)) == (1, "Noted.")
    assert not PendingReply.objects.exists()


def test_worker_killed_during_a_tool_call_leaves_no_effect(
    send_message: SendMessage, able: Program, llm_server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm_server.answers = [wants("Maria likes tea.")]
    message = send_message()
    (call,) = tool_calls.calls_awaiting_consent(message.id)
    decide(call, True)

    def killed(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ToolCall, "save", killed)
        with pytest.raises(KeyboardInterrupt):
            handle(message)
    assert facts() == []
    handle(message)
    assert (len(facts()), reply(message)) == (1, "Noted.")
    assert ToolCall.objects.get().done_at - call.created_at < timedelta(minutes=1)
