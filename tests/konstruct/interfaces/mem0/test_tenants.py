"""mem0's REST and two tenants that share ids."""

import pytest

from memory.facts import LongTermMemory
from tests.konstruct.conftest import Program
from tests.konstruct.interfaces.mem0.calls import (
    ANY,
    ENTITIES,
    LIST,
    MEMORIES,
    add,
    listed,
    refusal,
)

pytestmark = pytest.mark.django_db


def test_two_tenants_with_the_same_ids_see_their_own(
    program_a: Program, program_b: Program
) -> None:
    for program, text in ((program_a, "Mine is a."), (program_b, "Mine is b.")):
        add(program, text, user_id="alex", agent_id="ada", run_id="r1")
    for program, text in ((program_a, "Mine is a."), (program_b, "Mine is b.")):
        for filters in ({"user_id": "alex"}, {"agent_id": "ada"}, {"run_id": "r1"}, ANY):
            assert listed(program, filters) == [text]
        total = [entity["total_memories"] for entity in program.get(ENTITIES).json()["results"]]
        assert total == [1, 1, 1]
    (memory,) = program_b.post(LIST, {"filters": ANY}).json()["results"]
    assert refusal(program_a.get(f"{MEMORIES}{memory['id']}/"), 404)
    assert program_a.request("DELETE", f"{MEMORIES}?user_id=alex").json()["count"] == 1
    assert LongTermMemory().get(memory["id"], program_b.tenant.id) is not None
