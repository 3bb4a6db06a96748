"""Several facts in one request: all of them are stored, or none."""

from typing import Any

import pytest

from tests.konstruct.api.resources.memory.facts.keeping import FACTS, keep, listed
from tests.konstruct.conftest import Program

BATCH = f"{FACTS}batch/"
TEA = {"agent": "ada", "user_id": "maria", "content": "Maria drinks tea."}
NUTS = {
    "agent": "ada",
    "user_id": "bea",
    "content": "Bea eats nuts.",
    "metadata": {"topic": "food"},
}
HOURS = {"content": "The library closes at six."}


def send(program: Program, *facts: dict[str, Any]) -> Any:
    return program.post(BATCH, {"facts": list(facts)})


def test_facts_are_stored_in_the_order_of_the_request(program_a: Program) -> None:
    standing = keep(program_a, TEA["content"], user_id="maria")
    answer = send(program_a, NUTS, TEA, HOURS, NUTS).json()
    assert answer["created"] == 2
    results = answer["results"]
    assert [(fact["content"], fact["created"]) for fact in results] == [
        (NUTS["content"], True), (TEA["content"], False),
        (HOURS["content"], True), (NUTS["content"], False),
    ]  # fmt: skip
    assert results[1]["memory_id"] == standing["memory_id"]
    assert [(fact["agent"], fact["user_id"]) for fact in results[:3]] == [
        ("ada", "bea"), ("ada", "maria"), (None, None),
    ]  # fmt: skip
    assert results[0]["metadata"] == {"topic": "food"}
    assert len(listed(program_a)) == 3


@pytest.mark.parametrize(
    ("wrong", "status", "field"),
    [
        ({"content": " "}, 400, "facts.1.content"),
        ({"content": "Tea.", "colour": "green"}, 400, "facts.1.colour"),
        ({"content": "Tea.", "agent": "nobody"}, 422, "agent"),
        ({"content": "Tea.", "valid_to": "2026-01-01T00:00:00Z"}, 400, "valid_to"),
    ],
)
def test_batch_with_an_invalid_fact_stores_none(
    program_a: Program, wrong: dict[str, str], status: int, field: str
) -> None:
    answer = send(program_a, TEA, {**wrong, "valid_from": "2026-01-02T00:00:00Z"})
    assert answer.status_code == status
    assert field in answer.content.decode()
    assert listed(program_a) == []


def test_a_bound_key_stores_facts_of_its_user_alone(program_a: Program) -> None:
    bound = program_a.with_key(user_id="maria")
    assert send(bound, TEA, NUTS).status_code == 403
    assert [fact["user_id"] for fact in send(bound, TEA, HOURS).json()["results"]] == ["maria"] * 2
