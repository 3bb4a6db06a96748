"""Whatever is sent is answered or refused by name, and never by a failure of ours."""

import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from konstruct.api.auth.permissions import Caller
from konstruct.api.http.problems import Problem, Refusal
from konstruct.interfaces.openai.errors import error_document
from konstruct.interfaces.openai.report import MAX_NAMED, report_of
from konstruct.interfaces.openai.requests import ROLES, SAMPLING, ChatRequest, read_request
from konstruct.orchestrator.models import Agent

AGENT = Agent(name="ada", max_completion_tokens=5)
SIMPLE = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters())
ANYTHING = st.recursive(
    SIMPLE,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
PARTS = st.lists(st.fixed_dictionaries({"type": st.just("text") | ANYTHING, "text": ANYTHING}))
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(sorted(ROLES)) | ANYTHING},
        optional={
            "content": st.text() | PARTS | ANYTHING,
            "name": ANYTHING,
            "tool_call_id": st.text() | ANYTHING,
        },
    ),
    max_size=4,
)
TOOLS = st.lists(
    st.fixed_dictionaries({"type": st.just("function"), "function": ANYTHING}) | ANYTHING,
    max_size=2,
)
NAMES = ("n", "logprobs", "top_logprobs", "modalities", "response_format", "functions")
NAMES += ("tool_choice", "parallel_tool_calls", *SAMPLING)
BODIES = st.fixed_dictionaries(
    {"model": st.text(min_size=1) | ANYTHING, "messages": MESSAGES | ANYTHING},
    optional={"stream": st.booleans() | ANYTHING, "tools": TOOLS, **dict.fromkeys(NAMES, ANYTHING)},
)


def read_or_refused(body: Any) -> ChatRequest | Problem:
    try:
        return read_request(body)
    except Refusal as refusal:
        return refusal.problem


def read_and_reported(body: Any) -> None:
    """Check that a body is read or refused, and that the rest of it can be named in an answer."""
    found = read_or_refused(body)
    if isinstance(found, Problem):
        assert found.status == 400
        assert json.dumps(error_document(found))
        return
    role = "tool" if found.continues else "user"
    assert found.turns[-1][0] == role
    assert role == "tool" or found.turns[-1] == ("user", found.content)
    assert found.previous_user_text is None or isinstance(found.previous_user_text, str)
    report = report_of(found, AGENT, Caller("key-1", "tests", frozenset(), user_id="maria"))
    # As REST framework renders it: UTF-8, which has no halves of surrogate pairs.
    assert json.dumps(report.document(), ensure_ascii=False).encode()
    assert len(report.ignored) <= MAX_NAMED + len(SAMPLING) + 2
    assert all(re.fullmatch(r"[\w.*, -]*", value, re.A) for value in report.headers().values())


@given(BODIES | ANYTHING)
def test_a_body_is_read_or_refused(body: Any) -> None:
    read_and_reported(body)


@given(st.dictionaries(st.text(st.characters()), ANYTHING))
def test_any_parameter_is_read_refused_or_named(body: dict[str, Any]) -> None:
    message = {"role": "user", "content": "Hi"}
    read_and_reported({**body, "model": "ada", "messages": [message], "n": 1})
