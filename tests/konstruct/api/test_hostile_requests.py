"""Requests that try to cause expensive work or large answers."""

from typing import Any

import pytest

from konstruct.api.http.problems import MAX_DETAIL_CHARACTERS, MAX_ERRORS
from tests.konstruct.conftest import MESSAGES, Program
from tests.messages import statements

FACTS = "/api/v1/facts/"
COMPILE = "/api/v1/context/compile/"
IMPORT = "/api/v1/messages/import/"


def refused(response: Any, kind: str = "invalid-fields") -> dict[str, Any]:
    assert response.status_code == 400, response.content[:500]
    document: dict[str, Any] = response.json()
    assert document["type"] == f"urn:konstruct:problem:{kind}"
    assert len(response.content) < 100_000
    assert len(document.get("errors", [])) <= MAX_ERRORS
    assert len(document["detail"]) <= MAX_DETAIL_CHARACTERS + 1
    return document


@pytest.mark.slow
def test_an_object_of_very_many_names_is_refused_by_the_first(program_a: Program) -> None:
    document = refused(program_a.post(FACTS, {f"name{i}": i for i in range(100_000)}))
    assert len(document["errors"]) == MAX_ERRORS
    assert document["errors"][0]["field"] == "name0"


def test_repeated_name_among_many_is_found(program_a: Program) -> None:
    names = b",".join(b'"n%d":0' % i for i in range(100_000))
    document = refused(program_a.post(FACTS, b"{%s,%s}" % (names, b'"n0":1')), "malformed-body")
    assert "The name 'n0' is given twice in one object." in document["errors"][0]["detail"]


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        (
            COMPILE,
            {"agent": "ada", "task": "a", "messages": [{"role": "user"}] * 50_000},
            "messages",
        ),
        (IMPORT, {"messages": [{}] * 50_000}, "messages"),
        ("/api/v1/erasures/", {"user_id": "a", "threads": ["a"] * 100_000}, "threads"),
        ("/api/v1/agents/", {"name": "a", "escalate_on": ["a"] * 100_000}, "escalate_on"),
        (FACTS, {"content": "a" * 40_000 + "\x00"}, "content"),
        (FACTS, {"content": "a", "user_id": "u" * 1_000_000 + "\x1f"}, "user_id"),
        (FACTS, {"content": "a", "metadata": {"k" * 1_000_000: [1] * 100_000}}, "metadata"),
        (FACTS + "search/", {"query": "a", "filters": {"a": {"in": "x" * 1_000_000}}}, "filters"),
        (
            FACTS + "search/",
            {"query": "a", "filters": {f"n{i}": i for i in range(10_000)}},
            "filters",
        ),
        (COMPILE, {"agent": "ada", "task": "a", "model_tier": "x" * 1_000_000}, "model_tier"),
    ],
)
def test_excessive_values_are_refused_by_field(
    program_a: Program, path: str, body: Any, field: str
) -> None:
    document = refused(program_a.post(path, body))
    assert {error["field"] for error in document["errors"]} == {field}


def test_filters_in_an_address_are_read_as_strictly_as_in_a_body(program_a: Program) -> None:
    for filters in ('{"a": 1, "a": 2}', "[" * 10_000, '{"a": NaN}', "{" * 3):
        document = refused(program_a.get(FACTS, query_params={"filters": filters}))
        assert [error["field"] for error in document["errors"]] == ["filters"]


def test_thousands_of_parameters_are_refused(program_a: Program) -> None:
    few = program_a.get(MESSAGES, query_params={f"p{i}": "1" for i in range(900)})
    assert len(refused(few)["errors"]) == MAX_ERRORS
    many = program_a.get(MESSAGES, query_params={f"p{i}": "1" for i in range(2_000)})
    assert "at most 1,000 parameters" in refused(many, "bad-request")["errors"][0]["detail"]


def test_a_thousand_unknown_agents_are_looked_for_at_once(program_a: Program) -> None:
    line = {"external_id": "e", "user_id": "maria", "thread_id": "t", "role": "user"}
    lines = [
        {**line, "content": "a", "created_at": "2025-01-01T00:00:00Z", "agent": f"nobody-{i}"}
        for i in range(1_000)
    ]
    with statements() as few:
        program_a.post(IMPORT, {"messages": lines[:2]})
    with statements() as many:
        response = program_a.post(IMPORT, {"messages": lines})
    assert response.json()["invalid"] == 1_000
    assert len(many) <= len(few)


def test_the_answer_to_a_wrong_line_does_not_repeat_it(program_a: Program) -> None:
    lines = [{"external_id": "x" * 500, "agent": ["y" * 2_000]}] * 900
    response = program_a.post(IMPORT, {"messages": lines})
    assert response.json()["invalid"] == 900
    assert len(response.content) < 900 * 2_000
