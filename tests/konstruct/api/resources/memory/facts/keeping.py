"""Requests of facts by REST in tests: store, list, search and change."""

from typing import Any
from urllib.parse import urlencode

from memory.models import MemoryEntry
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program

FACTS = "/api/v1/facts/"
SEARCH = "/api/v1/facts/search/"


def keep(program: Program, content: str, **fields: Any) -> dict[str, Any]:
    """Store a fact of the program's agent. Return the document of the API."""
    response = program.post(FACTS, {"agent": program.agent.name, "content": content, **fields})
    assert response.status_code in (200, 201), response.content
    return dict(response.json())


def listed(program: Program, **query: Any) -> list[str]:
    response = program.get(f"{FACTS}?{urlencode(query)}")
    assert response.status_code == 200, response.content
    return [fact["content"] for fact in response.json()["results"]]


def found(program: Program, query: str, **fields: Any) -> list[str]:
    response = program.post(SEARCH, {"query": query, **fields})
    assert response.status_code == 200, response.content
    return [fact["content"] for fact in response.json()["results"]]


def change(program: Program, fact: dict[str, Any], **fields: Any) -> Any:
    return program.write("PATCH", path_of(fact), fields)


def path_of(fact: dict[str, Any], tail: str = "") -> str:
    return f"{FACTS}{fact['memory_id']}/{tail}"


def bad_fields(response: Any) -> list[str]:
    assert response.status_code == 400
    return [error["field"] for error in response.json()["errors"]]


def stored(program: Program) -> int:
    with tenant_scope(program.tenant.id):
        return MemoryEntry.objects.count()
