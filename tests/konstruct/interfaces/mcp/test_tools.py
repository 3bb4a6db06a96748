"""The tools: their effects, the keys they need, and their entries in the access log."""

from typing import Any
from uuid import uuid4

import jsonschema
import pytest

from konstruct.interfaces.mcp.tools import TOOLS
from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.models import Agent
from memory import indexing
from memory.facts import LongTermMemory
from memory.models import MemoryEntry
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program, user_of
from tests.konstruct.interfaces.mcp.speaking import NEW, OLD, ask, call, text_of

pytestmark = pytest.mark.django_db


def remember(program: Program, content: str, **more: Any) -> str:
    result = call(program, "remember", content=content, **{"user_id": "maria", **more})
    assert result["isError"] is False, result
    memory_id: str = result["structuredContent"]["id"]
    return memory_id


def last_event(program: Program) -> AccessEvent:
    with tenant_scope(program.tenant.id):
        return AccessEvent.objects.latest("id")


def listed(program: Program) -> dict[str, Any]:
    tools = ask(program, "tools/list").json()["result"]["tools"]
    return {tool["name"]: tool for tool in tools}


@pytest.mark.parametrize("version", [OLD, NEW])
def test_facts_and_messages_are_found_in_one_search(program_a: Program, version: str) -> None:
    fact = remember(program_a, "Maria is allergic to walnuts.")
    program_a.send("My sister lives in Porto.", name="Maria")
    indexing.drain(program_a.tenant.id)
    found = call(program_a, "search", version, query="Where does my sister live?", user_id="maria")
    results = found["structuredContent"]["results"]
    assert [(memory["kind"], memory["content"], memory["who"]) for memory in results] == [
        ("fact", "Maria is allergic to walnuts.", "maria"),
        ("message", "My sister lives in Porto.", "Maria"),
    ]
    assert results[0]["id"] == fact
    assert all(-1 <= memory["score"] <= 1 and memory["when"] for memory in results)
    assert "My sister lives in Porto." in text_of(found)
    event = last_event(program_a)
    assert (event.action, event.subject) == ("search", "facts and memories")
    assert (user_of(event), event.detail) == ("maria", {"tool": "search", "found": 2})


def test_irrelevant_facts_are_omitted_and_the_floors_are_named(program_a: Program) -> None:
    remember(program_a, "Maria is allergic to walnuts.")
    for query in ("xyzzy", "Which quarter does the invoice of the printer belong to?"):
        found = call(program_a, "search", query=query, user_id="maria")
        assert found["structuredContent"]["results"] == []
        assert text_of(found) == (
            "No memory answers this: a fact needs a similarity of 0.18, one of"
            " the 3 nearest 0.1, the best message a probability of 0.15. Ask in other words."
        )


def test_stored_fact_is_corrected_and_deleted(program_a: Program) -> None:
    fact = remember(program_a, "Maria lives in Porto.", metadata={"topic": "home"})
    assert last_event(program_a).action == "create"
    corrected = call(program_a, "correct", id=fact, content="Maria lives in Rome.")
    assert corrected["structuredContent"]["content"] == "Maria lives in Rome."
    event = last_event(program_a)
    assert (event.action, event.subject, event.subject_id) == ("edit", "fact", fact)
    assert event.detail["withheld"] == ["asserter", "content", "content_digest"]

    message = call(program_a, "get", id=fact)
    assert [memory["content"] for memory in message["structuredContent"]["earlier"]] == [
        "Maria lives in Porto."
    ]
    assert (last_event(program_a).action, last_event(program_a).subject) == ("view", "fact")

    assert call(program_a, "forget", id=fact)["isError"] is False
    event = last_event(program_a)
    assert (event.action, event.subject_id, user_of(event)) == ("delete", fact, "maria")
    deleted = call(program_a, "get", id=fact)
    assert deleted["isError"] is True
    assert fact in text_of(deleted)
    event = last_event(program_a)
    assert (event.action, event.detail["attempted"], event.detail["status"]) == (
        "refuse",
        "view",
        404,
    )


