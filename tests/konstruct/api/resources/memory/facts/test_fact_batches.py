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


def change(program: Program, *changes: dict[str, Any]) -> Any:
    return program.write("PATCH", BATCH, {"facts": list(changes)})


def test_facts_are_changed_together_or_not_at_all(program_a: Program) -> None:
    tea, nuts = (fact["memory_id"] for fact in send(program_a, TEA, NUTS).json()["results"])
    more = {"memory_id": nuts, "metadata": {"checked": True}}
    answer = change(program_a, more, {"memory_id": tea, "content": "Maria drinks mate."}).json()
    assert [(fact["content"], fact["metadata"]) for fact in answer["results"]] == [
        (NUTS["content"], {"topic": "food", "checked": True}), ("Maria drinks mate.", {}),
    ]  # fmt: skip
    assert len(program_a.get(f"{FACTS}{tea}/history/").json()["results"]) == 2

    unknown = "00000000-0000-4000-8000-000000000000"
    for wrong, status, field in (
        ({"memory_id": unknown, "content": "Tea."}, 404, "facts.1.memory_id"),
        ({"memory_id": tea, "content": "Tea."}, 400, "facts.0.memory_id"),  # twice
        ({"memory_id": nuts}, 400, "facts.1"),
        ({"memory_id": nuts, "reason": "None."}, 400, "facts.1"),
        ({"memory_id": nuts, "slot": "food"}, 400, "facts.1.slot"),
        ({"memory_id": nuts, "valid_from": "2999-01-01T00:00:00Z"}, 400, "valid_from"),
    ):
        refused = change(program_a, {"memory_id": tea, "content": "Maria drinks."}, wrong)
        assert refused.status_code == status, refused.content
        assert field in refused.content.decode()
    assert "Maria drinks mate." in listed(program_a)


def test_facts_are_deleted_together_or_not_at_all(program_a: Program, program_b: Program) -> None:
    ids = [fact["memory_id"] for fact in send(program_a, TEA, NUTS, HOURS).json()["results"]]
    path = f"{BATCH}delete/"
    bound = program_a.with_key(user_id="maria")
    for program in (bound, program_b):
        refused = program.post(path, {"memory_ids": ids})
        assert refused.status_code == 404
    errors = refused.json()["errors"]
    assert [error["field"] for error in errors] == [f"memory_ids.{n}" for n in range(3)]
    assert len(listed(program_a)) == 3
    assert bound.post(path, {"memory_ids": ids[:1]}).status_code == 204
    assert program_a.post(path, {"memory_ids": ids[1:]}).status_code == 204
    assert listed(program_a) == []


def test_a_batch_of_another_tenant_changes_nothing(program_a: Program, program_b: Program) -> None:
    (tea,) = (fact["memory_id"] for fact in send(program_a, TEA).json()["results"])
    assert change(program_b, {"memory_id": tea, "content": "Stolen."}).status_code == 404
    assert listed(program_a) == [TEA["content"]]
