"""mem0's REST with bound keys and narrow keys."""

import pytest

from tests.konstruct.conftest import Program
from tests.konstruct.interfaces.mem0.calls import (
    ADD,
    ANY,
    COFFEE,
    ENTITIES,
    LIST,
    MEMORIES,
    OFFICE,
    ROME,
    SEARCH,
    TEA,
    add,
    listed,
    refusal,
)

pytestmark = pytest.mark.django_db


def test_user_key_reads_and_writes_only_memories_of_its_user(program: Program) -> None:
    bound_program = program.with_key(user_id="alex", scopes=["read", "write"])
    assert listed(bound_program, {"user_id": "*"}) == listed(bound_program, {}) == [TEA, ROME]
    assert (
        listed(bound_program, {"user_id": "bea"})
        == listed(bound_program, {"NOT": [{"user_id": "alex"}]})
        == []
    )
    found = bound_program.post(
        SEARCH, {"query": "coffee", "filters": {"OR": [ANY, {"user_id": "bea"}]}}
    )
    assert {memory["user_id"] for memory in found.json()["results"]} == {"alex"}
    assert add(bound_program, "I hum.")["user_id"] == "alex"
    body = {"messages": "I am not bea.", "user_id": "bea"}
    assert "bound to the user 'alex'" in refusal(bound_program.post(ADD, body), 403)
    (coffee,) = program.post(LIST, {"filters": {"user_id": "bea"}}).json()["results"]
    path = f"{MEMORIES}{coffee['id']}/"
    change = {"data": b'{"text": "I drink nothing."}', "content_type": "application/json"}
    for method, address, options in (
        ("GET", path, {}),
        ("GET", f"{path}history/", {}),
        ("PUT", path, change),
        ("DELETE", path, {}),
    ):
        assert refusal(bound_program.request(method, address, **options), 404)
    assert bound_program.request("DELETE", f"{MEMORIES}?user_id=bea").json()["count"] == 0
    assert refusal(bound_program.request("DELETE", "/mem0/v2/entities/user/bea/"), 404)
    names = {entity["name"] for entity in bound_program.get(ENTITIES).json()["results"]}
    assert names == {"ada", "a1", "r1", "alex"}
    assert bound_program.request("DELETE", f"{MEMORIES}?agent_id=ada").json()["count"] == 1
    assert listed(program, ANY) == sorted([TEA, COFFEE, OFFICE, "I hum."])


def test_a_key_of_an_agent_sees_and_writes_only_its_own(program: Program) -> None:
    adas = program.with_key(agent_id=program.agent.id)
    assert listed(adas, ANY) == [ROME, OFFICE]
    assert add(adas, "I hum.", user_id="bea")["agent_id"] == "ada"
    body = {"messages": "a", "user_id": "bea", "agent_id": "bo"}
    error = refusal(adas.post(ADD, body), 422)
    assert "bound to the agent 'ada', and the request names 'bo'" in error
    assert adas.request("DELETE", f"{MEMORIES}?user_id=alex").json()["count"] == 1
    assert listed(program, {"user_id": "alex"}) == [TEA]


def test_scopes_are_needed(program: Program) -> None:
    reader = program.with_key(scopes=["read"])
    assert listed(reader, {"user_id": "bea"}) == [COFFEE]
    assert "needs the scope write" in refusal(reader.post(ADD, {}), 403)
    assert "needs the scope write" in refusal(reader.request("DELETE", MEMORIES), 403)
    assert "needs the scope read" in refusal(program.with_key(scopes=["write"]).get(ENTITIES), 403)


def test_request_requires_a_key_and_accepts_the_token_scheme_of_mem0(program: Program) -> None:
    ping = "/mem0/v1/ping/"
    answer = program.get(ping, headers={"Authorization": f"Token {program.key}"})
    assert answer.json()["project_id"] == str(program.tenant.id)
    refusal(program.get(ping, headers={"Authorization": ""}), 401)
    refusal(program.get(ping, headers={"Authorization": "Token nonsense"}), 401)
    refusal(program.get(ping, headers={"Authorization": f"Token {program.key[:-1]}"}), 401)
