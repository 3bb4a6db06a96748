"""Facts by REST: changed with their history, deleted, and isolated."""

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.utils import timezone

from konstruct.orchestrator.models import Agent
from tests.konstruct.api.resources.memory.facts.keeping import (
    FACTS,
    bad_fields,
    change,
    found,
    keep,
    listed,
    path_of,
    stored,
)
from tests.konstruct.conftest import Program


def test_change_keeps_the_former_version(program_a: Program) -> None:
    fact = keep(program_a, "Maria lives in Bonn.", metadata={"topic": "home"})
    before = timezone.now()
    response = change(program_a, fact, content="Maria lives in Rome.")
    changed = response.json()
    assert response.status_code == 200
    assert changed["memory_id"] == fact["memory_id"]
    assert changed["content"] == "Maria lives in Rome."
    assert changed["metadata"] == {"topic": "home"}
    assert changed["created_at"] == fact["created_at"]
    assert changed["supersedes"] is not None

    history = program_a.get(path_of(fact, "history/")).json()["results"]
    assert [version["content"] for version in history] == [
        "Maria lives in Rome.",
        "Maria lives in Bonn.",
    ]
    assert [version["memory_id"] for version in history] == [fact["memory_id"]] * 2
    assert history[1]["version_id"] == changed["supersedes"]
    assert history[1]["valid_to"] == changed["valid_from"]

    at = urlencode({"at": before.isoformat()})
    assert program_a.get(path_of(fact, f"?{at}")).json()["content"] == "Maria lives in Bonn."
    assert listed(program_a, at=before.isoformat()) == ["Maria lives in Bonn."]
    assert listed(program_a) == ["Maria lives in Rome."]
    assert found(program_a, "Where does Maria live?", at=before.isoformat()) == [
        "Maria lives in Bonn."
    ]
    assert found(program_a, "Where does Maria live?") == ["Maria lives in Rome."]


def test_a_fact_that_ends_or_expires_is_not_found_any_more(program_a: Program) -> None:
    past = timezone.now() - timedelta(days=1)
    for name in ("valid_to", "expires_at"):
        fact = keep(program_a, f"Tea, until its {name}.", valid_from="2020-01-01T00:00:00Z")
        assert change(program_a, fact, **{name: past.isoformat()}).status_code == 200
        assert listed(program_a) == []
        assert found(program_a, "tea") == []
        assert program_a.get(path_of(fact)).status_code == 404
        versions = program_a.get(path_of(fact, "history/")).json()["results"]
        assert len(versions) == 2
        # It can become true again.
        assert change(program_a, fact, **{name: None}).status_code == 200
        assert program_a.get(path_of(fact)).status_code == 200
        program_a.request("DELETE", path_of(fact))


def test_change_into_an_existing_fact_is_a_conflict(program_a: Program) -> None:
    standing = keep(program_a, "Maria lives in Rome.")
    fact = keep(program_a, "Maria lives in Bonn.")
    response = change(program_a, fact, content="Maria lives in Rome.")
    assert response.status_code == 409
    assert response.json()["type"] == "urn:konstruct:problem:duplicate-fact"
    assert standing["memory_id"] in response.json()["detail"]
    assert listed(program_a) == ["Maria lives in Bonn.", "Maria lives in Rome."]
    assert stored(program_a) == 2


@pytest.mark.parametrize(
    ("fields", "bad"),
    [
        ({}, ["body"]),
        ({"agent": "bo"}, ["agent"]),
        ({"user_id": "theo"}, ["user_id"]),
        ({"content": ""}, ["content"]),
        ({"content": None}, ["content"]),
        ({"valid_to": "then"}, ["valid_to"]),
        ({"metadata": None}, ["metadata"]),
    ],
)
def test_invalid_change_is_refused_by_field(
    program_a: Program, fields: dict[str, Any], bad: list[str]
) -> None:
    fact = keep(program_a, "Tea.")
    assert bad_fields(change(program_a, fact, **fields)) == bad
    assert stored(program_a) == 1


def test_deleted_fact_is_removed_with_its_history(program_a: Program) -> None:
    fact = keep(program_a, "Tea.")
    change(program_a, fact, content="Coffee.")
    assert program_a.request("DELETE", path_of(fact)).status_code == 204
    assert stored(program_a) == 0
    for response in (
        program_a.get(path_of(fact)),
        program_a.get(path_of(fact, "history/")),
        program_a.request("DELETE", path_of(fact)),
        change(program_a, fact, content="Tea."),
    ):
        assert response.status_code == 404
        assert response.json()["type"] == "urn:konstruct:problem:not-found"


