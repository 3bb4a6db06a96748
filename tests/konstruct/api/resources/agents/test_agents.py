"""Agents by REST: created once, and changed with their ETag."""

import threading
from typing import Any

from django.db import connections

from konstruct.api.models import IdempotencyRecord
from konstruct.orchestrator.models import Agent
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program

AGENTS = "/api/v1/agents/"


def make(program: Program, name: str = "bo", key: str | None = None, **fields: Any) -> Any:
    headers = {} if key is None else {"Idempotency-Key": key}
    return program.post(AGENTS, {"name": name, **fields}, headers=headers)


def change(program: Program, address: str, body: Any, **headers: str) -> Any:
    return program.write("PATCH", address, body, headers=headers)


def agents(program: Program) -> list[str]:
    with tenant_scope(program.tenant.id):
        return list(Agent.objects.values_list("name", flat=True))


def test_an_agent_is_made(program_a: Program) -> None:
    response = make(program_a, system_prompt="Help.", model_tier="reasoning", recall_top_k=5)
    document = response.json()
    with tenant_scope(program_a.tenant.id):
        agent = Agent.objects.get(name="bo")
    assert response.status_code == 201
    assert response.headers["Location"] == document["url"] == f"http://localhost{AGENTS}{agent.id}/"
    assert document == {
        "id": str(agent.id),
        "url": document["url"],
        "name": "bo",
        "system_prompt": "Help.",
        "identity": "",
        "persona": "",
        "model": "",
        "model_tier": "reasoning",
        "accepts_client_instructions": True,
        "max_completion_tokens": None,
        "max_tokens_per_day": None,
        "is_active": True,
        "conversation_pause_hours": 12,
        "language": "",
        "language_models": [],
        "reranker": "",
        "recall_mode": "hybrid",
        "recall_top_k": 5,
        "recall_gate": True,
        "recall_preset": "balanced",
        "recall_open_at": None,
        "recall_keep_at": None,
        "recall_neighbours": None,
        "recall_weights": {},
        "time_zone": "",
        "tools": [],
        "escalate_on": [],
        "escalate_after_failures": None,
        "hands_to": [],
        "hand_over_on": {},
        "hand_back_on": [],
        "extracts_facts": False,
        "extraction_model": "",
        "extraction_idle_seconds": 600,
        "extraction_batch_size": 40,
        "extraction_max_tokens_per_day": None,
        "fact_review": "doubtful",
        "fact_review_by_slot": {},
        "created_at": agent.created_at.isoformat().replace("+00:00", "Z"),
    }
    assert program_a.get(document["url"]).json() == document
    assert program_a.send(agent="bo").status_code == 202


def test_failed_request_can_be_repeated_with_its_key(program_a: Program) -> None:
    assert make(program_a, "ada", key="k1").status_code == 409
    assert make(program_a, "bo", key="k1").status_code == 201
    with tenant_scope(program_a.tenant.id):
        assert IdempotencyRecord.objects.count() == 1


def test_second_of_two_concurrent_agents_with_one_name_gets_a_conflict(
    transactional_db: None, program_a: Program
) -> None:
    responses: list[Any] = []

    def send() -> None:
        responses.append(make(program_a))
        connections.close_all()

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(response.status_code for response in responses) == [201, 409, 409, 409]


def test_only_given_fields_are_changed(program_a: Program) -> None:
    made = make(program_a, system_prompt="Help.", persona="Warm.").json()
    response = change(program_a, made["url"], {"persona": "Formal.", "is_active": False})
    assert response.status_code == 200
    assert response.json() == {**made, "persona": "Formal.", "is_active": False}
    assert program_a.get(made["url"]).json() == response.json()


def test_update_with_an_old_etag_is_refused(program_a: Program) -> None:
    address = make(program_a).json()["url"]
    etag = program_a.get(address).headers["ETag"]
    first = change(program_a, address, {"persona": "A"}, **{"If-Match": etag})
    second = change(program_a, address, {"persona": "B"}, **{"If-Match": etag})
    assert (first.status_code, second.status_code) == (200, 412)
    assert second.json()["type"] == "urn:konstruct:problem:changed-since"
    assert program_a.get(address).json()["persona"] == "A"
    assert first.headers["ETag"] == program_a.get(address).headers["ETag"]
    weak = {"If-Match": f'"other", W/{first.headers["ETag"]}'}
    assert change(program_a, address, {"persona": "C"}, **weak).status_code == 200
    assert change(program_a, address, {"persona": "D"}, **{"If-Match": "*"}).status_code == 200
    assert change(program_a, address, {"persona": "E"}, **{"If-Match": "x"}).status_code == 412


def test_agents_are_listed_and_filtered(program_a: Program) -> None:
    change(program_a, make(program_a).json()["url"], {"is_active": False})

    def names(query: str) -> list[str]:
        return [row["name"] for row in program_a.get(f"{AGENTS}?{query}").json()["results"]]

    assert (names(""), names("is_active=true"), names("is_active=false")) == (
        ["ada", "bo"],
        ["ada"],
        ["bo"],
    )


def test_fields_that_contradict_each_other_are_understood_and_not_done(program_a: Program) -> None:
    body = {"name": "eve", "recall_open_at": 0.1, "recall_keep_at": 0.5}
    refused = program_a.post(AGENTS, body)
    assert (refused.status_code, refused.json()["type"]) == (
        422,
        "urn:konstruct:problem:contradictory-fields",
    )
    assert "keep_at=0.5 is more than open_at=0.1" in refused.json()["detail"]
    assert program_a.post(AGENTS, {"name": "eve"}).status_code == 201
