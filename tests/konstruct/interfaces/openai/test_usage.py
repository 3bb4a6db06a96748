"""Tokens of a completion: those that the language model reports, and no others."""

from typing import Any

from konstruct.orchestrator.agents import update_agent
from tenants.context import tenant_scope
from tests.konstruct.interfaces.openai.conftest import CHAT
from tests.konstruct.interfaces.openai.test_chat_completions import events_of
from tests.konstruct.interfaces.openai.test_description import errors
from tests.konstruct.interfaces.openai.test_tools import QUESTION, Client, calling, client, saying
from tests.servers.llm import Answer

__all__ = ["client"]

REPORTED = {"prompt_tokens": 120, "completion_tokens": 7}
USAGE = {**REPORTED, "total_tokens": 127}


def with_usage(answer: Answer) -> Answer:
    return Answer({**answer.body, "usage": {**REPORTED, "prompt_tokens_details": {"cached": 1}}})


def usage_of(client: Client, **parameters: Any) -> Any:
    document = client.post(QUESTION, tools=(), **parameters).json()
    assert errors(document, "Completion") == []
    return document.get("usage")


def test_repeated_completion_has_the_usage_of_the_language_model(client: Client) -> None:
    client.llm.answers = [with_usage(saying("Sunny."))]
    body = {"model": "ada", "user": "maria", "messages": [QUESTION]}
    for _ in range(2):
        response = client.program.post(CHAT, body, headers={"Idempotency-Key": "k"})
        assert (response.json()["usage"], errors(response.json(), "Completion")) == (USAGE, [])
    assert len(client.llm.requests) == 1


def test_stream_ends_with_usage_if_requested(client: Client) -> None:
    # Usage of a streaming language model: test_unmodified_client.py
    parameters = {"stream": True, "stream_options": {"include_usage": True}}
    client.llm.default = with_usage(saying("Sunny."))
    events = events_of(client.post(QUESTION, tools=(), **parameters))
    assert (events[-1]["choices"], events[-1]["usage"]) == ([], USAGE)
    assert [errors(event, "Chunk") for event in events] == [[]] * len(events)
    events = events_of(client.post({**QUESTION, "content": "And now?"}, tools=(), stream=True))
    assert all("usage" not in event and event["choices"] for event in events)


def test_unknown_usage_is_omitted(client: Client) -> None:
    client.llm.answers = [saying("Sunny."), saying("Rain.")]
    assert usage_of(client) is None
    parameters = {"stream": True, "stream_options": {"include_usage": True}}
    events = events_of(client.post({**QUESTION, "content": "And now?"}, tools=(), **parameters))
    assert all("usage" not in event for event in events)


def test_all_rounds_of_an_agents_own_tools_count(client: Client) -> None:
    with tenant_scope(client.program.tenant.id):
        update_agent(client.program.agent, tools=["remember_fact"])
    calls = [with_usage(calling("no_such_tool")), with_usage(saying("Done."))]
    client.llm.answers = list(calls)
    twice = {name: 2 * count for name, count in USAGE.items()}
    assert usage_of(client) == twice
