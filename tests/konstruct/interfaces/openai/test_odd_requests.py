"""Parsing of requests: every body is accepted, or refused with the name of the parameter."""

import json
from typing import Any

import pytest
from django.test import override_settings
from hypothesis import given, strategies as st

from konstruct.api.auth.authentication import Caller
from konstruct.api.http.problems import Problem, Refusal
from konstruct.interfaces.errors import openai_document
from konstruct.interfaces.openai.completions import MAX_NAMED, fit_history, report_of
from konstruct.interfaces.openai.requests import ROLES, SAMPLING, ChatRequest, read_request
from konstruct.orchestrator.models import Agent

QUESTION = {"role": "user", "content": "Is it sunny?"}
WEATHER = {"type": "function", "function": {"name": "weather"}}
AGENT = Agent(name="ada", max_completion_tokens=5)
SIMPLE = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters())
JSON_VALUES = st.recursive(
    SIMPLE,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
PARTS = st.lists(
    st.fixed_dictionaries({"type": st.just("text") | JSON_VALUES, "text": JSON_VALUES})
)
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(sorted(ROLES)) | JSON_VALUES},
        optional={
            "content": st.text() | PARTS | JSON_VALUES,
            "name": JSON_VALUES,
            "tool_call_id": st.text() | JSON_VALUES,
            "tool_calls": st.lists(st.fixed_dictionaries({"function": JSON_VALUES})) | JSON_VALUES,
        },
    ),
    max_size=4,
)
TOOLS = st.lists(
    st.fixed_dictionaries({"type": st.just("function"), "function": JSON_VALUES}) | JSON_VALUES,
    max_size=2,
)
NAMES = ("n", "logprobs", "top_logprobs", "modalities", "response_format", "functions")
NAMES += ("tool_choice", "parallel_tool_calls", *SAMPLING)
BODIES = st.fixed_dictionaries(
    {"model": st.text(min_size=1) | JSON_VALUES, "messages": MESSAGES | JSON_VALUES},
    optional={
        "stream": st.booleans() | JSON_VALUES,
        "tools": TOOLS,
        **dict.fromkeys(NAMES, JSON_VALUES),
    },
)


def read_or_refused(body: Any) -> ChatRequest | Problem:
    try:
        return read_request(body)
    except Refusal as refusal:
        return refusal.problem


def read_and_reported(body: Any) -> None:
    """Check that a body is accepted or refused, and that ignored parameters can be reported."""
    found = read_or_refused(body)
    if isinstance(found, Problem):
        assert found.status == 400
        assert json.dumps(openai_document(found))
        return
    history = fit_history(found, AGENT, ())
    assert {turn["role"] for turn in found.history} <= {"user", "assistant"}
    assert all(turn["content"].strip() for turn in found.history)
    assert json.dumps(history.turns, ensure_ascii=False).encode()
    caller = Caller("key-1", "tests", frozenset(), user_id="maria")
    with override_settings(LLM_POOL_URL="http://127.0.0.1:9"):  # so that no table is read
        report = report_of(found, AGENT, caller, history, is_repeated=False)
    # As REST framework renders it: UTF-8, which has no unpaired surrogates.
    assert json.dumps(report, ensure_ascii=False).encode()
    assert len(report.get("ignored", ())) <= MAX_NAMED + len(SAMPLING) + 3


@pytest.mark.slow
@given(BODIES | JSON_VALUES)
def test_a_body_is_read_or_refused(body: Any) -> None:
    read_and_reported(body)


@pytest.mark.slow
@given(st.dictionaries(st.text(st.characters()), JSON_VALUES))
def test_any_parameter_is_read_refused_or_named(body: dict[str, Any]) -> None:
    message = {"role": "user", "content": "Hi"}
    read_and_reported({**body, "model": "ada", "messages": [message], "n": 1})


@pytest.mark.parametrize(
    ("sent", "param"),
    [
        ({"tools": {}}, "tools"),
        ({"tools": [WEATHER] * 129}, "tools"),
        ({"tools": [5]}, "tools[0].type"),
        ({"tools": [{"type": "function"}]}, "tools[0].function.name"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name"),
        ({"tool_choice": {}}, "tool_choice"),
        ({"parallel_tool_calls": "yes"}, "parallel_tool_calls"),
        ({"response_format": "json_object"}, "response_format"),
        ({"temperature": True}, "temperature"),
        ({"frequency_penalty": -3}, "frequency_penalty"),
        ({"seed": 2**63}, "seed"),
        ({"seed": False}, "seed"),
        ({"max_tokens": 10**30}, "max_tokens"),
        ({"max_completion_tokens": 2.5}, "max_completion_tokens"),
        ({"max_completion_tokens": 5, "max_tokens": 5}, "max_tokens"),
        ({"stop": ["a"] * 5}, "stop"),
        ({"stop": "a\0b"}, "stop"),
        ({"stop": "x" * 1_000_000}, "stop"),
        ({"messages": [{"role": "system"}, QUESTION]}, "messages[0].content"),
        ({"messages": [{"role": "developer", "content": 5}, QUESTION]}, "messages[0].content"),
        ({"messages": [QUESTION, {"role": "system", "content": "\0"}]}, "messages[1].content"),
        ({"messages": [QUESTION, {"role": "system", "content": "\ud800"}]}, "messages[1].content"),
        (
            {"messages": [{"role": "system", "content": [{"type": "image_url"}]}, QUESTION]},
            "messages[0].content",
        ),
    ],
)
def test_an_invalid_parameter_is_refused_by_name(sent: dict[str, Any], param: str) -> None:
    with pytest.raises(Refusal) as refused:
        read_request({"model": "ada", "user": "maria", "messages": [QUESTION], **sent})
    error = openai_document(refused.value.problem)["error"]
    assert (error["type"], error["param"]) == ("invalid_request_error", param)