def test_facts_are_paged(program_a: Program) -> None:
    facts = [remember(program_a, f"Maria owns {number} cats.") for number in range(3)]
    first = call(program_a, "list", user_id="maria", limit=2)["structuredContent"]
    assert [fact["id"] for fact in first["results"]] == facts[:0:-1]
    cursor = first["next_cursor"]
    second = call(program_a, "list", user_id="maria", limit=2, cursor=cursor)["structuredContent"]
    assert [fact["id"] for fact in second["results"]] == facts[:1]
    assert second["next_cursor"] is None
    other = call(program_a, "list", user_id="theo", cursor=cursor)
    assert other["isError"] is True
    assert "cursor" in text_of(other)


def test_a_key_of_a_user_sees_and_writes_that_user_alone(program_a: Program) -> None:
    fact_of_maria = remember(program_a, "Maria is allergic to walnuts.")
    shared = LongTermMemory().store(
        MemoryEntry(tenant_id=program_a.tenant.id, content="The library closes at six.")
    )
    theo = program_a.with_key(user_id="theo")
    for tool in listed(theo).values():
        assert "user_id" not in tool["inputSchema"]["properties"]
    fact_of_theo = call(theo, "remember", content="Theo likes walnuts.")["structuredContent"]
    assert fact_of_theo["who"] == "theo"
    found = call(theo, "search", query="walnuts")["structuredContent"]["results"]
    assert [fact["id"] for fact in found] == [fact_of_theo["id"]]
    assert [e["id"] for e in call(theo, "list")["structuredContent"]["results"]] == [
        fact_of_theo["id"]
    ]
    for tool, arguments in (
        ("remember", {"content": "Maria lies.", "user_id": "maria"}),
        ("search", {"query": "walnuts", "user_id": "maria"}),
        ("list", {"user_id": "maria"}),
        ("get", {"id": fact_of_maria}),
        ("get", {"id": str(shared)}),
        ("correct", {"id": fact_of_maria, "content": "Maria lies."}),
        ("correct", {"id": str(shared), "content": "It never closes."}),
        ("forget", {"id": fact_of_maria}),
        ("forget", {"id": str(shared)}),
    ):
        refused = call(theo, tool, **arguments)
        assert refused["isError"] is True, tool
        assert "walnuts" not in text_of(refused)
    facts = LongTermMemory()
    kept = [facts.get(fact_id, program_a.tenant.id) for fact_id in (fact_of_maria, shared)]
    assert [fact and fact.content for fact in kept] == [
        "Maria is allergic to walnuts.",
        "The library closes at six.",
    ]


def test_a_key_of_an_agent_writes_for_that_agent_alone(program_a: Program) -> None:
    call_as = program_a.with_key(agent_id=program_a.agent.id)
    assert "agent" not in listed(call_as)["search"]["inputSchema"]["properties"]
    fact = remember(call_as, "Maria drinks tea.")
    kept = LongTermMemory().get(fact, program_a.tenant.id)
    assert kept is not None
    assert kept.agent_id == program_a.agent.id
    refused = call(call_as, "search", query="tea", user_id="maria", agent="nobody")
    assert refused["isError"] is True


def test_key_lists_and_calls_tools_of_its_scopes(program_a: Program) -> None:
    reader = program_a.with_key(scopes=["read"])
    assert sorted(listed(reader)) == ["get", "list", "search"]
    refused = call(reader, "remember", content="Maria lies.", user_id="maria")
    assert refused["isError"] is True
    assert text_of(refused) == "This needs the scope write; yours: read."
    event = last_event(program_a)
    assert (event.action, event.subject, event.detail["attempted"]) == ("refuse", "fact", "create")
    assert call(program_a, "list", user_id="maria")["structuredContent"]["results"] == []
    eraser = program_a.with_key(scopes=["erase"])
    assert listed(eraser) == {}


