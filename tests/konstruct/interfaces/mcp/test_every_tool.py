"""Every tool with a program of another tenant, and with narrow keys.

As tests/konstruct/api/test_contract.py does for routes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction
from django.test import Client

from konstruct.interfaces.mcp.tools import TOOLS
from memory.models import MemoryEntry
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tests.konstruct.api.seed_data import SeedData
from tests.konstruct.api.test_contract import World, measured, secrets_of, world
from tests.konstruct.conftest import Program, json_bytes, user_of
from tests.konstruct.interfaces.mcp.speaking import ENDPOINT, NEW, OLD, ask, body_of, headers_of

__all__ = ["world"]


@dataclass(frozen=True)
class Case:
    """A request for objects of a tenant, and its number of messages to Postgres."""

    params: Callable[[SeedData], dict[str, Any]]
    messages: int
    # Its name in the access log.
    action: str


def tool(name: str, **arguments: Callable[[SeedData], Any]) -> Callable[[SeedData], dict[str, Any]]:
    """Return a function that formats the parameters of a tool call with ids of the fixture."""
    return lambda seed: {
        "name": name,
        "arguments": {argument: value(seed) for argument, value in arguments.items()},
    }


def ada(seed: SeedData) -> str:
    return str(seed.program.agent.id)


def vera(seed: SeedData) -> str:
    return "vera"


def fact(seed: SeedData) -> str:
    return str(seed.fact)


CASES = {
    "remember": Case(
        tool("remember", agent=ada, user_id=vera, content=lambda seed: "Vera sings."),
        messages=12,
        action="create",
    ),
    "search": Case(
        tool("search", agent=ada, user_id=vera, query=lambda seed: "What does Vera like?"),
        messages=10,
        action="search",
    ),
    "get": Case(tool("get", id=fact), messages=4, action="view"),
    "get a message": Case(tool("get", id=lambda seed: seed.sent["id"]), messages=5, action="view"),
    "list": Case(tool("list", agent=ada, user_id=vera), messages=5, action="list"),
    "correct": Case(
        tool("correct", id=fact, content=lambda seed: "Vera hates tea."), messages=19, action="edit"
    ),
    "forget": Case(tool("forget", id=fact), messages=12, action="delete"),
}


def test_every_tool_has_a_case() -> None:
    assert {name.split(" ")[0] for name in CASES} == set(TOOLS)


def send(case: Case, owner: SeedData, program: Program, version: str = OLD) -> Any:
    """Send the case's request with the ids of one tenant, as a program of this or another."""
    return ask(program, "tools/call", version, **case.params(owner))


def is_refused(answer: Any) -> bool:
    """Return whether the answer has an error instead of a result."""
    body = answer.json()
    return "error" in body or body["result"].get("isError") is True


@pytest.mark.parametrize("name", sorted(CASES))
def test_tool_keeps_its_contract(world: World, name: str) -> None:
    seed, case = world.victim, CASES[name]
    params = case.params(seed)
    sent, event = messages_of(case, seed)
    assert len(sent) == case.messages, "\n\n".join(sent)
    assert (event.action, event.actor_kind) == (case.action, "program")
    assert user_of(event) == ("maria" if name == "get a message" else "vera")
    assert event.subject_id == params["arguments"].get("id", event.subject_id)
    for version in (OLD, NEW):
        answer = send(case, seed, world.attacker.program, version)
        assert is_refused(answer)
        text = answer.content.decode() + str(dict(answer.headers))
        assert [secret for secret in secrets_of(seed, str(params)) if secret in text] == []
    for program in world.narrow_programs.values():
        answer = send(case, seed, program)
        assert is_refused(answer)
        assert "heliotrope" not in answer.content.decode()
    stranger = Client(headers={"Host": "tenant-a.localhost"})
    body = json_bytes(body_of("tools/call", params, NEW))
    options = {"content_type": "application/json", "headers": headers_of("tools/call", params, NEW)}
    answer = stranger.post(ENDPOINT, body, **options)
    assert answer.status_code == 401
    assert "heliotrope" not in answer.content.decode()


def test_cursor_of_another_tenant_is_refused(world: World) -> None:
    def listed(program: Program, **more: Any) -> Any:
        arguments = {"user_id": "vera", "limit": 1, **more}
        return ask(program, "tools/call", name="list", arguments=arguments)

    page = listed(world.victim.program).json()["result"]["structuredContent"]
    assert page["next_cursor"]
    refused = listed(world.attacker.program, cursor=page["next_cursor"])
    assert is_refused(refused)


def messages_of(case: Case, seed: SeedData, **arguments: Any) -> tuple[list[str], AccessEvent]:
    """Return the messages to Postgres of a request, and its record. It is undone."""
    params = case.params(seed)
    params["arguments"] |= arguments
    messages, event, answer = measured(seed, partial(ask, seed.program, "tools/call", **params))
    assert not is_refused(answer), answer.content
    return messages, event


@pytest.mark.parametrize("name", ["list", "search"])
def test_a_list_costs_the_same_for_any_number_of_rows(world: World, name: str) -> None:
    one, many = (len(messages_of(CASES[name], world.victim, limit=limit)[0]) for limit in (1, 50))
    assert one == many


def test_forgotten_fact_is_removed_with_its_versions(world: World) -> None:
    seed = world.victim
    with transaction.atomic():
        assert not is_refused(send(CASES["forget"], seed, seed.program))
        with tenant_scope(seed.program.tenant.id):
            left = MemoryEntry.objects.filter(version_of=UUID(fact(seed))).count()
            assert (left, MemoryEntry.objects.filter(memory_id=seed.fact).count()) == (0, 0)
        transaction.set_rollback(True)
