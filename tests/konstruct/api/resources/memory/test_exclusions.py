"""Exclusions from recall by REST: of whole messages and of words, undone, and recorded once."""

from typing import Any

import pytest

from memory.indexing import drain
from memory.models import RecallExclusion
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program

V1 = "/api/v1"
STATEMENT = "I live in Rome. My cat is called Tom."


@pytest.fixture
def exclusions_url(program_a: Program) -> str:
    message: str = program_a.send(STATEMENT, thread_id="t1").json()["id"]
    drain(program_a.tenant.id)
    return f"{V1}/messages/{message}/exclusions/"


def contents_found(program: Program, query: str) -> list[str]:
    body = {"agent": program.agent.name, "user_id": "maria", "query": query}
    hits = program.post(f"{V1}/memories/search/", body).json()["results"]
    return [hit["content"] for hit in hits]


def test_message_is_excluded_listed_and_included(program_a: Program, exclusions_url: str) -> None:
    assert any("Rome" in text for text in contents_found(program_a, "Where do I live?"))
    excluded = program_a.post(exclusions_url, {"reason": "A joke."})
    assert excluded.status_code == 200
    document = excluded.json()
    assert (document["start"], document["reason"], document["author_kind"]) == (
        None,
        "A joke.",
        "program",
    )
    assert contents_found(program_a, "Where do I live?") == []
    # A repeated request returns the same exclusion.
    assert program_a.post(exclusions_url, {"reason": "Other."}).json() == document
    assert program_a.get(exclusions_url).json()["results"] == [document]
    assert program_a.request("DELETE", f"{exclusions_url}{document['id']}/").status_code == 204
    assert program_a.request("DELETE", f"{exclusions_url}{document['id']}/").status_code == 404
    assert any("Rome" in text for text in contents_found(program_a, "Where do I live?"))
    with tenant_scope(program_a.tenant.id):
        events = AccessEvent.objects.filter(subject="recall exclusions").order_by("id")
        actions = [event.action for event in events]
    assert actions == ["create", "create", "list", "delete", "refuse"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"start": 3}, "start"),
        ({"end": 3}, "start"),
        ({"start": 5, "end": 5}, "start"),
        ({"start": 0, "end": 9999}, "start"),
        ({"start": -1, "end": 3}, "start"),
        ({"start": "0", "end": 3}, "start"),
        ({"reason": "x" * 2001}, "reason"),
        ({"words": "Rome"}, "words"),
    ],
)
def test_text_outside_of_the_message_is_refused(
    program_a: Program, exclusions_url: str, body: dict[str, Any], field: str
) -> None:
    answer = program_a.post(exclusions_url, body)
    assert answer.status_code in (400, 422)
    assert field in answer.content.decode()
    with tenant_scope(program_a.tenant.id):
        assert not RecallExclusion.objects.exists()


def test_words_of_a_message_are_excluded_alone(program_a: Program, exclusions_url: str) -> None:
    words = "I live in Rome."
    assert program_a.post(exclusions_url, {"start": 0, "end": len(words)}).status_code == 200
    (content,) = contents_found(program_a, "What is my cat called?")
    assert "Tom" in content
    assert "Rome" not in content
