"""The routes of mem0's REST, each with one real request for each of its methods."""

from collections.abc import Callable
from typing import Any

from tests.konstruct.api.case import Case, ada, template
from tests.konstruct.api.seed_data import SeedData

MEM0 = "/mem0/"


def at(path: str) -> Callable[[SeedData], str]:
    return template(MEM0 + path)


def of_vera(seed: SeedData) -> dict[str, Any]:
    return {"AND": [{"agent_id": ada(seed)}, {"user_id": "vera"}]}


def tall_vera(seed: SeedData) -> dict[str, Any]:
    return {
        "messages": [{"role": "user", "content": "Vera is tall."}],
        "agent_id": ada(seed),
        "user_id": "vera",
        "run_id": "r1",
    }


MEMORY = at("v1/memories/{fact}/")
BATCH = at("v1/batch/")

CASES = {
    ("mem0-ping", "GET"): Case(at("v1/ping/"), messages=2),
    ("mem0-add", "POST"): Case(at("v3/memories/add/"), messages=17, body=tall_vera),
    ("mem0-list", "POST"): Case(
        at("v3/memories/"), messages=6, body=lambda seed: {"filters": of_vera(seed)}
    ),
    ("mem0-search", "POST"): Case(
        at("v3/memories/search/"),
        messages=6,
        body=lambda seed: {"query": "What does Vera like?", "filters": of_vera(seed)},
    ),
    ("mem0-memories", "DELETE"): Case(at("v1/memories/?agent_id={ada}&user_id=vera"), messages=12),
    ("mem0-memory", "GET"): Case(MEMORY, messages=4),
    ("mem0-memory", "PUT"): Case(
        MEMORY, messages=20, body=lambda seed: {"text": "Vera hates tea."}
    ),
    ("mem0-memory", "DELETE"): Case(MEMORY, messages=12),
    ("mem0-history", "GET"): Case(at("v1/memories/{fact}/history/"), messages=5),
    ("mem0-batch", "PUT"): Case(
        BATCH,
        messages=19,
        body=lambda seed: {"memories": [{"memory_id": str(seed.fact), "text": "Vera hates tea."}]},
    ),
    ("mem0-batch", "DELETE"): Case(
        BATCH, messages=12, body=lambda seed: {"memories": [{"memory_id": str(seed.fact)}]}
    ),
    ("mem0-entities", "GET"): Case(at("v1/entities/"), messages=5),
    ("mem0-entity", "DELETE"): Case(at("v2/entities/agent/{ada}/"), messages=13),
}
