"""The public functions are the path of a message: replacing one changes the agent's behaviour."""

import functools
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock
from uuid import uuid4

import pytest

from konstruct.orchestrator import agents, builder, runner
from konstruct.orchestrator.models import Agent, AnswerOptions, ModelCall
from konstruct.orchestrator.pipeline import respond
from konstruct.orchestrator.pipeline.accept import read_snapshot
from konstruct.orchestrator.replies import text_so_far, watch
from konstruct.orchestrator.tasks import handle_message
from memory import indexing as embedding_outbox, recall, short_term, tasks as memory_tasks
from memory.conversations.window_store import Turn
from memory.embeddings import embed
from memory.long_term import store_embedding
from memory.models import Message, RecallEvent
from memory.recall import RecallResult
from tests.konstruct.conftest import Program, SendMessage
from tests.memory.recall_traces import trace_of
from tests.servers.llm import LLMServer


def answered(message: Message) -> str:
    """Answer the message with a worker's task. Return the text of the reply."""
    handle_message(str(message.tenant_id), str(message.pk))
    return Message.objects.get(in_reply_to=message).content


def test_replaced_run_agent_makes_the_reply(
    send_message: SendMessage, llm_server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = []

    def canned(msg: Any, agent: Any, messages: Any = None) -> str:
        requests.append((msg.content, agent.name, messages[-1]))
        return "Canned."

    monkeypatch.setattr(runner, "run_agent", canned)
    assert answered(send_message("Hello", handled=False)) == "Canned."
    assert requests == [("Hello", "ada", {"role": "user", "content": "Hello"})]
    assert llm_server.requests == []


@pytest.mark.parametrize("with_tools", [False, True])
def test_wrapped_run_agent_changes_the_reply_and_its_stream(
    send_message: SendMessage,
    program: Program,
    llm_server: LLMServer,
    monkeypatch: pytest.MonkeyPatch,
    with_tools: bool,
) -> None:
    if with_tools:
        Agent.objects.update(tools=["remember_fact"])
    original = runner.run_agent

    @functools.wraps(original)
    def signed(msg: Any, agent: Any, messages: Any = None) -> str:
        return f"{original(msg, agent, messages)} Yours, Ada."

    monkeypatch.setattr(runner, "run_agent", signed)
    message = send_message("Hello", handled=False)
    watch(program.tenant.id, message.pk)
    assert answered(message) == "Noted. Yours, Ada."
    assert text_so_far(program.tenant.id, message.pk) == (
        "" if with_tools else "Noted. Yours, Ada."
    )
    assert ("tools" in llm_server.requests[0].body) is with_tools


def test_replaced_builder_makes_the_sent_and_stored_prompt(
    send_message: SendMessage,
    program: Program,
    llm_server: LLMServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    send_message("I live in Bonn.")
    values = []

    def own(agent: Any, current_message: str, recent_messages: Any, relevant_context: Any) -> Any:
        values.append((agent.name, current_message, recent_messages, relevant_context))
        return [
            {"role": "system", "content": "Speak like a pirate."},
            {"role": "user", "content": current_message},
        ]

    monkeypatch.setattr(builder, "build_messages_with_memory", own)
    answered(send_message("Where do I live?", handled=False))
    sent = llm_server.requests[-1].body["messages"]
    assert sent == [
        {"role": "system", "content": "Speak like a pirate."},
        {"role": "user", "content": "Where do I live?"},
    ]
    ((name, current, recent, context),) = values
    assert (name, current, context) == ("ada", "Where do I live?", [])
    assert [(turn["role"], turn["content"]) for turn in recent] == [
        ("user", "I live in Bonn."),
        ("assistant", "Noted."),
    ]
    embedding_outbox.drain(program.tenant.id)
    kept = trace_of(RecallEvent.objects.order_by("-reply__number")[0])["prompt"]
    sections = {section["name"]: section for section in kept["sections"]}
    assert [message for section in sections.values() for message in section["messages"]] == sent
    assert sections["system"]["messages"] == sent[:1]
    assert kept["tokens"] == sum(section["tokens"] for section in sections.values())


def test_a_wrapped_builder_keeps_the_budget_the_date_and_the_clauses(
    send_message: SendMessage, llm_server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    Agent.objects.update(system_prompt="Be kind. " * 9000)
    original = builder.build_messages_with_memory

    def asked_twice(agent: Any, current: str, recent: Any, context: Any) -> Any:
        agent = replace_prompt(agent, f"You are a pirate. {agent.system_prompt}")
        return original(agent, f"{current} {current}", recent, [*context, "Bonn is rainy."])

    monkeypatch.setattr(builder, "build_messages_with_memory", asked_twice)
    answered(send_message("Where?", handled=False))
    system, memory, user = llm_server.requests[-1].body["messages"]
    assert system["content"].startswith("You are a pirate. Be kind.")
    assert "The current date and time is " in system["content"]
    assert len(system["content"]) < 20_000
    assert memory["content"].endswith("\n- Bonn is rainy.")
    assert user["content"] == "Where? Where?"


def test_wrappers_of_builder_and_runner_pass_on_all_parts_of_the_request(
    send_message: SendMessage, llm_server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    Agent.objects.update(tools=["remember_fact"])
    build, run = builder.build_messages_with_memory, runner.run_agent

    def own_build(agent: Any, current: str, recent: Any, context: Any) -> Any:
        return build(agent, current, recent, context)

    def own_run(msg: Any, agent: Any, messages: Any = None) -> str:
        return run(msg, agent, messages)

    monkeypatch.setattr(builder, "build_messages_with_memory", own_build)
    monkeypatch.setattr(runner, "run_agent", own_run)
    message = send_message("Hello", handled=False)
    AnswerOptions(options={"seed": 1}, instructions=["Be brief."]).save_for(message)
    assert answered(message) == "Noted."
    sent = llm_server.requests[-1].body
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["remember_fact"]
    assert sent["seed"] == 1
    assert sent["messages"][1]["content"] == f"{builder.INSTRUCTIONS_OPENING}\n\nBe brief."
    call = ModelCall.objects.get()
    assert (call.message_id, call.agent_id, call.purpose) == (message.pk, message.agent_id, "reply")


def test_a_wrapped_load_of_the_agent_changes_the_prompt(
    send_message: SendMessage, llm_server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = agents.load_agent_for_tenant

    def load(tenant_id: Any, agent_id: Any) -> Agent:
        agent = copy(original(tenant_id, agent_id))
        agent.system_prompt = "You are a pirate."
        return agent

    monkeypatch.setattr(agents, "load_agent_for_tenant", load)
    answered(send_message("Where?", handled=False))
    system = llm_server.requests[-1].body["messages"][0]["content"]
    assert system.startswith("You are a pirate.")


def test_a_replaced_system_prompt_is_in_every_prompt(
    send_message: SendMessage,
    program: Program,
    llm_server: LLMServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(builder, "build_system_prompt", lambda agent: f"{agent.name} is a pirate.")
    answered(send_message("Where?", handled=False))
    runner.run_agent(SimpleNamespace(content="Where?"), program.agent)
    of_reply, alone = (request.body["messages"][0]["content"] for request in llm_server.requests)
    opening, date = of_reply.split("\n\n")
    assert opening == alone == "ada is a pirate."
    assert date.startswith("The current date and time is ")


def test_both_turns_are_appended_once_by_append_message_on_repeated_runs(
    send_message: SendMessage, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    appended = []
    original = short_term.append_message

    def spy(tenant_id: Any, agent_id: Any, user_id: Any, role: str, content: str, window: int = 20):
        appended.append((tenant_id, agent_id, user_id, role, content))
        return original(tenant_id, agent_id, user_id, role, content.upper(), window)

    monkeypatch.setattr(short_term, "append_message", spy)
    message = send_message("Hello")
    scope = program.tenant.id, program.agent.id, "maria"
    assert appended == [(*scope, "user", "Hello"), (*scope, "assistant", "Noted.")]
    for _ in range(2):
        turns = short_term.get_recent_messages(*scope)
        assert [(turn["role"], turn["content"]) for turn in turns] == [
            ("user", "HELLO"),
            ("assistant", "NOTED."),
        ]
        reply = Message.objects.get(in_reply_to=message)
        short_term.append_turns(*scope, [Turn.of(message), Turn.of(reply)])


def test_a_replaced_append_message_keeps_turns_out_of_the_window(
    send_message: SendMessage,
    program: Program,
    llm_server: LLMServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scope = program.tenant.id, program.agent.id, "maria"
    send_message("Hello")
    monkeypatch.setattr(short_term, "append_message", lambda *args: None)
    send_message("My PIN is 1234.")
    assert [turn["content"] for turn in short_term.get_recent_messages(*scope)] == [
        "Hello",
        "Noted.",
    ]


def test_replaced_window_and_recall_fill_the_prompt(
    send_message: SendMessage, llm_server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = [
        {"role": "user", "content": "Call me Captain."},
        {"role": "assistant", "content": "Aye."},
    ]
    requests = []

    def recalled(tenant_id: Any, agent_id: Any, user_id: str, query: str, **rest: Any) -> Any:
        requests.append(query)
        hit = SimpleNamespace(
            message_id=uuid4(),
            content="I sail on Fridays.",
            name="Maria",
            role="user",
            created_at=datetime(2026, 3, 14, 9, 30, tzinfo=UTC),
            neighbours=(),
        )
        return replace(original(tenant_id, agent_id, user_id, query, **rest), hits=(hit,))

    original = recall.recall
    monkeypatch.setattr(short_term, "get_recent_messages", lambda *args, **kwargs: window)
    monkeypatch.setattr(recall, "recall", recalled)
    monkeypatch.setattr(RecallResult, "trace", lambda self, injected: {})
    message = send_message("When do I sail?", handled=False)
    snapshot = read_snapshot(message.id)
    gathered = respond.gather_context(snapshot.message, snapshot.thread_agent)
    prompt = respond.build_prompt(snapshot.thread_agent, gathered).messages
    assert prompt[1]["content"].endswith(
        "\n- [Saturday, 2026-03-14 09:30] Maria: I sail on Fridays."
    )
    assert prompt[2:] == [*window, {"role": "user", "content": "When do I sail?"}]
    assert requests == ["When do I sail?"]


def test_embed_and_store_gets_both_turns(
    send_message: SendMessage,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Any,
) -> None:
    task = Mock()
    monkeypatch.setattr(memory_tasks, "embed_and_store", task)
    with django_capture_on_commit_callbacks(execute=True):
        message = send_message("Hello")
    reply = Message.objects.get(in_reply_to=message)
    ((arguments, _),) = (call for call in task.apply_async.call_args_list)
    assert arguments == ((str(message.tenant_id), [str(message.pk), str(reply.pk)]),)


def test_a_stored_text_is_in_the_prompt_and_in_its_trace(
    send_message: SendMessage, program: Program, llm_server: LLMServer
) -> None:
    text = "My sister Zoe moved to Lisbon."
    (vector,) = embed([text])
    store_embedding(program.tenant.id, program.agent.id, "maria", text, "user", vector)
    answered(send_message("Where does my sister live?", handled=False))
    memory = llm_server.requests[-1].body["messages"][1]
    assert memory["content"].endswith(f"] user: {text}")
    embedding_outbox.drain(program.tenant.id)
    (hit,) = trace_of(RecallEvent.objects.get())["hits"]
    assert hit["content"] == text


def replace_prompt(agent: Agent, system_prompt: str) -> Agent:
    changed = copy(agent)
    changed.system_prompt = system_prompt
    return changed
