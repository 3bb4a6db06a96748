"""Hostile requests to mem0's REST: each is refused, and none is a 500."""

import json
from itertools import cycle, islice
from typing import Any

import pytest

from tests.konstruct.conftest import Program
from tests.konstruct.interfaces.mem0.calls import (
    ADD,
    BATCH,
    LIST,
    SEARCH,
    refusal,
)

pytestmark = pytest.mark.django_db

ODD_VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 10**400, 1e999, "", " ", "\0", "\ud800", "\u202e", "x" * 100_000, [], [[]],
    {}, {"\ud800": "\udfff"}, {"a": {"a": {"a": {}}}}, ["\ud800"], [{"memory_id": "\ud800"}],
    [{"role": "user", "content": "\ud800"}], [{"role": "user", "content": {"type": "text"}}],
)  # fmt: skip
FIELDS = {
    ("POST", ADD): ("messages", "text", "filters", "metadata", "infer", "timestamp", "user_id",
                    "expiration_date", "agent_id", "run_id", "app_id", "custom_categories"),
    ("POST", LIST): ("filters", "fields", "categories", "start_date", "end_date", "show_expired"),
    ("POST", SEARCH): ("query", "filters", "top_k", "threshold", "metadata", "fields",
                       "categories", "show_expired", "rerank"),
    ("PUT", BATCH): ("memories",),
    ("DELETE", BATCH): ("memories",),
}  # fmt: skip
RIGHT = {"query": "a", "messages": "a", "user_id": "zoe", "filters": {"user_id": "zoe"}}


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 100_000, b"\xff", b'{"a": 1, "a": 2}'])
def test_body_that_is_not_json_is_refused(program: Program, body: bytes) -> None:
    assert refusal(program.post(SEARCH, body))


def test_a_body_that_is_too_large_is_refused(program: Program) -> None:
    refusal(program.post(ADD, {"messages": "a" * 3_000_000, "user_id": "a"}), 413)
    assert "max" not in refusal(program.post(ADD, {"messages": "a" * 40_000, "user_id": "a"}))


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path"), sorted(FIELDS))
def test_no_field_is_a_500(program: Program, settings: Any, method: str, path: str) -> None:
    settings.RATE_LIMIT_BURST = settings.KEY_RATE_LIMIT_BURST = 1_000_000
    names = FIELDS[method, path]
    right = {name: value for name, value in RIGHT.items() if name in names}
    turns = cycle(ODD_VALUES)
    for name in names:
        for odd in islice(turns, 2):
            body = json.dumps(right | {name: odd}).encode()
            answer = program.request(method, path, data=body, content_type="application/json")
            assert answer.status_code in (200, 400, 404, 422), (name, odd, answer.content)
