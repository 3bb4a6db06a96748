"""The gate in use: a user without a name talks to an agent, and asks about it later."""

import json
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from konstruct.llm.responder import NOTED, NOTHING
from konstruct.management.commands import demo
from memory.conversations.transcript import record_message
from memory.indexing import index_messages
from memory.models import Message
from memory.recall import recall
from tenants import transaction
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests.memory.messages import AGENT, START, add_messages

CONVERSATIONS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "data" / "conversations.json").read_text()
)

pytestmark = pytest.mark.long


@dataclass
class Tally:
    answered: int = 0
    answerable: int = 0
    returned: int = 0
    unanswerable: int = 0


def hold(tenant: Tenant, contents: list[str], replies: list[str], user: str) -> list[UUID]:
    """Record and index a conversation. Return the ids of the user's messages."""
    messages: list[Message] = []
    for number, text in enumerate(contents):
        for role, name, content in (
            ("user", "", text),
            ("assistant", "Iris", replies[number % len(replies)]),
        ):
            message, _ = record_message(
                tenant_id=tenant.id,
                agent_id=AGENT,
                user_id=user,
                thread_id="t",
                channel="rest",
                role=role,
                name=name,
                content=content,
                created_at=START + timedelta(minutes=len(messages)),
            )
            messages.append(message)
    with tenant_scope(tenant.id), transaction.atomic():
        index_messages(messages)
    return [message.id for message in messages[::2]]


def said_to(slug: str) -> list[str]:
    """Return the messages of the demo's user to the agent of a company."""
    (company,) = (company for company in demo.read_companies() if company["slug"] == slug)
    lines = company["messages"]
    return [line["content"] for line in lines if (line["user_id"], line["role"]) == ("sam", "user")]


def tally(tenant: Tenant, conversations: list[dict[str, Any]]) -> Tally:
    tally = Tally()
    for conversation in conversations:
        user = conversation["name"]
        ids = hold(tenant, conversation["said"], conversation["replies"], user)
        for question, number in conversation["answerable"]:
            hits = recall(tenant.id, AGENT, user, question).hits
            tally.answerable += 1
            tally.answered += ids[number] in [hit.message_id for hit in hits]
        for question in conversation["unanswerable"]:
            tally.unanswerable += 1
            tally.returned += not recall(tenant.id, AGENT, user, question).abstained
    return tally


@pytest.mark.parametrize("english", [True, False])
def test_matching_messages_are_found_and_few_others(tenant_a: Tenant, english: bool) -> None:
    found = tally(tenant_a, [c for c in CONVERSATIONS if (c["language"] == "en") is english])
    assert found.answered / found.answerable >= 0.82
    assert found.returned / found.unanswerable <= 0.3


def test_the_demo_is_answered(tenant_a: Tenant) -> None:
    for company in demo.read_companies():
        slug = company["slug"]
        hold(tenant_a, said_to(slug), [NOTED], slug)
        for question in company["questions"]:
            hits = recall(tenant_a.id, AGENT, slug, question["text"]).hits
            if question["answer"]:
                assert any(question["answer"] in hit.content for hit in hits[:3]), question["text"]


QUESTION = "What am I allergic to?"


def test_earlier_identical_question_does_not_displace_the_answer(tenant_a: Tenant) -> None:
    contents = said_to("aurora")
    ids = hold(tenant_a, contents, [NOTED], "sam")
    again = [QUESTION, "what am I allergic to", "So, what am I allergic to?"]
    for number, question in enumerate(again):
        later = START + timedelta(days=number + 1)
        add_messages(tenant_a, question, user="sam", start=later)
        add_messages(tenant_a, NOTHING, user="sam", role="assistant", name="Iris", start=later)
    hits = recall(tenant_a.id, AGENT, "sam", QUESTION).hits
    assert hits[0].message_id == ids[3]
    assert {hit.content for hit in hits}.isdisjoint({NOTHING, *again})


def test_a_statement_with_the_form_of_a_question_is_recalled(tenant_a: Tenant) -> None:
    statement = "Can you remember that my favourite colour is teal?"
    add_messages(tenant_a, statement)
    found = recall(tenant_a.id, AGENT, "ann", "What is my favourite colour?")
    assert [hit.content for hit in found.hits] == [statement]


def test_repeated_question_without_an_answer_finds_nothing(tenant_a: Tenant) -> None:
    hold(tenant_a, said_to("birch"), [NOTED], "sam")
    add_messages(tenant_a, QUESTION, user="sam", start=START + timedelta(days=1))
    add_messages(
        tenant_a, NOTHING, user="sam", role="assistant", start=START + timedelta(days=1, minutes=1)
    )
    assert recall(tenant_a.id, AGENT, "sam", QUESTION).hits == ()
