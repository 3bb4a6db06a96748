"""Facts by the ids of programs."""

from typing import Any
from urllib.parse import quote, urlencode

import pytest

from tests.konstruct.api.resources.memory.facts.keeping import FACTS, listed
from tests.konstruct.conftest import Program

TEA = {"content": "Maria drinks tea.", "metadata": {"topic": "food"}}


def path_of(external_id: str, **owner: str) -> str:
    address = f"{FACTS}by-external-id/{quote(external_id, safe='')}/"
    return f"{address}?{urlencode(owner)}" if owner else address


def put(program: Program, external_id: str, body: Any, **owner: str) -> Any:
    return program.write("PUT", path_of(external_id, **owner), body)


def test_a_put_creates_changes_or_leaves_a_fact(program_a: Program) -> None:
    created = put(program_a, "crm/7 é", TEA, user_id="maria")
    assert (created.status_code, created.json()["external_id"]) == (201, "crm/7 é")
    left = put(program_a, "crm/7 é", TEA, user_id="maria")
    assert (left.status_code, left.json()["version_id"]) == (200, created.json()["version_id"])
    history = f"{FACTS}{created.json()['memory_id']}/history/"
    assert len(program_a.get(history).json()["results"]) == 1
    changed = put(program_a, "crm/7 é", {"content": "Maria drinks mate."}, user_id="maria")
    assert changed.status_code == 200
    assert changed.json()["memory_id"] == created.json()["memory_id"]
    assert changed.json()["metadata"] == {}
    assert len(program_a.get(history).json()["results"]) == 2
    times = {"valid_to": "2999-01-01T00:00:00Z", "expires_at": "2999-01-01T00:00:00Z"}
    fact = {"content": "Maria drinks mate.", **times}
    assert put(program_a, "crm/7 é", fact, user_id="maria").json().items() >= times.items()
    cleared = put(program_a, "crm/7 é", fact | dict.fromkeys(times), user_id="maria").json()
    assert (cleared["valid_to"], cleared["expires_at"]) == (None, None)


def test_an_id_is_of_a_tenant_an_agent_and_a_user(program_a: Program, program_b: Program) -> None:
    owners = ({}, {"user_id": "maria"}, {"agent": "ada"}, {"agent": "ada", "user_id": "maria"})
    for owner in owners:
        assert put(program_a, "1", TEA, **owner).status_code == 201
        assert put(program_b, "1", TEA, **owner).status_code == 201
    for owner in owners:
        assert program_a.request("DELETE", path_of("1", **owner)).status_code == 204
        assert program_a.request("DELETE", path_of("1", **owner)).status_code == 404
    assert listed(program_a) == []
    assert len(listed(program_b)) == 4


def test_a_bound_key_has_the_ids_of_its_user(program_a: Program) -> None:
    assert put(program_a, "1", TEA, user_id="theo").status_code == 201
    bound = program_a.with_key(user_id="maria")
    assert put(bound, "1", TEA, user_id="theo").status_code == 403
    assert bound.request("DELETE", path_of("1", user_id="theo")).status_code == 403
    assert put(bound, "1", TEA).json()["user_id"] == "maria"
    assert bound.request("DELETE", path_of("1")).status_code == 204
    assert listed(program_a, user_id="theo") == [TEA["content"]]


@pytest.mark.parametrize("external_id", ["\x00", "\u200b", " ", "x" * 256, "'; DROP TABLE x; --"])
def test_odd_ids_are_refused_or_kept_as_they_are(program_a: Program, external_id: str) -> None:
    response = put(program_a, external_id, TEA)
    if "DROP" in external_id:
        assert response.json()["external_id"] == external_id
    else:
        assert response.status_code in (400, 404)
    assert len(listed(program_a)) == ("DROP" in external_id)
