"""A client's history: sent to the language model within its share of the prompt, and not stored."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from konstruct.interfaces.openai.completions import ASSISTANT_BEGINS, MAX_CHARACTERS_PER_TOKEN
from konstruct.orchestrator import builder
from konstruct.orchestrator.agents import create_agent, update_agent
from konstruct.orchestrator.models import AnswerOptions
from memory import indexing
from memory.context import WorkingContextCompiler, tokens
from memory.context.chat import CONTEXT_OPENING
from memory.models import RecallEvent
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests.konstruct.conftest import Program
from tests.konstruct.interfaces.openai.conftest import CHAT, Chat
from tests.konstruct.interfaces.openai.test_chat_completions import error_of
from tests.konstruct.interfaces.openai.test_tools import Client, calling, client, results, saying
from tests.memory.recall_traces import trace_of

__all__ = ["client"]

THREAD = {"metadata": {"thread_id": "t"}}


def turns(*contents: str) -> list[dict[str, str]]:
    """Return messages of the user and the assistant, in turn."""
    roles = ("user", "assistant")
    return [{"role": roles[n % 2], "content": text} for n, text in enumerate(contents)]


def post(client: Client, messages: Sequence[Any], **parameters: Any) -> Any:
    response = client.post(*messages, tools=parameters.pop("tools", ()), **parameters)
    assert response.status_code == 200, response.content
    return response.json()


def sent(client: Client) -> list[dict[str, str]]:
    """Return the messages of the last prompt without system messages."""
    messages = client.llm.requests[-1].body["messages"]
    return [message for message in messages if message["role"] != "system"]


def memories_sent(client: Client) -> str:
    return "".join(
        message["content"]
        for message in client.llm.requests[-1].body["messages"]
        if message["content"].startswith(CONTEXT_OPENING)
    )


def test_history_is_sent_to_the_model_and_only_the_last_message_is_stored(client: Client) -> None:
    few_shot = turns("2 + 2?", "four", "3 + 3?", "six", "4 + 4?")
    document = post(client, [{"role": "system", "content": "Use words."}, *few_shot])
    assert sent(client) == few_shot
    assert "konstruct" not in document
    assert client.transcript() == [("user", "4 + 4?"), ("assistant", "It is sunny.")]
    indexing.drain(client.program.tenant.id)
    with tenant_scope(client.program.tenant.id):
        assert not AnswerOptions.objects.exists()
        sections = trace_of(RecallEvent.objects.get())["prompt"]["sections"]
    messages = [message for section in sections for message in section["messages"]]
    assert messages == client.llm.requests[-1].body["messages"]


def test_summary_as_the_first_turn_of_the_assistant_is_sent(client: Client) -> None:
    summary = {"role": "assistant", "content": "Summary: Maria is called Mia."}
    question = {"role": "user", "content": "My name?"}
    post(client, [summary, question])
    opening = {"role": "user", "content": ASSISTANT_BEGINS}
    assert sent(client) == [opening, summary, question]


def test_same_history_asks_the_model_again_unless_the_idempotency_key_is_the_same(
    client: Client,
) -> None:
    messages = turns("one", "two", "three")
    client.llm.answers = [saying("A"), saying("B"), saying("C")]
    answers = [post(client, messages)["choices"][0]["message"]["content"] for _ in range(2)]
    body = {"model": "ada", "user": "maria", "messages": messages}
    headers = {"Idempotency-Key": "k"}
    keyed = [client.program.post(CHAT, body, headers=headers).json() for _ in range(2)]
    answers += [document["choices"][0]["message"]["content"] for document in keyed]
    assert answers == ["A", "B", "C", "C"]
    assert keyed[1]["konstruct"] == {"repeated": True}
    assert len(client.llm.requests) == 3


def test_window_is_for_a_named_thread_without_a_history(client: Client) -> None:
    post(client, turns("I am Maria."), **THREAD)
    post(client, turns("My name?"), **THREAD)
    contents = [message["content"].rpartition("] ")[2] for message in sent(client)]
    assert contents == ["I am Maria.", "It is sunny.", "My name?"]
    indexing.drain(client.program.tenant.id)
    post(client, turns("My name?"))
    assert sent(client) == turns("My name?")
    assert "I am Maria." in memories_sent(client)  # the user's memory is the same in all threads
    post(client, turns("Hi.", "Hi!", "My name?"), **THREAD)
    assert sent(client) == turns("Hi.", "Hi!", "My name?")


def test_turn_of_the_history_is_not_recalled_as_well(client: Client) -> None:
    post(client, turns("My sister lives in Porto."))
    indexing.drain(client.program.tenant.id)
    post(client, turns("My sister lives in Porto.", "It is sunny.", "Where does my sister live?"))
    assert "Porto" not in memories_sent(client)
    post(client, turns("Where does my sister live?"))
    assert "Porto" in memories_sent(client)


def test_oldest_turns_are_cut_to_the_share_and_the_answer_says_so(client: Client) -> None:
    share = WorkingContextCompiler("fast").share("session_history")
    history = turns(*(f"{number} " + "sun and rain " * 100 for number in range(40)))
    document = post(client, [*history, {"role": "user", "content": "And now?"}])
    *kept, question = sent(client)
    assert kept == history[-len(kept) :]
    assert question["content"] == "And now?"
    size = sum(tokens.count(turn["content"]) + 4 for turn in kept)
    assert share - 2 * 310 < size <= share
    (ignored,) = document["konstruct"]["ignored"]
    assert ignored["param"] == "messages"
    assert f"left out: {40 - len(kept)}, shortened: 0." in ignored["reason"]
    pictures = [{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": "See."}]
    long = {"role": "assistant", "content": "sun and rain " * 10_000}
    document = post(client, [{"role": "user", "content": pictures}, long, *turns("Well?")])
    assert sent(client)[0]["content"] == "See."
    assert "truncated" in sent(client)[1]["content"]
    first, second = (ignored["reason"] for ignored in document["konstruct"]["ignored"])
    assert "left out: 0, shortened: 1." in first
    assert "images, audio or files: 1. Only their text" in second


@pytest.mark.slow
@pytest.mark.parametrize("text", ["a" * 2_300_000, "x ", ""], ids=["long", "many", "blank"])
def test_enormous_history_is_cut_before_its_tokens_are_counted(client: Client, text: str) -> None:
    message = {"role": "assistant", "content": text}
    count = 2_300_000 // len(json.dumps(message))
    document = post(client, [*turns("Hi"), *[message] * max(count, 1), *turns("Well?")])
    assert sent(client)[-1]["content"].endswith("Well?")
    share = WorkingContextCompiler("fast").share("session_history")
    assert sum(len(turn["content"]) for turn in sent(client)) < share * MAX_CHARACTERS_PER_TOKEN
    assert ("konstruct" in document) == bool(text)


def test_calls_and_results_of_the_history_are_texts_of_the_assistant(client: Client) -> None:
    function = {"name": "weather", "arguments": '{"place": "Porto"}'}
    call = {"id": "x1", "type": "function", "function": function}
    odd = [5, {"function": None}, {"function": {"name": {}}}]
    history = [
        *turns("How is it?"),
        {"role": "assistant", "content": None, "tool_calls": [call, *odd]},
        {"role": "tool", "tool_call_id": "x1", "content": "22 degrees"},
        {"role": "assistant", "content": "Warm."},
    ]
    post(client, [*history, *turns("And now?")])
    text = '(Called weather with {"place": "Porto"})\n\n(Result of weather: 22 degrees)\n\nWarm.'
    assert sent(client) == turns("How is it?", text, "And now?")


def test_history_before_a_call_stays_with_its_results(client: Client) -> None:
    client.llm.answers = [calling("weather")]
    before = turns("I am in Porto.", "Fine.", "How is the weather?")
    choice = client.ask(*before)
    assert client.ask(*before, *results(choice, "22"))["message"]["content"] == "It is sunny."
    roles = [message["role"] for message in sent(client)]
    assert roles == ["user", "assistant", "user", "assistant", "tool"]
    assert sent(client)[:3] == before
    assert len(client.transcript()) == 2


def test_replaced_builder_gets_the_history(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def build(agent: Any, current: str, recent: Any, relevant: Any) -> list[dict[str, str]]:
        seen.extend((turn["role"], turn["content"]) for turn in recent)
        return [{"role": "user", "content": f"{len(recent)} turns, then {current}"}]

    monkeypatch.setattr(builder, "build_messages_with_memory", build)
    post(client, turns("one", "two", "three"))
    assert seen == [("user", "one"), ("assistant", "two")]
    assert sent(client) == [{"role": "user", "content": "2 turns, then three"}]


def test_agent_that_takes_over_gets_the_history(client: Client) -> None:
    with tenant_scope(client.program.tenant.id):
        bob = create_agent(tenant_id=client.program.tenant.id, name="bob")
        update_agent(client.program.agent, hand_over_on={"invoice": str(bob.id)})
    post(client, turns("one", "two", "My invoice?"))
    assert sent(client) == turns("one", "two", "My invoice?")


def test_threads_of_other_tenants_and_users_have_other_windows(
    client: Client, make_program: Callable[..., Program], tenant_b: Tenant
) -> None:
    post(client, turns("The code is heliotrope."), **THREAD)
    others = [
        replace(client, program=make_program(tenant_b)),
        replace(client, program=client.program.with_key(user_id="paul")),
    ]
    for other, user in zip(others, ("maria", "paul"), strict=True):
        post(other, turns("The code?"), user=user, **THREAD)
        assert "heliotrope" not in json.dumps(client.llm.requests[-1].body)
    error = error_of(others[1].post(*turns("The code?"), tools=(), **THREAD), 403)
    assert error["code"] == "outside_of_key"


def test_late_answer_is_not_retried_by_the_library_without_a_key(chat: Chat) -> None:
    chat.answers = False
    headers = [{}, {"Idempotency-Key": "k"}]
    late = [chat.ask("Hello", headers=of_request) for of_request in headers]
    assert [response.status_code for response in late] == [504, 504]
    assert [response.headers.get("X-Should-Retry") for response in late] == ["false", None]
