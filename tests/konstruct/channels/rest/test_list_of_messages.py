"""The list of messages: pages, filters, and its queries."""

from typing import Any

import pytest

from tests.konstruct.api.seed_data import answer
from tests.konstruct.channels.rest.sent import refused_fields
from tests.konstruct.conftest import MESSAGES, Program
from tests.messages import statements


def listed(response: Any) -> list[str]:
    """Return the contents of a page of messages."""
    assert response.status_code == 200
    return [document["content"] for document in response.json()["results"]]


def test_the_list_is_newest_first_in_pages(program_a: Program) -> None:
    for number in range(5):
        program_a.send(f"message {number}")
    first = program_a.get(f"{MESSAGES}?limit=2")
    second = program_a.get(first.json()["next"])
    third = program_a.get(second.json()["next"])
    assert [listed(page) for page in (first, second, third)] == [
        ["message 4", "message 3"],
        ["message 2", "message 1"],
        ["message 0"],
    ]
    assert third.json()["next"] is None
    assert listed(program_a.get(third.json()["previous"])) == ["message 2", "message 1"]


def test_the_list_is_filtered(program_a: Program) -> None:
    program_a.send("one", user_id="maria", thread_id="t1")
    program_a.send("two", user_id="eve", thread_id="t1")
    program_a.send("three", user_id="eve", thread_id="t2")
    assert listed(program_a.get(f"{MESSAGES}?user_id=eve")) == ["three", "two"]
    assert listed(program_a.get(f"{MESSAGES}?thread_id=t1")) == ["two", "one"]
    assert listed(program_a.get(f"{MESSAGES}?agent=ada&user_id=eve&thread_id=t1")) == ["two"]


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("limit=0", ["limit"]),
        ("limit=201", ["limit"]),
        ("limit=two", ["limit"]),
        ("cursor=%ff", ["cursor"]),
        ("cursor=%00", ["cursor"]),
        ("user_id=a%00b", ["user_id"]),
        ("user=eve", ["user"]),
        ("user_id=a&user_id=b", ["user_id"]),
    ],
)
def test_a_bad_filter_is_named(program_a: Program, query: str, named: list[str]) -> None:
    response = program_a.get(f"{MESSAGES}?{query}")
    assert (response.status_code, refused_fields(response)) == (400, named)


@pytest.mark.parametrize("cursor", ["nonsense", "cD1hYmM", "a.b", "."])
def test_invalid_cursor_is_not_found(program_a: Program, cursor: str) -> None:
    response = program_a.get(f"{MESSAGES}?cursor={cursor}")
    assert refused_fields(response) == ["cursor"]
    assert response.status_code == 404


def test_the_list_asks_the_database_the_same_for_any_length(program_a: Program) -> None:
    for number in range(12):
        answer(program_a, program_a.send(f"message {number}").json()["id"])
    with statements() as sent:
        assert len(listed(program_a.get(MESSAGES))) == 12
    assert len(sent) <= 8
