"""Requests to a language model server, and its answers."""

import time
from dataclasses import replace
from typing import Any

import pytest

from konstruct.llm.completions import (
    Completion,
    CompletionRequest,
    Endpoint,
    LLMRefused,
    LLMReplyInvalid,
    RequestedCall,
    endpoints,
    read_completion,
    retry_after_seconds,
)

POOL = Endpoint("http://llm/complete", "pool")
OPENAI = Endpoint("http://llm/v1/chat/completions", "openai")


@pytest.mark.parametrize(
    ("url", "api", "known", "expected"),
    [
        ("http://llm", "pool", None, [POOL]),
        ("http://llm/", "openai", None, [OPENAI]),
        ("http://llm/v1", "openai", None, [OPENAI]),
        ("http://llm", "auto", None, [POOL, OPENAI]),
        ("http://llm", "auto", "pool", [POOL]),
        ("http://llm", "auto", "openai", [OPENAI]),
        ("http://llm/v1/", "auto", None, [OPENAI]),
        ("http://llm/v1/chat/completions", "auto", None, [OPENAI]),
    ],
)
def test_endpoints_of_a_url(
    url: str, api: str, known: str | None, expected: list[Endpoint]
) -> None:
    assert endpoints(url, api, known_api=known) == expected


def test_complete_endpoint_gets_the_tier_and_the_model_if_set() -> None:
    messages = [{"role": "user", "content": "Hi"}]
    assert POOL.payload(CompletionRequest(messages, model="", tier="fast")) == {
        "model_tier": "fast",
        "messages": messages,
    }
    assert POOL.payload(CompletionRequest(messages, model="m", tier="fast")) == {
        "model": "m",
        "model_tier": "fast",
        "messages": messages,
    }


@pytest.mark.parametrize("endpoint", [POOL, OPENAI])
def test_both_endpoints_get_the_same_tools_if_any(endpoint: Endpoint) -> None:
    tools = [{"type": "function", "function": {"name": "f"}}]
    request = CompletionRequest([], model="m", tier="fast", tools=tools)
    offered = endpoint.payload(request)
    assert offered["tools"] == tools
    assert "tool_choice" not in offered
    last = endpoint.payload(replace(request, may_call=False))
    assert last["tool_choice"] == "none"
    assert "tool_choice" not in endpoint.payload(replace(request, tools=(), may_call=False))


def test_json_mode_is_requested_in_a_message() -> None:
    request = CompletionRequest([{"role": "user", "content": "Hi"}], model="m", tier="fast")
    for form, last in (("json_object", "JSON"), ("json_schema", "Hi"), ("text", "Hi")):
        payload = OPENAI.payload(replace(request, options={"response_format": {"type": form}}))
        assert last in payload["messages"][-1]["content"]
    assert len(request.messages) == 1


def test_calls_are_read_in_every_shape_and_as_postgres_can_keep_them() -> None:
    call = {"id": "c", "function": {"name": "f\0", "arguments": '{"a": "x\\u0000y", "n": NaN}'}}
    read = Completion("", (RequestedCall("c", "f", {"a": "xy", "n": "nan"}),))
    for data in (
        {"tool_calls": [call]},
        {"message": {"content": None, "tool_calls": [call, "nonsense"]}},
        {"choices": [{"message": {"content": "", "tool_calls": [call]}}]},
    ):
        assert read_completion(data, with_calls=True) == read
    before = {"choices": [{"message": {"content": "Hi\0 ", "tool_calls": [call]}}]}
    assert read_completion(before, with_calls=True) == replace(read, text="Hi")
    hello = {"content": "Hi", "tool_calls": [call]}
    assert read_completion(hello, with_calls=False) == Completion("Hi")
    assert read_completion({"content": "Hi", "tool_calls": []}, with_calls=True).text == "Hi"
    with pytest.raises(LLMReplyInvalid):
        read_completion({"tool_calls": "x"}, with_calls=True)


