"""Facts by REST: stored, listed and found."""

import json
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.utils import timezone

from konstruct.orchestrator.models import Agent
from tests.konstruct.api.resources.memory.facts.keeping import (
    FACTS,
    SEARCH,
    bad_fields,
    found,
    keep,
    listed,
    stored,
)
from tests.konstruct.conftest import Program


def test_stored_fact_is_returned_with_all_fields_and_its_address(program_a: Program) -> None:
    before = timezone.now()
    response = program_a.post(
        FACTS,
        {
            "agent": "ada",
            "user_id": "maria",
            "content": "Maria is allergic to walnuts.",
            "metadata": {"topic": "health", "tags": ["food", None], "source": {"line": 3}},
            "valid_from": "2020-01-01T00:00:00+01:00",
            "expires_at": "2999-01-01T00:00:00Z",
        },
    )
    fact = response.json()
    assert response.status_code == 201
    assert response.headers["Location"] == fact["url"]
    assert before <= datetime.fromisoformat(fact.pop("created_at")) <= timezone.now()
    assert before <= datetime.fromisoformat(fact.pop("updated_at")) <= timezone.now()
    expected = {
        "memory_id": fact["memory_id"],
        "url": f"http://localhost{FACTS}{fact['memory_id']}/",
        "agent": "ada",
        "agent_id": str(program_a.agent.id),
        "user_id": "maria",
        "external_id": None,
        "content": "Maria is allergic to walnuts.",
        "metadata": {"topic": "health", "tags": ["food", None], "source": {"line": 3}},
        "valid_from": "2019-12-31T23:00:00Z",
        "valid_to": None,
        "expires_at": "2999-01-01T00:00:00Z",
        "version_id": fact["memory_id"],
        "supersedes": None,
        **dict.fromkeys(("subject", "slot", "value", "asserter", "review_reason"), ""),
        "is_multi_valued": True,
        "kind": "entered",
        "state": "active",
        "created": True,
        "near_duplicates": [],
    }
    assert {name: fact[name] for name in expected} == expected
    read_back = program_a.get(urlsplit(fact["url"]).path).json()
    assert read_back["content"] == "Maria is allergic to walnuts."
    assert "created" not in read_back


def test_the_same_text_is_the_same_fact_and_near_ones_are_reported(program_a: Program) -> None:
    first = keep(program_a, "Maria lives in Bonn.", user_id="maria")
    body = {"agent": "ada", "user_id": "maria", "content": "Maria lives in Bonn."}
    again = program_a.post(FACTS, body)
    assert (again.status_code, again.json()["created"]) == (200, False)
    assert again.json()["memory_id"] == first["memory_id"]

    near = keep(program_a, "Maria is living in Bonn.", user_id="maria")
    (reported,) = near["near_duplicates"]
    assert reported["memory_id"] == first["memory_id"]
    assert reported["content"] == "Maria lives in Bonn."
    assert 0.9 <= reported["score"] < 1
    assert stored(program_a) == 2


def test_a_list_is_newest_first_and_narrowed(program_a: Program, bo: Agent) -> None:
    keep(program_a, "Ada knows of tea.", metadata={"topic": "food", "priority": 1})
    keep(program_a, "Bo knows of tea.", agent="bo", metadata={"topic": "food", "priority": 3})
    keep(program_a, "Maria likes tea.", user_id="maria", metadata={"topic": "drink"})
    keep(program_a, "Theo likes tea.", user_id="theo")
    program_a.post(FACTS, {"content": "Everybody knows of tea."})

    everything = ["Everybody knows", "Theo likes", "Maria likes", "Bo knows", "Ada knows"]
    assert [text.rsplit(" tea", 1)[0].removesuffix(" of") for text in listed(program_a)] == (
        everything
    )
    assert listed(program_a, agent="bo") == ["Everybody knows of tea.", "Bo knows of tea."]
    assert listed(program_a, agent=str(bo.id)) == ["Everybody knows of tea.", "Bo knows of tea."]
    assert "Theo likes tea." not in listed(program_a, user_id="maria")
    assert "Maria likes tea." in listed(program_a, user_id="maria")

    def filtered(**filters: Any) -> list[str]:
        return listed(program_a, filters=json.dumps(filters))

    assert filtered(topic="food") == ["Bo knows of tea.", "Ada knows of tea."]
    assert filtered(topic={"in": ["drink"]}) == ["Maria likes tea."]
    assert filtered(priority={"gte": 2}) == ["Bo knows of tea."]
    assert filtered(topic={"exists": False}) == ["Everybody knows of tea.", "Theo likes tea."]
    assert filtered(topic={"contains": "oo", "ne": "drink"}) == filtered(topic="food")
    assert len(filtered(topic={"ne": "food"})) == 3


@pytest.mark.parametrize(
    "query",
    [
        "cursor=%25",
        "ordering=content",
        "at=2026-01-01",
        "filters=x",
        "filters=[]",
        "filters=%7B%22a%22%3A%7B%22like%22%3A1%7D%7D",
        "user_id=",
    ],
)
def test_invalid_parameter_of_the_list_is_refused(program_a: Program, query: str) -> None:
    assert bad_fields(program_a.get(f"{FACTS}?{query}")) == [query.split("=")[0]]


def test_facts_are_found_by_meaning_best_first(program_a: Program, bo: Agent) -> None:
    keep(program_a, "Maria is allergic to walnuts.", user_id="maria", metadata={"topic": "health"})
    keep(program_a, "The car is red.", user_id="maria")
    keep(program_a, "Theo is allergic to milk.", user_id="theo")
    keep(program_a, "Bo's guests are allergic to nothing.", agent="bo")

    ada = {"agent": "ada", "user_id": "maria"}
    assert found(program_a, "Who has an allergy?", **ada) == [
        "Maria is allergic to walnuts.",
        "The car is red.",
    ]
    assert found(program_a, "Who has an allergy?", limit=1, **ada) == [
        "Maria is allergic to walnuts."
    ]
    assert found(program_a, "Who has an allergy?", threshold=0.3, **ada) == [
        "Maria is allergic to walnuts."
    ]
    assert found(program_a, "car", filters={"topic": "health"}) == ["Maria is allergic to walnuts."]
    assert found(program_a, "allergy", shared_only=True) == ["Bo's guests are allergic to nothing."]
    own = {"user_id": "maria", "shared": False}
    assert found(program_a, "allergy", **own) == [
        "Maria is allergic to walnuts.",
        "The car is red.",
    ]
    listed = {
        shared: len(program_a.get(f"{FACTS}?user_id=maria&shared={shared}").json()["results"])
        for shared in ("true", "false")
    }
    assert listed == {"true": 3, "false": 2}
    (best, *_) = program_a.post(SEARCH, {"query": "The car is red."}).json()["results"]
    assert best["score"] == pytest.approx(1, abs=1e-4)
    assert best["agent"] == "ada"
