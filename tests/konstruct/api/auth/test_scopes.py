"""The rights of a key: scopes, a binding to one agent or user, and its last use."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import IntegrityError

from konstruct.api.auth import keys
from konstruct.api.models import ApiKey
from konstruct.orchestrator.agents import create_agent
from tenants import transaction
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests.konstruct.conftest import MESSAGES, Program
from tests.messages import messages_to_postgres

SEARCH = "/api/v1/memories/search/"
USAGE = "/api/v1/usage/"


@pytest.fixture
def other_agent(program_a: Program) -> Any:
    return create_agent(tenant_id=program_a.tenant.id, name="bo", system_prompt="You are Bo.")


def refusal(response: Any, status: int) -> str:
    assert response.status_code == status
    assert response.headers["Content-Type"] == "application/problem+json"
    return str(response.json()["detail"])


def sent_by_all(program: Program, other_agent: Any) -> dict[tuple[str, str], str]:
    """Send one message of each of two users to each of two agents. Return their ids."""
    return {
        (agent, user): program.send(f"{user} to {agent}", agent=agent, user_id=user).json()["id"]
        for agent in ("ada", "bo")
        for user in ("maria", "theo")
    }


def seen(program: Program, ids: Iterable[str], query: str = "") -> list[str]:
    listed = {message["id"] for message in program.get(MESSAGES + query).json()["results"]}
    opened = {
        message_id
        for message_id in ids
        if program.get(f"{MESSAGES}{message_id}/").status_code == 200
    }
    assert query or listed == opened
    return sorted(listed)


@pytest.mark.parametrize(
    ("bound", "agents", "users"),
    [
        ({"agent_id": "ada"}, ["ada"], ["maria", "theo"]),
        ({"user_id": "maria"}, ["ada", "bo"], ["maria"]),
        ({"agent_id": "bo", "user_id": "theo"}, ["bo"], ["theo"]),
    ],
)
def test_bound_key_reads_only_its_own_data(
    program_a: Program, other_agent: Any, bound: dict[str, str], agents: list[str], users: list[str]
) -> None:
    ids = sent_by_all(program_a, other_agent)
    by_name = {"ada": program_a.agent.id, "bo": other_agent.id}
    options: dict[str, UUID | str] = dict(bound)
    if "agent_id" in bound:
        options["agent_id"] = by_name[bound["agent_id"]]
    bound_program = program_a.with_key(**options)
    expected = sorted(id for (agent, user), id in ids.items() if agent in agents and user in users)
    assert seen(bound_program, ids.values()) == expected
    usage = bound_program.get(USAGE).json()
    assert (usage["messages"], usage["pending_replies"], usage["pending_embeddings"]) == (
        len(expected),
    ) * 3
    assert usage["agents"] == (1 if "agent_id" in bound else 2)


def test_a_bound_key_need_not_name_its_agent_and_user(program_a: Program) -> None:
    bound = program_a.with_key(agent_id=program_a.agent.id, user_id="maria")
    sent = bound.post(MESSAGES, {"content": "Hello"})
    assert sent.status_code == 202
    assert (sent.json()["agent"], sent.json()["user_id"]) == ("ada", "maria")
    assert bound.post(SEARCH, {"query": "Hello?"}).status_code == 200
    assert bound.get("/api/v1/windows/").status_code == 200
    refused = bound.post(MESSAGES, {"content": "Hello", "agent": "bo"}).json()
    assert "bound to the agent 'ada', and the request names 'bo'" in refused["detail"]
    refused = bound.post(MESSAGES, {"content": "Hello", "user_id": "theo"}).json()
    assert "bound to the user 'maria', and the request names 'theo'" in refused["detail"]
    assert refused["type"] == "urn:konstruct:problem:outside-of-key"
    assert [error["field"] for error in refused["errors"]] == ["user_id"]
    unbound = program_a.post(MESSAGES, {"content": "Hello"}).json()
    assert [error["field"] for error in unbound["errors"]] == ["agent", "user_id"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scopes": []}, "scopes: "),
        ({"scopes": ["admin"]}, "scopes: "),
        ({"user_id": ""}, "user_id: "),
        ({"user_id": "a\nb"}, "user_id: "),
        ({"user_id": "x" * 256}, "user_id: "),
        ({"agent_id": UUID(int=7)}, "agent: "),
    ],
)
def test_invalid_key_is_refused_by_field(
    tenant_a: Tenant, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(keys.KeyInvalid, match=message):
        keys.issue_key(tenant_id=tenant_a.id, name="x", **options)


def test_a_key_cannot_be_bound_to_another_tenants_agent(
    program_a: Program, program_b: Program
) -> None:
    with pytest.raises(keys.KeyInvalid, match="agent: "):
        keys.issue_key(tenant_id=program_a.tenant.id, name="x", agent_id=program_b.agent.id)


def test_postgres_refuses_invalid_scopes(tenant_a: Tenant) -> None:
    key, _ = keys.issue_key(tenant_id=tenant_a.id, name="x")
    with tenant_scope(tenant_a.id):
        for scopes in ([], ["admin"]):
            with pytest.raises(IntegrityError, match="api_key_scopes"), transaction.atomic():
                ApiKey.objects.filter(pk=key.pk).update(scopes=scopes)


def last_use(program: Program) -> datetime | None:
    with tenant_scope(program.tenant.id):
        return ApiKey.objects.get(name="tests").last_used_at


def test_the_last_use_is_known_without_a_write_per_request(
    program_a: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert last_use(program_a) is None
    before = datetime.now(UTC)
    program_a.get(MESSAGES)
    first = last_use(program_a)
    assert first is not None
    assert before <= first <= datetime.now(UTC)
    with messages_to_postgres() as messages:
        program_a.get(MESSAGES)
    assert not any("UPDATE" in statement for statement in messages)
    assert last_use(program_a) == first
    monkeypatch.setattr(keys, "LAST_USE_INTERVAL", timedelta(0))
    program_a.get(MESSAGES)
    again = last_use(program_a)
    assert again is not None
    assert again > first
