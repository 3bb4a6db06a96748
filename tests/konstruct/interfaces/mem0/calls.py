"""Calls of mem0's REST, and the memories that they find."""

from typing import Any

from tests.konstruct.conftest import Program

ADD, LIST, SEARCH = "/mem0/v3/memories/add/", "/mem0/v3/memories/", "/mem0/v3/memories/search/"
MEMORIES, BATCH, ENTITIES = "/mem0/v1/memories/", "/mem0/v1/batch/", "/mem0/v1/entities/"


def add(program: Program, text: str, **fields: Any) -> dict[str, Any]:
    answer = program.post(ADD, {"messages": text, "infer": False, **fields})
    assert answer.status_code == 200, answer.content
    (result,) = answer.json()["results"]
    return dict(result)


def listed(program: Program, filters: Any, **fields: Any) -> list[str]:
    answer = program.post(LIST, {"filters": filters, **fields})
    assert answer.status_code == 200, answer.content
    return sorted(memory["memory"] for memory in answer.json()["results"])


def refusal(answer: Any, status: int = 400) -> str:
    assert answer.status_code == status, answer.content
    assert answer.headers["Content-Type"] == "application/json"
    return str(answer.json()["detail"])


TEA, ROME, COFFEE, OFFICE = (
    "I drink tea.", "I live in Rome.", "I drink coffee.", "The office closes at six.",
)  # fmt: skip
ANY: dict[str, Any] = {"OR": [{"user_id": "*"}, {"agent_id": "*"}]}