@pytest.mark.parametrize(
    ("arguments", "read"),
    [
        ("", {}),
        ({"a": 1}, {"a": 1}),
        ("[1]", [1]),
        ("{", "{"),
        (None, None),
        ('"' + "x" * 70_000 + '"', '"' + "x" * 99 + "… (70002 characters)"),
    ],
)
def test_unreadable_arguments_show_the_reason(arguments: object, read: object) -> None:
    call = {"function": {"name": "f", "arguments": arguments}}
    (requested,) = read_completion({"tool_calls": [call]}, with_calls=True).requested
    assert (requested.call_id, requested.arguments) == ("call_0", read)


@pytest.mark.parametrize(
    "data",
    [
        {"content": "Hi"},
        {"text": " Hi\n"},
        {"response": "Hi"},
        {"message": {"role": "assistant", "content": "Hi"}},
        {"choices": [{"message": {"content": "Hi"}}]},
        {"choices": [{"text": "Hi"}]},
        {"choices": [{"message": {"content": [{"type": "text", "text": "Hi"}]}}]},
        {"content": [{"type": "thinking", "text": "no"}, {"type": "text", "text": "Hi"}]},
        {"content": "", "text": "Hi"},
        {"content": "H\0i"},
        "Hi",
    ],
)
def test_every_shape_of_answer_in_use_is_read(data: Any) -> None:
    assert read_completion(data, with_calls=False).text == "Hi"


def test_half_a_surrogate_pair_becomes_something_that_postgres_stores() -> None:
    assert read_completion({"content": "Hi \ud83d"}, with_calls=False).text == "Hi ?"


@pytest.mark.parametrize(
    "data",
    [{}, {"content": ""}, {"content": "  "}, {"choices": []}, [], None, 7, {"content": 7},
     {"choices": [{"message": {"content": None, "tool_calls": []}}]}, {"error": "busy"}],
)  # fmt: skip
def test_an_answer_without_text_is_refused_and_shown(data: Any) -> None:
    with pytest.raises(LLMReplyInvalid, match="holds no text"):
        read_completion(data, with_calls=False)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("", None),
        ("7", 7.0),
        ("soon", None),
        ("-3", None),
        ("Fri, 01 Jan 2100 00:00:30 GMT", 30.0),
        ("Wed, 01 Jan 2020 00:00:00 GMT", 0.0),
    ],
)
def test_retry_after_is_a_number_or_a_date(
    value: str | None, seconds: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: 4_102_444_800.0)
    assert retry_after_seconds(value) == seconds


@pytest.mark.parametrize(
    "usage",
    [
        None,
        [1, 2],
        {"prompt_tokens": 1},
        {"prompt_tokens": True, "completion_tokens": 2},
        {"prompt_tokens": -1, "completion_tokens": 2},
        {"prompt_tokens": 10**30, "completion_tokens": 2},
    ],
)
def test_invalid_usage_is_unknown(usage: object) -> None:
    assert read_completion({"content": "Hi", "usage": usage}, with_calls=False).usage is None


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"choices": [{"message": {"content": "Hi"}, "finish_reason": "length"}]}, "length"),
        ({"choices": [{"text": "Hi", "finish_reason": "content_filter"}]}, "content_filter"),
        ({"choices": [{"message": {"content": "Hi"}, "finish_reason": None}]}, "stop"),
        ({"choices": [{"message": {"content": "Hi"}, "finish_reason": ["length"]}]}, "stop"),
        ({"choices": [{"message": {"content": "Hi"}, "finish_reason": "eos_token"}]}, "stop"),
        ({"content": "Hi", "finish_reason": "length"}, "length"),
        ({"content": "Hi"}, "stop"),
        ("Hi", "stop"),
    ],
)
def test_finish_reason_of_openai_is_read(answer: object, reason: str) -> None:
    assert read_completion(answer, with_calls=False).finish_reason == reason


def test_answer_truncated_before_its_text_is_not_retried() -> None:
    nothing = {"choices": [{"message": {"content": None}, "finish_reason": "length"}]}
    with pytest.raises(LLMRefused, match="max_completion_tokens"):
        read_completion(nothing, with_calls=False)
