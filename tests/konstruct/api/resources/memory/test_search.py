"""Search in the messages of all people by REST, and the limits of bound keys and people."""

from typing import Any

import pytest

from memory.conversations.transcript import record_message
from memory.facts import LongTermMemory
from memory.indexing import drain
from memory.models import MemoryEntry
from tests.konstruct.conftest import Program

SEARCH = "/api/v1/search/"
FEVER = "My daughter has had a high fever since last night."
INVOICE = "The invoice of March has not arrived yet."


@pytest.fixture
def program_a(program_a: Program) -> Program:
    for user, text in (("mother", FEVER), ("maria", INVOICE)):
        record_message(
            tenant_id=program_a.tenant.id,
            agent_id=program_a.agent.id,
            user_id=user,
            thread_id="t1",
            channel="rest",
            role="user",
            name=f"{user.title()} Rossi",
            content=text,
        )
    fact = {"tenant_id": program_a.tenant.id, "agent_id": program_a.agent.id}
    for user, text in (("mother", "Her daughter is ill."), (None, "The daughter firm is in Oslo.")):
        LongTermMemory().store(MemoryEntry(content=text, user_id=user, **fact))
    drain(program_a.tenant.id)
    return program_a


def search(program: Program, query: str) -> Any:
    response = program.get(f"{SEARCH}?{query}")
    assert response.status_code == 200, response.content
    return response.json()


def test_messages_are_found_by_meaning_and_words(program_a: Program) -> None:
    (found,) = search(program_a, "q=sick+child")["messages"]
    assert (found["content"], found["user_id"], found["words"]) == (FEVER, "mother", 0.0)
    assert found["score"] == found["similarity"] > 0.28
    (found,) = search(program_a, "q=invoices")["messages"]
    assert (found["content"], found["words"]) == (INVOICE, 1.0)
    nothing = search(program_a, "q=xyzzy")
    assert nothing == {"messages": [], "facts": [], "people": [], "is_partial": False}


def test_facts_and_people_are_found(program_a: Program) -> None:
    assert [fact["content"] for fact in search(program_a, "q=her+daughter")["facts"]][:1] == [
        "Her daughter is ill."
    ]
    people = search(program_a, "q=rossi")["people"]
    assert [person["user_id"] for person in people] == ["maria", "mother"]


def test_a_bound_key_searches_its_part(program_a: Program) -> None:
    bound = program_a.with_key(user_id="maria")
    found = search(bound, "q=daughter+invoice+rossi")
    assert [message["user_id"] for message in found["messages"]] == ["maria"]
    assert found["facts"] == []
    assert [person["user_id"] for person in search(bound, "q=rossi")["people"]] == ["maria"]
    assert bound.get(f"{SEARCH}?q=fever&user_id=mother").status_code == 403


@pytest.mark.parametrize(
    "query", ["", "q=", "q=%20", "q=a&limit=101", "q=a&since=yesterday", f"q={'x' * 1001}", "q=%00"]
)
def test_a_query_that_is_unusable_is_refused(program_a: Program, query: str) -> None:
    assert program_a.get(f"{SEARCH}?{query}").status_code == 400