@pytest.mark.parametrize(
    ("tool", "arguments", "error"),
    [
        ("remember", {"content": "Maria lies."}, "user_id: Name the user"),
        ("remember", {"user_id": "maria"}, "content: This field is required."),
        ("remember", {"content": " ", "user_id": "maria"}, "content: This is blank"),
        ("remember", {"content": "a", "user_id": "\ud800"}, "user_id: Surrogate characters"),
        ("remember", {"content": "a", "user_id": "m", "\ud800": 1}, "Unknown field."),
        ("search", {"query": "q", "user_id": "m", "limit": 1000}, "limit: "),
        ("search", {"query": "q", "user_id": "m", "agent": "nobody"}, "nobody"),
        ("list", {"user_id": "m", "cursor": "x"}, "cursor"),
        ("get", {"id": "5"}, "id: "),
        ("get", {"id": str(uuid4())}, "There is no memory"),
        ("forget", {"id": str(uuid4())}, "There is no fact"),
    ],
)
def test_refusal_is_a_sentence(
    program_a: Program, tool: str, arguments: dict[str, Any], error: str
) -> None:
    for version in (OLD, NEW):
        result = call(program_a, tool, version, **arguments)
        assert result["isError"] is True
        assert error in text_of(result)
        assert "See errors" not in text_of(result)
        assert last_event(program_a).action == "refuse"


def test_internal_error_is_returned_without_its_cause(
    program_a: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: Any, **__: Any) -> None:
        raise RuntimeError("postgres://user:secret@host")

    monkeypatch.setattr("konstruct.interfaces.mcp.tools.changes.row_state", breaks)
    failed = call(program_a, "remember", content="Maria lies.", user_id="maria")
    assert failed["isError"] is True
    assert "secret" not in text_of(failed)
    assert call(program_a, "list", user_id="maria")["structuredContent"]["results"] == []


@pytest.mark.slow
@pytest.mark.parametrize("nothing", [None, ""])
def test_arguments_are_taken_as_language_models_send_them(program_a: Program, nothing: Any) -> None:
    for number in range(6):
        remember(program_a, f"Maria has {number} walnut trees.")
    arguments = {"user_id": "maria", "agent": nothing}
    page = call(program_a, "list", **arguments, limit="5", cursor=nothing)["structuredContent"]
    assert len(page["results"]) == 5
    whole = call(program_a, "list", **arguments, limit=nothing)["structuredContent"]
    assert len(whole["results"]) == 6
    found = call(program_a, "search", **arguments, query="walnuts", preset=nothing, limit="2")
    assert len(found["structuredContent"]["results"]) == 2


def test_search_without_one_of_several_agents_finds_facts(program_a: Program) -> None:
    remember(program_a, "Maria is allergic to walnuts.")
    for name in ("bo", "al"):
        create_agent(tenant_id=program_a.tenant.id, name=name)
    close_agents(program_a, "al")
    found = call(program_a, "search", query="What is she allergic to?", user_id="maria")
    (fact,) = found["structuredContent"]["results"]
    assert fact["content"] == "Maria is allergic to walnuts."
    assert text_of(found).endswith(
        "Only facts were searched. To search messages too, name the agent:"
        " 'ada', 'bo', 'al' (inactive)."
    )
    for name in ("bo", "al"):
        found = call(program_a, "search", query="q", user_id="maria", agent=name)
        assert found["isError"] is False


def close_agents(program: Program, *names: str) -> None:
    with tenant_scope(program.tenant.id):
        assert Agent.objects.filter(name__in=names).update(is_active=False) == len(names)


def test_schemas_and_results_agree(program_a: Program) -> None:
    tools = listed(program_a)
    assert list(tools) == list(TOOLS)
    fact = remember(program_a, "Maria drinks tea.")
    remember(program_a, "Maria drinks a tea.")
    calls: dict[str, dict[str, Any]] = {
        "remember": {"content": "Maria drinks some tea.", "user_id": "maria"},
        "search": {"query": "tea", "user_id": "maria", "limit": 1},
        "correct": {"id": fact, "content": "Maria drinks coffee."},
        "get": {"id": fact},
        "list": {"user_id": "maria", "limit": 1},
        "forget": {"id": fact},
    }
    assert set(calls) == set(tools)
    for name, arguments in calls.items():
        tool = tools[name]
        jsonschema.validate(arguments, tool["inputSchema"])
        result = call(program_a, name, **arguments)
        jsonschema.validate(result["structuredContent"], tool["outputSchema"])
    for name in ("remember", "search", "list"):
        required = tools[name]["inputSchema"]["required"]
        assert "user_id" in required
