"""Answers of language models that come as streams of events."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konstruct.llm import client
from konstruct.llm.client import HttpLanguageModel
from konstruct.llm.completions import CompletionRequest, read_completion, read_reply
from konstruct.llm.event_stream import Text, read_stream
from konstruct.llm.exceptions import LLMReplyInvalid, LLMUnavailable
from tests.servers.llm import Answer, LLMServer, streamed


def read(content: bytes, size: int = 7, **limits: int) -> tuple[Any, str]:
    """Return the whole answer, which came in pieces of so many bytes, and the text as told."""
    told: list[str] = []
    limits = {"most_bytes": 10_000, "longest": 1_000, **limits}
    pieces = [content[i : i + size] for i in range(0, len(content), size)]
    return read_stream(pieces, Text(told.append), **limits), "".join(told)


def test_an_answer_is_the_same_with_and_without_a_stream() -> None:
    answer, told = read(streamed("\n Hel", "lo", " \n", "there.\n").content)
    assert read_reply(answer) == told == "Hello \nthere."


@given(st.lists(st.text(), min_size=1).filter(lambda pieces: "".join(pieces).strip()))
def test_what_is_told_is_the_reply_whatever_comes(pieces: list[str]) -> None:
    answer, told = read(streamed(*pieces).content, longest=10_000_000, most_bytes=10_000_000)
    try:
        reply = read_reply(answer)
    except LLMReplyInvalid:
        reply = ""
    assert reply == told


def test_calls_of_tools_are_put_together() -> None:
    function = {"name": "remember_fact", "arguments": '{"fact": '}
    answer, told = read(
        streamed(
            {"tool_calls": [{"index": 0, "id": "c1", "function": function}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": '"tea"}'}}]},
            {"tool_calls": [{"index": -1}, {"index": "x"}, 5]},
        ).content
    )
    (call,) = read_completion(answer, with_calls=True).requested
    assert (call.call_id, call.name, call.arguments) == ("c1", "remember_fact", {"fact": "tea"})
    assert told == ""


@pytest.mark.parametrize(
    "content",
    [
        streamed("Hel", whole=False).content,
        b"",
        streamed("Hel", whole=False).content + b'data: {"error": {"message": "x"}}\n',
    ],
)
def test_an_answer_that_breaks_off_is_none(content: bytes) -> None:
    with pytest.raises(LLMUnavailable, match="broke off"):
        read(content)


@pytest.mark.parametrize("data", [b"{", b"[" * 5_000, b"x"])
def test_what_is_no_event_is_refused(data: bytes) -> None:
    with pytest.raises(LLMReplyInvalid, match="not JSON"):
        read(b"data: " + data + b"\n\n")


@pytest.mark.parametrize("data", [b"5", b"[]", b"{}", b'{"choices": {}}', b'{"choices": [5]}'])
def test_events_without_a_choice_are_passed_over(data: bytes) -> None:
    _, told = read(b"data: " + data + b"\n\n" + streamed("Hello").content)
    assert told == "Hello"


def test_an_answer_has_an_end() -> None:
    with pytest.raises(LLMReplyInvalid, match="too long"):
        read(streamed("x" * 501, "x" * 500).content)
    with pytest.raises(LLMReplyInvalid, match="too long"):
        read(b"data: " + b"x" * 20_000)
    calls = [{"tool_calls": [{"index": 0, "function": {"arguments": "x" * 300}}]}] * 5
    with pytest.raises(LLMReplyInvalid, match="too long"):
        read(streamed(*calls).content)


REQUEST = CompletionRequest([{"role": "user", "content": "Hello"}], model="", tier="fast")


def ask(server: LLMServer, api: str = "openai") -> tuple[str, list[str]]:
    told: list[str] = []
    model = HttpLanguageModel(server.url, api=api, timeout=60, sleep=lambda seconds: None)
    return model.complete(REQUEST, told.append).text, told


def test_a_stream_is_asked_for_where_somebody_listens(llm_server: LLMServer) -> None:
    llm_server.default = streamed("No", "ted.")
    assert ask(llm_server) == ("Noted.", ["No", "ted."])
    assert llm_server.requests[-1].body["stream"] is True


def test_a_server_without_streams_answers_as_ever(llm_server: LLMServer) -> None:
    assert ask(llm_server) == ("Noted.", [])
    assert ask(llm_server, api="pool") == ("Noted.", [])
    assert "stream" not in llm_server.requests[-1].body
    model = HttpLanguageModel(llm_server.url, api="openai", timeout=60)
    model.complete(REQUEST)
    assert "stream" not in llm_server.requests[-1].body


def test_an_answer_that_was_told_is_not_begun_again(llm_server: LLMServer) -> None:
    cut = json.dumps({"choices": [{"delta": {"content": "No"}}]})
    headers = {"Content-Type": "text/event-stream"}
    llm_server.answers = [Answer("", 503), Answer(f"data: {cut}\n\n", headers=headers)]
    with pytest.raises(LLMUnavailable):
        ask(llm_server)
    assert len(llm_server.requests) == 2
    assert client.TRIES > 2
