"""Search of memories by REST, and the statistics of a tenant."""

from typing import Any

import pytest

from konstruct.api.resources.operations import usage
from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.history_import.lines import import_history
from memory import indexing
from tenants.context import tenant_scope
from tests.konstruct.api.resources.memory.facts.keeping import keep
from tests.konstruct.conftest import Program
from tests.messages import statements

SEARCH = "/api/v1/memories/search/"
USAGE = "/api/v1/usage/"
TRANSCRIPT = "/api/v1/conversations/transcript/?agent=ada&user_id=maria"

MESSAGES = (
    "My sister Clara moved to Lisbon in spring.",
    "I am allergic to walnuts, so never order the cake.",
    "The car is at the garage until Friday.",
    "We painted the kitchen yellow.",
)


def remember(program: Program, *texts: str, user_id: str = "maria") -> None:
    """Send a message to the program's agent, and embed it."""
    lines = [
        {
            "external_id": f"{user_id}-{number}",
            "agent": program.agent.name,
            "user_id": user_id,
            "thread_id": "then",
            "role": "user",
            "content": text,
            "created_at": f"2026-03-14T09:{number:02}:00Z",
        }
        for number, text in enumerate(texts)
    ]
    with tenant_scope(program.tenant.id):
        import_history(lines, tenant_id=program.tenant.id)
    indexing.drain(program.tenant.id)


def search(program: Program, query: str, **fields: Any) -> Any:
    """Search the memory of the program's agent."""
    body = {"agent": program.agent.name, "user_id": "maria", "query": query, **fields}
    return program.post(SEARCH, body)


def test_messages_are_found_by_relevance(program_a: Program) -> None:
    remember(program_a, *MESSAGES)
    response = search(program_a, "What am I allergic to?", gate=False)
    results = response.json()["results"]
    assert response.status_code == 200
    assert results[0]["content"] == MESSAGES[1]
    assert results[0]["external_id"] == "maria-1"
    assert results[0]["created_at"] == "2026-03-14T09:01:00Z"
    assert "channels" not in results[0]
    shown = [memory["probability"] for memory in results]
    assert shown == sorted(shown, reverse=True)
    assert len({memory["message_id"] for memory in results}) == len(results)


def test_options_of_a_search(program_a: Program) -> None:
    remember(program_a, *MESSAGES)
    one = search(program_a, "Where is the car?", gate=False, top_k=1, explain=True).json()
    assert [memory["content"] for memory in one["results"]] == [MESSAGES[2]]
    assert 0 < one["results"][0]["channels"]["cosine"] <= 1
    then = search(program_a, "Where is the car?", gate=False, at="2026-03-14T09:01:30Z").json()
    assert {memory["content"] for memory in then["results"]} == {MESSAGES[0], MESSAGES[1]}
    vector = search(program_a, "Where is the car?", gate=False, mode="vector").json()
    assert vector["results"][0]["content"] == MESSAGES[2]


def without_quotas(program: Program) -> dict[str, Any]:
    return {name: value for name, value in program.get(USAGE).json().items() if name != "quotas"}


def test_usage_counts_this_tenant_alone(program_a: Program, program_b: Program) -> None:
    remember(program_a, *MESSAGES)
    program_a.send("Hello")
    empty = {
        "agents": 1,
        "users": 0,
        "messages": 0,
        "embeddings": 0,
        "pending_embeddings": 0,
        "failed_embeddings": 0,
        "pending_replies": 0,
        "failed_replies": 0,
    }
    quotas = program_b.get(USAGE).json()["quotas"]
    assert {quota["quota"]: quota["hard_limit"] for quota in quotas}["messages"] is None
    assert without_quotas(program_a) == {
        **empty,
        "users": 1,
        "messages": 5,
        "embeddings": 4,
        "pending_embeddings": 1,
        "pending_replies": 1,
    }
    assert without_quotas(program_b) == empty
    assert program_b.get(f"{USAGE}?tenant=a").status_code == 400


def test_usage_counts_to_a_limit_and_reports_it(
    program_a: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(program_a, *MESSAGES)
    monkeypatch.setattr(usage, "MAX_COUNT", 2)
    with statements() as sent:
        counts = program_a.get(USAGE).json()
    assert counts["not_exact"] == ["messages", "embeddings"]
    # Without an estimate of Postgres, the least that there are.
    assert (counts["users"], counts["messages"], counts["embeddings"]) == (1, 2, 2)
    counting = [sql for sql in sent if "COUNT(" in sql]
    assert len(counting) >= 8
    assert all("LIMIT" in sql for sql in counting)


def test_results_are_ordered_by_the_number_that_is_shown(program_a: Program) -> None:
    remember(program_a, *MESSAGES, "Clara likes Lisbon.", "My sister is called Clara.", "Lisbon?")
    asked = search(program_a, "Where does my sister Clara live?", gate=False, top_k=7)
    results = asked.json()["results"]
    shown = [result["probability"] for result in results]
    assert shown == sorted(shown, reverse=True)
    (turn, *_) = program_a.get(f"{TRANSCRIPT}&thread_id=then").json()["results"]
    assert turn["indexed"] is True
    sent = program_a.send().json()
    assert (sent["indexed"], program_a.get(sent["url"]).json()["indexed"]) == (False, False)


def test_without_an_agent_the_memories_of_all_are_searched(
    program_a: Program, program_b: Program
) -> None:
    bo = create_agent(tenant_id=program_a.tenant.id, name="bo")
    of_bo = Program(program_a.tenant, bo, program_a.key)
    remember(program_a, *MESSAGES)
    remember(of_bo, "I am allergic to bees.", MESSAGES[3])
    remember(of_bo, "Theo is allergic to cats.", user_id="theo")
    remember(program_b, "I am allergic to dust.")
    body = {"user_id": "maria", "query": "What am I allergic to?", "gate": False}
    found = program_a.post(SEARCH, body).json()["results"]
    texts = [memory["content"] for memory in found]
    assert {*texts[:2]} == {MESSAGES[1], "I am allergic to bees."}
    assert {*texts} == {*MESSAGES, "I am allergic to bees."}
    assert len(texts) == 5
    by_text = {memory["content"]: memory["agent_id"] for memory in found}
    assert by_text["I am allergic to bees."] == str(bo.pk)
    assert by_text[MESSAGES[1]] == str(program_a.agent.id)
    of_ada = program_a.with_key(agent_id=program_a.agent.id)
    assert {memory["content"] for memory in of_ada.post(SEARCH, body).json()["results"]} == {
        *MESSAGES
    }
    of_theo = program_a.with_key(user_id="theo")
    assert of_theo.post(SEARCH, body).status_code == 403
    (only,) = of_theo.post(SEARCH, {**body, "user_id": "theo"}).json()["results"]
    assert only["content"] == "Theo is allergic to cats."


def test_general_facts_are_left_out_of_a_search(program_a: Program) -> None:
    keep(program_a, "The library closes at six.")
    keep(program_a, "Maria comes at five.", user_id="maria")

    def found(**fields: Any) -> set[str]:
        document = search(program_a, "When?", include=["facts"], gate=False, **fields).json()
        return {fact["content"] for fact in document["facts"]}

    assert found() == {"The library closes at six.", "Maria comes at five."}
    assert found(shared=False) == {"Maria comes at five."}
