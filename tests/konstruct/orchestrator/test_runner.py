"""Running an agent: its request, its result, and the effect of a replacement."""

from copy import copy
from dataclasses import dataclass
from typing import Any

import pytest

from konstruct.llm.completions import Completion, LLMReplyInvalid, RequestedCall
from konstruct.orchestrator import builder, runner
from konstruct.orchestrator.runner import complete, run_agent
from tests.servers.llm import Answer, LLMServer, streamed

TOOL = {"type": "function", "function": {"name": "weather", "parameters": {}}}
CALL = {"id": "1", "function": {"name": "weather", "arguments": "{}"}}
USAGE = {"prompt_tokens": 3, "completion_tokens": 2}
PROMPT = [{"role": "user", "content": "Hello"}]


@dataclass(frozen=True)
class Ada:
    system_prompt: str = "You are Ada."
    identity: str = ""
    persona: str = ""
    model: str = "m"
    model_tier: str = "fast"


@dataclass(frozen=True)
class Hello:
    content: str = "Hello"


@pytest.fixture(autouse=True)
def _server(llm_server: LLMServer, settings: Any) -> None:
    settings.LLM_POOL_URL = llm_server.url + "/v1"


def test_without_messages_it_sends_the_system_prompt_and_the_message(llm_server: LLMServer) -> None:
    assert run_agent(Hello(), Ada()) == "Noted."
    assert llm_server.requests[0].body["messages"] == [
        {"role": "system", "content": builder.build_system_prompt(Ada())},
        {"role": "user", "content": "Hello"},
    ]


def test_given_messages_are_sent_unchanged(llm_server: LLMServer) -> None:
    run_agent(Hello(), Ada(), PROMPT)
    assert llm_server.requests[0].body == {"model": "m", "messages": PROMPT}


def test_tools_options_text_and_usage_are_of_the_agent_for_reply(llm_server: LLMServer) -> None:
    llm_server.answers = [streamed("It ", "rains.", {"tool_calls": [CALL]}, usage=USAGE)]
    pieces: list[str] = []
    completions: list[Completion] = []
    asked = builder.AgentForReply(
        Ada(),
        tools=[TOOL],
        options={"temperature": 0},
        on_text=pieces.append,
        on_completion=completions.append,
    )
    text = run_agent(Hello(), asked, PROMPT)
    assert (text, "".join(pieces)) == ("It rains.", "It rains.")
    assert completions == [
        Completion("It rains.", (RequestedCall("1", "weather", {}),), {**USAGE, "total_tokens": 5})
    ]
    sent = llm_server.requests[0].body
    assert (sent["tools"], sent["temperature"], sent["stream"]) == ([TOOL], 0, True)


def test_a_wrapper_that_asks_twice_is_charged_twice_and_takes_the_answer_it_returns(
    llm_server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = runner.run_agent

    def first_of_two(msg: Any, agent: Any, messages: Any = None) -> str:
        first = original(msg, agent, messages)
        other = copy(agent)
        other.model = "other"
        original(msg, other, messages)
        return first

    monkeypatch.setattr(runner, "run_agent", first_of_two)
    delta = {"content": "Let me look.", "tool_calls": [CALL]}
    llm_server.answers = [
        Answer({"choices": [{"message": delta}], "usage": USAGE}),
        Answer({"choices": [{"message": {"content": "No."}}], "usage": USAGE}),
    ]
    completion = complete(Hello(), builder.AgentForReply(Ada(), tools=[TOOL]), PROMPT)
    assert (completion.text, len(completion.requested)) == ("Let me look.", 1)
    assert completion.usage == {"prompt_tokens": 6, "completion_tokens": 4, "total_tokens": 10}
    assert [request.body["model"] for request in llm_server.requests] == ["m", "other"]


def test_a_replacement_needs_no_language_model(
    llm_server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces: list[str] = []
    monkeypatch.setattr(runner, "run_agent", lambda msg, agent, messages=None: " Canned.\0 ")
    completion = complete(
        Hello(), builder.AgentForReply(Ada(), tools=[TOOL], on_text=pieces.append), PROMPT
    )
    assert completion == Completion("Canned.")
    assert pieces == ["Canned."]
    assert llm_server.requests == []


@pytest.mark.parametrize("returned", [None, "", " \n", 7])
def test_a_replacement_that_gives_no_text_is_an_error(
    returned: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "run_agent", lambda msg, agent, messages=None: returned)
    with pytest.raises(LLMReplyInvalid, match="no text"):
        complete(Hello(), Ada(), PROMPT)


def test_a_replaced_builder_makes_the_prompt_of_a_message_alone(
    llm_server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def terse(agent: Any, current: str, recent: Any, context: Any) -> Any:
        return [{"role": "user", "content": f"{agent.system_prompt} {current}"}]

    monkeypatch.setattr(builder, "build_messages_with_memory", terse)
    run_agent(Hello(), Ada())
    assert llm_server.requests[0].body["messages"] == [
        {"role": "user", "content": "You are Ada. Hello"}
    ]
