"""Requests with an invalid field are refused with its name, and store nothing."""

from typing import Any

import pytest

from konstruct.orchestrator.models import Agent, SavedQuestion
from memory.models import MemoryEntry
from tenants.context import tenant_scope
from tests.konstruct.api.resources.memory.facts.keeping import bad_fields
from tests.konstruct.api.routes import V1
from tests.konstruct.conftest import Program

# By the address of a POST: the valid fields, and invalid ones with the names in the refusal.
INVALID: dict[str, tuple[Any, ...]] = {
    "agents/": (
        {"name": "bo"},
        ({"name": ""}, "name"),
        ({"name": "5b0e6f4c-6b1a-4b86-9a55-21c0e2d0f0aa"}, "name"),
        ({"recall_top_k": 0}, "recall_top_k"),
        ({"recall_top_k": "3"}, "recall_top_k"),
        ({"max_completion_tokens": 0}, "max_completion_tokens"),
        ({"max_completion_tokens": 2**31}, "max_completion_tokens"),
        ({"accepts_client_instructions": "no"}, "accepts_client_instructions"),
        ({"recall_preset": "custom"}, "recall_preset"),
        ({"recall_open_at": 2}, "recall_open_at"),
        ({"recall_open_at": True}, "recall_open_at"),
        ({"recall_weights": {"nonsense": 1}}, "recall_weights.nonsense"),
        ({"recall_weights": {"time": 11}}, "recall_weights.time"),
        ({"recall_weights": {"time": "1"}}, "recall_weights.time"),
        ({"model_tier": "slow"}, "model_tier"),
        ({"system_prompt": "a\0"}, "system_prompt"),
        ({"tenant_id": "x", "id": "y"}, "tenant_id", "id"),
    ),
    "agents/{agent}/questions/": (
        {"content": "Who are you?"},
        ({"content": ""}, "content"),
        ({"content": "a\0"}, "content"),
        ({"content": "x" * 100_000}, "content"),
        ({"user_id": ""}, "user_id"),
        ({"version": 1}, "version"),
    ),
    "agents/{agent}/dry-runs/": (
        {},
        ({"content": " "}, "content"),
        ({"content": "a\0"}, "content"),
        ({"content": "x" * 100_000}, "content"),
        ({"content": "x", "user_id": "u" * 300}, "user_id"),
        ({"content": "x", "draft": {"name": "eve"}}, "draft.name"),
        ({"content": "x", "draft": {"recall_top_k": 0}}, "draft.recall_top_k"),
        ({"content": "x", "draft": {"tools": ["rm"]}}, "draft.tools.0"),
        ({"content": "x", "agent": "ada"}, "agent"),
    ),
    "facts/": (
        {},
        ({}, "content"),
        ({"content": " \n"}, "content"),
        ({"content": "x" * 40_000}, "content"),
        ({"content": "tea", "metadata": []}, "metadata"),
        ({"content": "tea", "metadata": {str(n): n for n in range(300)}}, "metadata"),
        ({"content": "tea", "valid_from": "2020-01-01T00:00:00"}, "valid_from"),
        ({"content": "tea", "expires_at": "9999-12-31T23:59:59-12:00"}, "expires_at"),
        ({"content": "tea", "user_id": ""}, "user_id"),
        ({"content": "tea", "tenant_id": "x"}, "tenant_id"),
        ({"content": "tea", "embedding": [1.0]}, "embedding"),
    ),
    "facts/search/": (
        {},
        ({"query": ""}, "query"),
        ({"query": "x" * 9000}, "query"),
        ({"query": "tea", "limit": 0}, "limit"),
        ({"query": "tea", "limit": 101}, "limit"),
        ({"query": "tea", "threshold": "nan"}, "threshold"),
        ({"query": "tea", "shared_only": 1}, "shared_only"),
        ({"query": "tea", "filters": {"a": {"like": 1}}}, "filters"),
        ({"query": "tea", "top_k": 3}, "top_k"),
    ),
    "memories/search/": (
        {"agent": "ada", "user_id": "maria", "query": "Where is the car?"},
        ({"query": " "}, "query"),
        ({"query": "x" * 9000}, "query"),
        ({"query": "a\0"}, "query"),
        ({"top_k": 0}, "top_k"),
        ({"top_k": 101}, "top_k"),
        ({"top_k": "3"}, "top_k"),
        ({"top_k": True}, "top_k"),
        ({"gate": "yes"}, "gate"),
        ({"mode": "psychic"}, "mode"),
        ({"at": "2026-03-14T09:30:00"}, "at"),
        ({"at": "soon"}, "at"),
        ({"explain": 1}, "explain"),
        ({"tenant_id": "x"}, "tenant_id"),
        ({"user_id": ""}, "user_id"),
    ),
    "context/compile/": (
        {"agent": "ada", "user_id": "maria", "task": "Why?"},
        ({"task": None}, "task"),
        ({"task": ["Why?"]}, "task"),
        ({"task": {"description": 7}}, "task"),
        ({"task": {"note": "x" * 40_000}}, "task"),
        ({"task": "x" * 40_000}, "task"),
        ({"user_id": ""}, "user_id"),
        ({"model_tier": "huge"}, "model_tier"),
        ({"messages": "Hello"}, "messages"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages.0.role"),
        ({"messages": [{"role": "user", "content": "x", "name": "y"}]}, "messages.0.name"),
        ({"messages": [{"role": "user", "content": "x"}] * 1001}, "messages"),
        ({"system_prompt": None}, "system_prompt"),
        ({"tenant_id": "x"}, "tenant_id"),
    ),
}


@pytest.mark.parametrize(
    ("path", "fields", "named"),
    [
        (path, {**valid, **fields}, named)
        for path, (valid, *cases) in INVALID.items()
        for fields, *named in cases
    ],
)
def test_invalid_field_is_refused_by_name(
    program_a: Program, path: str, fields: dict[str, Any], named: list[str]
) -> None:
    response = program_a.post(V1 + path.format(agent=program_a.agent.pk), fields)
    assert bad_fields(response) == named
    assert response.json()["type"] == "urn:konstruct:problem:invalid-fields"
    with tenant_scope(program_a.tenant.id):
        stored = [model.objects.count() for model in (Agent, MemoryEntry, SavedQuestion)]
    assert stored == [1, 0, 0]