def test_change_with_an_old_etag_is_refused(program_a: Program) -> None:
    fact = keep(program_a, "Maria lives in Bonn.")
    seen = program_a.get(path_of(fact)).headers["ETag"]
    assert program_a.get(path_of(fact), headers={"If-None-Match": seen}).status_code == 304

    def change_seen(content: str) -> Any:
        return program_a.write(
            "PATCH", path_of(fact), {"content": content}, headers={"If-Match": seen}
        )

    changed = change_seen("Maria lives in Rome.")
    assert changed.status_code == 200
    assert changed.headers["ETag"] == program_a.get(path_of(fact)).headers["ETag"] != seen
    late = change_seen("Maria lives in Oslo.")
    assert late.status_code == 412
    deleted = program_a.request("DELETE", path_of(fact), headers={"If-Match": seen})
    assert deleted.status_code == 412
    assert listed(program_a) == ["Maria lives in Rome."]


@pytest.mark.slow
def test_a_users_key_sees_and_changes_the_facts_about_them(program_a: Program, bo: Agent) -> None:
    own_fact = keep(program_a, "Maria likes tea.", user_id="maria")
    others = [
        program_a.post(FACTS, {"content": "Everybody knows of tea."}).json(),
        keep(program_a, "Theo likes tea.", user_id="theo"),
        keep(program_a, "Bo says that Maria likes tea.", agent="bo", user_id="maria"),
    ]
    bound_program = program_a.with_key(agent_id=program_a.agent.id, user_id="maria")

    assert listed(bound_program) == listed(bound_program, user_id="maria") == ["Maria likes tea."]
    assert (
        found(bound_program, "tea")
        == found(bound_program, "tea", agent="ada")
        == ["Maria likes tea."]
    )
    assert found(bound_program, "tea", shared_only=True) == []
    for fact in others:
        assert bound_program.get(path_of(fact)).status_code == 404
        assert bound_program.get(path_of(fact, "history/")).status_code == 404
        assert change(bound_program, fact, content="Stolen.").status_code == 404
        assert bound_program.request("DELETE", path_of(fact)).status_code == 404
    assert bound_program.get(f"{FACTS}?user_id=theo").status_code == 403
    assert bound_program.get(f"{FACTS}?agent=bo").status_code == 422
    assert bound_program.post(FACTS, {"user_id": "theo", "content": "Smuggled."}).status_code == 403

    kept = bound_program.post(FACTS, {"content": "Maria drinks it without milk."}).json()
    assert (kept["agent"], kept["user_id"]) == ("ada", "maria")
    assert change(bound_program, own_fact, content="Maria loves tea.").status_code == 200
    assert bound_program.request("DELETE", path_of(kept)).status_code == 204
    assert sorted(listed(program_a)) == [
        "Bo says that Maria likes tea.",
        "Everybody knows of tea.",
        "Maria loves tea.",
        "Theo likes tea.",
    ]


def test_agent_key_reads_facts_of_the_agent_and_changes_its_own(
    program_a: Program, bo: Agent
) -> None:
    shared = program_a.post(FACTS, {"content": "Everybody knows of tea."}).json()
    own = keep(program_a, "Maria likes tea.", user_id="maria")
    others = keep(program_a, "Bo knows of tea.", agent="bo")
    adas = program_a.with_key(agent_id=program_a.agent.id)

    assert listed(adas) == ["Maria likes tea.", "Everybody knows of tea."]
    assert sorted(found(adas, "tea")) == ["Everybody knows of tea.", "Maria likes tea."]
    assert found(adas, "tea", shared_only=True) == ["Everybody knows of tea."]
    assert [adas.get(path_of(fact)).status_code for fact in (shared, own, others)] == [
        200,
        200,
        404,
    ]
    for fact in (shared, others):
        assert change(adas, fact, content="Stolen.").status_code == 404
        assert adas.request("DELETE", path_of(fact)).status_code == 404
    assert adas.post(FACTS, {"agent": "bo", "content": "Smuggled."}).status_code == 422
    assert adas.post(FACTS, {"content": "Theo likes tea."}).json()["agent"] == "ada"
    assert change(adas, own, content="Maria loves tea.").status_code == 200
    assert stored(program_a) == 5


def test_metadata_sent_with_an_existing_text_is_added_and_none_is_dropped(
    program_a: Program,
) -> None:
    def send(**fields: Any) -> Any:
        return program_a.post(FACTS, {"agent": "ada", "content": "Tea is at five.", **fields})

    first = send(metadata={"topic": "tea"})
    second = send(
        metadata={"source": {"url": "https://crm.example"}}, valid_to="2999-01-01T00:00:00Z"
    )
    assert (first.status_code, second.status_code) == (201, 200)
    stands = program_a.get(second.headers["Location"]).json()
    assert stands.pop("evidence") == []
    assert stands["metadata"] == {"topic": "tea", "source": {"url": "https://crm.example"}}
    assert (stands["valid_to"], second.json()["created"]) == ("2999-01-01T00:00:00Z", False)
    assert {name: second.json()[name] for name in stands} == stands
    versions = program_a.get(f"{second.headers['Location']}history/").json()["results"]
    assert [version["metadata"] for version in versions][1:] == [{"topic": "tea"}]

    refused = send(metadata={"topic": "coffee"}, valid_from="2001-01-01T00:00:00Z")
    assert refused.status_code == 400
    assert program_a.get(second.headers["Location"]).json() == {**stands, "evidence": []}
