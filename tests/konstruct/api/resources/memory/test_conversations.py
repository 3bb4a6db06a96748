"""Titles and metadata of conversations by REST."""

import json
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client

from konstruct.api.resources.memory import conversations
from konstruct.privacy import jobs
from memory.models import Conversation
from tenants.context import tenant_scope
from tests import database
from tests.konstruct.conftest import Program

ADDRESS = "/api/v1/conversations/"
OF_MARIA = {"agent": "ada", "user_id": "maria", "thread_id": "t1"}


def update(program: Program, body: Any, **conversation: str) -> Any:
    query = urlencode({**OF_MARIA, **conversation})
    return program.write("PATCH", f"{ADDRESS}transcript/?{query}", body)


def listed(program: Program, **query: Any) -> list[tuple[str, str, dict[str, Any]]]:
    rows = program.get(f"{ADDRESS}?{urlencode(query)}").json()["results"]
    return [(row["thread_id"], row["title"], row["metadata"]) for row in rows]


@pytest.mark.parametrize("limit", [0, 1000])
def test_conversations_have_titles_and_are_found_by_them(
    program_a: Program, program_b: Program, admin: Client, limit: int, monkeypatch: Any
) -> None:
    monkeypatch.setattr(conversations, "MAX_FOUND", limit)
    title = "<b>Parcel</b> 100%"
    first = update(program_a, {"title": title, "metadata": {"ticket": 7, "by": "x"}})
    assert (first.status_code, first.json()["title"]) == (200, title)
    merged = update(program_a, {"metadata": {"by": None, "open": True}}).json()
    assert merged == {
        "agent": "ada", "agent_id": str(program_a.agent.id), "user_id": "maria",
        "thread_id": "t1", "title": title, "metadata": {"ticket": 7, "open": True},
    }  # fmt: skip
    for program in (program_a, program_b):
        for thread in ("t1", "t2"):
            program.send("Where is it?", thread_id=thread)
    row = ("t1", title, {"ticket": 7, "open": True})
    assert listed(program_a) == [("t2", "", {}), row]
    assert listed(program_b) == [("t2", "", {}), ("t1", "", {})]
    assert listed(program_a, title="PARCEL</b> 100%") == [row]
    assert listed(program_a, title="100_") == []
    assert listed(program_a, metadata=json.dumps({"ticket": 7})) == [row]
    assert listed(program_a, metadata=json.dumps({"ticket": 8})) == []
    for wrong in ('{"ticket": {"gt": 1}}', "[7]", "x"):
        assert program_a.get(f"{ADDRESS}?{urlencode({'metadata': wrong})}").status_code == 400
    page = admin.get("/admin/conversations/").text
    assert "&lt;b&gt;Parcel&lt;/b&gt; 100%" in page
    assert title not in page


@pytest.mark.parametrize(
    ("body", "conversation", "status"),
    [
        ({}, {}, 400),
        ({"title": "\x00"}, {}, 400),
        ({"title": "x" * 201}, {}, 400),
        ({"title": "a\nb"}, {}, 400),
        ({"metadata": {"a": "x" * 8192}}, {}, 400),
        ({"title": "x"}, {"agent": "nobody"}, 422),
        ({"title": "x"}, {"thread_id": "\u200b"}, 400),
    ],
)
def test_hostile_values_are_refused(
    program_a: Program, body: Any, conversation: dict[str, str], status: int
) -> None:
    assert update(program_a, body, **conversation).status_code == status
    with tenant_scope(program_a.tenant.id):
        assert not Conversation.objects.exists()


def test_a_bound_key_sets_titles_of_its_user(program_a: Program) -> None:
    bound = program_a.with_key(user_id="maria")
    assert update(bound, {"title": "Mine"}).status_code == 200
    assert update(bound, {"title": "Mine"}, user_id="theo").status_code == 403


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_titles_are_erased_with_the_conversation_and_with_the_person(program_a: Program) -> None:
    for thread in ("t1", "t2"):
        update(program_a, {"title": "Walnuts"}, thread_id=thread)
        update(program_a, {"title": "Of Theo"}, thread_id=thread, user_id="theo")
        program_a.send("Hello", thread_id=thread)
    erased = program_a.request("DELETE", f"{ADDRESS}transcript/?{urlencode(OF_MARIA)}")
    assert erased.status_code == 202
    with database.as_owner():
        assert jobs.ERASE_MESSAGES.run_due() == 1

    def left() -> list[tuple[str, str]]:
        with tenant_scope(program_a.tenant.id):
            rows = Conversation.objects.order_by("user_id", "thread_id")
            return list(rows.values_list("user_id", "thread_id"))

    assert left() == [("maria", "t2"), ("theo", "t1"), ("theo", "t2")]
    program_a.post("/api/v1/erasures/", {"user_id": "maria"})
    with database.as_owner():
        assert jobs.ERASE.run_due() == 1
    assert left() == [("theo", "t1"), ("theo", "t2")]
