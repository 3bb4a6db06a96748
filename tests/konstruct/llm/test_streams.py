"""Answers of language models as streams of events."""

import json
from collections.abc import Iterator

import pytest
from hypothesis import given, strategies as st

from konstruct.llm import client
from konstruct.llm.completions import (
    Completion,
    CompletionRequest,
    LLMReplyInvalid,
    LLMUnavailable,
    StreamedAnswer,
    read_completion,
)
from tests.servers.llm import Answer, LLMServer, streamed

TOOL = {"type": "function", "function": {"name": "remember_fact"}}


def read(server: LLMServer, content: bytes) -> tuple[Completion, list[str]]:
    """Return the whole answer of a server that streams the bytes, and the received texts."""
    server.default = Answer(content, headers={"Content-Type": "text/event-stream"})
    pieces: list[str] = []
    model = client.HttpLanguageModel(server.url, api="openai", sleep=lambda seconds: None)
    request = CompletionRequest([{"role": "user", "content": "Hello"}], "", "fast", tools=[TOOL])
    return model.complete(request, pieces.append), pieces


def test_an_answer_is_the_same_with_and_without_a_stream(llm_server: LLMServer) -> None:
    answer, pieces = read(llm_server, streamed("\n Hel", "lo", " \n", "there.\n").content)
    assert answer.text == "".join(pieces) == "Hello \nthere."


def test_an_emoji_that_is_cut_between_two_pieces_is_joined() -> None:
    pieces: list[str] = []
    answer = StreamedAnswer(pieces.append, max_characters=100)
    for text in ("Hi \ud83d", "", "\ude00!", "\ude00", "\ud83d"):
        answer.add({"choices": [{"delta": {"content": text}}]})
    assert "".join(pieces) == "Hi 😀!?"


@given(st.lists(st.text(), min_size=1).filter(lambda pieces: "".join(pieces).strip()))
def test_pieces_of_a_stream_equal_the_reply(texts: list[str]) -> None:
    pieces: list[str] = []
    answer = StreamedAnswer(pieces.append, max_characters=10_000_000)
    for text in texts:
        answer.add({"choices": [{"delta": {"content": text}}]})
    answer.add("[DONE]")
    try:
        reply = read_completion(answer.document(), with_calls=False).text
    except LLMReplyInvalid:
        reply = ""
    assert reply == "".join(pieces)


def test_pieces_of_tool_calls_are_joined(llm_server: LLMServer) -> None:
    function = {"name": "remember_fact", "arguments": '{"fact": '}
    answer, pieces = read(
        llm_server,
        streamed(
            {"tool_calls": [{"index": 0, "id": "c1", "function": function}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": '"tea"}'}}]},
            {"tool_calls": [{"index": -1}, {"index": "x"}, 5]},
            {"tool_calls": 5},
        ).content,
    )
    (call,) = answer.requested
    assert (call.call_id, call.name, call.arguments) == ("c1", "remember_fact", {"fact": "tea"})
    assert pieces == []


@pytest.mark.parametrize(
    "content",
    [
        streamed("Hel", whole=False).content,
        b"",
        streamed("Hel", whole=False).content + b'data: {"error": {"message": "x"}}\n\n',
    ],
)
def test_an_answer_that_breaks_off_is_none(llm_server: LLMServer, content: bytes) -> None:
    with pytest.raises(LLMUnavailable, match="broke off"):
        read(llm_server, content)


def test_the_last_event_is_one_without_a_finish_reason_too(llm_server: LLMServer) -> None:
    content = streamed("Hello", whole=False).content + b"data: [DONE]\n\n"
    assert read(llm_server, content)[0].text == "Hello"


@pytest.mark.parametrize("data", [b"{", b"[" * 5_000, b"x", b"\xff\xfe"])
def test_invalid_event_is_refused(llm_server: LLMServer, data: bytes) -> None:
    with pytest.raises(LLMReplyInvalid, match="not JSON"):
        read(llm_server, b"data: " + data + b"\n\n")


@pytest.mark.parametrize("data", [b"5", b"[]", b"{}", b'{"choices": {}}', b'{"choices": [5]}'])
def test_events_without_a_choice_are_passed_over(llm_server: LLMServer, data: bytes) -> None:
    _, pieces = read(llm_server, b"data: " + data + b"\n\n" + streamed("Hello").content)
    assert pieces == ["Hello"]


def endless() -> Iterator[bytes]:
    """Streams of more characters, or bytes, than an answer may have."""
    yield streamed("x" * 60_000, "x" * 6_000).content
    yield b"data: " + b"x" * 5_000_000
    yield b": ping\n\n" * 50_000
    yield streamed(
        *[{"tool_calls": [{"index": 0, "function": {"arguments": "x" * 20_000}}]}] * 5
    ).content


@pytest.mark.parametrize("content", [*endless()], ids=["text", "event", "events", "calls"])
def test_an_answer_has_an_end(
    llm_server: LLMServer, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.setattr(client, "BYTES_PER_STREAMED_CHARACTER", 4)
    with pytest.raises(LLMReplyInvalid, match="too long"):
        read(llm_server, content)
    assert len(llm_server.requests) == 1


REQUEST = CompletionRequest([{"role": "user", "content": "Hello"}], model="", tier="fast")


def ask(server: LLMServer, api: str = "openai") -> tuple[str, list[str]]:
    pieces: list[str] = []
    model = client.HttpLanguageModel(server.url, api=api, timeout=60, sleep=lambda seconds: None)
    return model.complete(REQUEST, pieces.append).text, pieces


def test_stream_is_requested_if_a_callback_is_given(llm_server: LLMServer) -> None:
    llm_server.default = streamed("No", "ted.")
    assert ask(llm_server) == ("Noted.", ["No", "ted."])
    assert llm_server.requests[-1].body["stream"] is True


def test_answer_is_not_retried_after_streaming_began(llm_server: LLMServer) -> None:
    cut = json.dumps({"choices": [{"delta": {"content": "No"}}]})
    headers = {"Content-Type": "text/event-stream"}
    llm_server.answers = [Answer("", 503), Answer(f"data: {cut}\n\n", headers=headers)]
    with pytest.raises(LLMUnavailable):
        ask(llm_server)
    assert len(llm_server.requests) == 2
    assert client.MAX_ATTEMPTS > 2
