"""What goes to a language model's server and comes back."""

from datetime import UTC, datetime
from typing import Any

import pytest

from konstruct.orchestrator.exceptions import LLMReplyInvalid
from konstruct.orchestrator.llm_wire import Endpoint, endpoints, read_reply, retry_after_seconds

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
def test_where_a_language_model_is_asked(
    url: str, api: str, known: str | None, expected: list[Endpoint]
) -> None:
    assert endpoints(url, api, known=known) == expected


def test_a_pool_is_told_the_tier_and_a_model_only_if_there_is_one() -> None:
    messages = [{"role": "user", "content": "Hi"}]
    assert POOL.payload(messages, model="", tier="fast") == {
        "model_tier": "fast",
        "messages": messages,
    }
    assert POOL.payload(messages, model="m", tier="fast") == {
        "model": "m",
        "model_tier": "fast",
        "messages": messages,
    }


def test_openai_always_gets_a_model() -> None:
    messages = [{"role": "user", "content": "Hi"}]
    assert OPENAI.payload(messages, model="", tier="reasoning") == {
        "model": "reasoning",
        "messages": messages,
    }


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
    assert read_reply(data) == "Hi"


def test_half_a_surrogate_pair_becomes_something_that_postgres_stores() -> None:
    assert read_reply({"content": "Hi \ud83d"}) == "Hi ?"


@pytest.mark.parametrize(
    "data",
    [{}, {"content": ""}, {"content": "  "}, {"choices": []}, [], None, 7, {"content": 7},
     {"choices": [{"message": {"content": None, "tool_calls": []}}]}, {"error": "busy"}],
)  # fmt: skip
def test_an_answer_without_text_is_refused_and_shown(data: Any) -> None:
    with pytest.raises(LLMReplyInvalid, match="holds no text"):
        read_reply(data)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("", None),
        ("7", 7.0),
        ("soon", None),
        ("-3", None),
        ("Wed, 01 Jan 2025 00:00:30 GMT", 30.0),
        ("Wed, 01 Jan 2020 00:00:00 GMT", 0.0),
    ],
)
def test_retry_after_is_a_number_or_a_date(value: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(value, now=datetime(2025, 1, 1, tzinfo=UTC)) == seconds
