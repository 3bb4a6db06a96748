"""docs/openai.yaml matches the requests and answers."""

from functools import partial
from typing import Any

import pytest

from konstruct.interfaces.openai import requests
from konstruct.orchestrator.tool_calls import MAX_TOOLS
from konstruct.urls import interfaces
from tests.described import described, errors_in
from tests.konstruct.interfaces.openai.test_chat_completions import events_of
from tests.konstruct.interfaces.openai.test_tools import (
    QUESTION,
    WEATHER,
    Client,
    calling,
    client,
    results,
)

__all__ = ["client"]


errors = partial(errors_in, "openai")


def test_every_route_is_described() -> None:
    views = [pattern for pattern in interfaces.openai_urls if pattern.name]
    routes = {str(pattern.pattern).replace("<path:model>", "{model}") for pattern in views}
    assert {f"v1{path}" for path in described("openai")["paths"]} == routes
    read = described("openai")["components"]["schemas"]["Message"]["properties"]["role"]["enum"]
    assert set(read) == requests.ROLES
    tools = described("openai")["components"]["schemas"]["Request"]["properties"]["tools"]
    assert tools["maxItems"] == MAX_TOOLS
    described_parameters = described("openai")["components"]["schemas"]["Request"]["properties"]
    assert set(requests.SAMPLING) <= described_parameters.keys()


def test_answers_are_as_they_are_described(client: Client) -> None:
    client.llm.answers = [calling("weather"), calling("weather")]
    first = client.post(QUESTION).json()
    messages = [QUESTION, *results(first["choices"][0], "22")]
    chunks = events_of(client.post(*messages, stream=True))
    call = chunks[-2]["choices"][0]["delta"]["tool_calls"][0]
    messages += results({"message": {"role": "assistant", "tool_calls": [call]}}, "23")
    last = client.post(*messages).json()
    assert [errors(completion, "Completion") for completion in (first, last)] == [[], []]
    assert [errors(chunk, "Chunk") for chunk in chunks] == [[]] * len(chunks)
    assert errors(client.program.get("/v1/models").json(), "Models") == []
    assert errors(client.program.get("/v1/models/ada").json(), "Model") == []
    assert errors(client.program.get("/v1/models/nobody").json(), "Error") == []
    body = {"model": "ada", "user": "maria", "messages": messages, "tools": [WEATHER]}
    assert errors(body, "Request") == []


@pytest.mark.parametrize(
    ("sent", "param"),
    [
        ({"model": ""}, "model"),
        ({"messages": []}, "messages"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            "messages[0].content",
        ),
        ({"n": 2}, "n"),
        ({"tools": [{"type": "custom"}]}, "tools[0].type"),
        ({"tool_choice": "always"}, "tool_choice"),
        ({"response_format": {"type": "xml"}}, "response_format"),
        ({"stream": "yes"}, "stream"),
        ({"temperature": 2.5}, "temperature"),
        ({"top_p": -1}, "top_p"),
        ({"seed": 1.5}, "seed"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"stop": ["a", ""]}, "stop"),
    ],
)
def test_undocumented_field_is_refused(client: Client, sent: dict[str, Any], param: str) -> None:
    body = {"model": "ada", "user": "maria", "messages": [QUESTION], **sent}
    assert errors(body, "Request")
    refused = client.program.post("/v1/chat/completions", body)
    assert (refused.status_code, errors(refused.json(), "Error")) == (400, [])
    assert refused.json()["error"]["param"] == param
