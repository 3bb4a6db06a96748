"""The routes of mem0's REST, each with one real request for each of its methods."""

from collections.abc import Callable
from typing import Any

from tests.konstruct.api.case import Case, ada
from tests.konstruct.api.said import Said

MEM0 = "/mem0/"


def at(path: str) -> Callable[[Said], str]:
    return lambda said: MEM0 + path.format(fact=said.fact, ada=ada(said))


def of_vera(said: Said) -> dict[str, Any]:
    return {"AND": [{"agent_id": ada(said)}, {"user_id": "vera"}]}


def tall_vera(said: Said) -> dict[str, Any]:
    return {
        "messages": [{"role": "user", "content": "Vera is tall."}],
        "agent_id": ada(said),
        "user_id": "vera",
        "run_id": "r1",
    }


MEMORY = at("v1/memories/{fact}/")
BATCH = at("v1/batch/")

CASES = {
    ("mem0-ping", "GET"): Case(at("v1/ping/"), foreign=200, messages=2, stranger=200),
    ("mem0-add", "POST"): Case(at("v3/memories/add/"), foreign=422, messages=10, body=tall_vera),
    ("mem0-list", "POST"): Case(
        at("v3/memories/"),
        # An unknown agent has no memories.
        foreign=200,
        messages=6,
        body=lambda said: {"filters": of_vera(said)},
        stranger=200,
    ),
    ("mem0-search", "POST"): Case(
        at("v3/memories/search/"),
        foreign=200,
        messages=6,
        body=lambda said: {"query": "What does Vera like?", "filters": of_vera(said)},
        stranger=200,
    ),
    ("mem0-memories", "DELETE"): Case(
        at("v1/memories/?agent_id={ada}&user_id=vera"), foreign=200, messages=11, stranger=200
    ),
    ("mem0-memory", "GET"): Case(MEMORY, foreign=404, messages=4, stranger=404),
    ("mem0-memory", "PUT"): Case(
        MEMORY,
        foreign=404,
        messages=13,
        body=lambda said: {"text": "Vera hates tea."},
        stranger=404,
    ),
    ("mem0-memory", "DELETE"): Case(MEMORY, foreign=404, messages=10, stranger=404),
    ("mem0-history", "GET"): Case(
        at("v1/memories/{fact}/history/"), foreign=404, messages=5, stranger=404
    ),
    ("mem0-batch", "PUT"): Case(
        BATCH,
        foreign=404,
        messages=12,
        body=lambda said: {"memories": [{"memory_id": str(said.fact), "text": "Vera hates tea."}]},
        stranger=404,
    ),
    ("mem0-batch", "DELETE"): Case(
        BATCH,
        foreign=404,
        messages=11,
        body=lambda said: {"memories": [{"memory_id": str(said.fact)}]},
        stranger=404,
    ),
    ("mem0-entities", "GET"): Case(at("v1/entities/"), foreign=200, messages=5, stranger=200),
    ("mem0-entity", "DELETE"): Case(
        at("v2/entities/agent/{ada}/"), foreign=404, messages=12, stranger=404
    ),
}
