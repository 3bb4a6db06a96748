"""The search of the admin: every kind by its permission, ids, erased people, and the palette."""

from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from konstruct.orchestrator.models import Agent, Escalation
from memory.indexing import drain
from memory.models import MemoryEntry, Message
from tenants.audit.models import AccessEvent, ErasureRequest
from tenants.audit.people import pseudonym
from tenants.context import tenant_scope
from tests.konstruct.conftest import Browser, Program, SendMessage, user_of

SEARCH, PALETTE = "/admin/search/", "/admin/palette/"
FEVER = "My daughter has had a high fever since last night."
READS = ("search_everyone", "view_message")


@pytest.fixture
def program_a(db: None, module_populated: Program) -> Program:
    return module_populated


@pytest.fixture
def fever(program_a: Program, send_message: SendMessage) -> Message:
    message = send_message(program_a, FEVER, user_id="mother", name="Tilda Brandt", answered=False)
    drain(program_a.tenant.id)
    return message


def contents_found(client: Client, **parameters: str) -> list[str]:
    page = client.get(SEARCH, parameters)
    assert page.status_code == 200
    return [hit.message.content for hit, *_ in page.context.get("messages_found", ())]


def named(client: Client, query: str) -> list[tuple[str, str]]:
    found = client.get(SEARCH, {"q": query}).context["named"]
    return [(result.title, result.description) for result in found]


def test_message_is_found_by_meaning(
    program_a: Program, fever: Message, admin: Client, send_message: SendMessage
) -> None:
    assert contents_found(admin, q="sick child")[0] == FEVER
    page = admin.get(SEARCH, {"q": "fever"}).text
    assert f'href="/admin/conversations/{fever.pk}/#m{fever.pk}"' in page
    assert "100 % of the words" in page
    later = send_message(program_a, "The fever is gone.", user_id="mother", answered=False)
    drain(program_a.tenant.id)
    page = admin.get(SEARCH, {"q": "fever gone"}).text
    assert str(later.pk) in page
    assert "<span><bdi>mother</bdi></span>" not in page


def test_messages_are_narrowed(program_a: Program, fever: Message, admin: Client) -> None:
    agent = str(program_a.agent.pk)
    assert contents_found(admin, q="fever", user="mother", agent=agent) == [FEVER]
    assert FEVER not in contents_found(admin, q="fever", user="maria")
    assert contents_found(admin, q="fever", agent="nonsense")[0] == FEVER


def test_people_agents_conversations_and_facts_are_found(
    program_a: Program, fever: Message, admin: Client
) -> None:
    assert named(admin, "tilda") == [("Tilda Brandt (mother)", "Person")]
    assert named(admin, "ada") == [(program_a.agent.name, "Agent")]
    assert (f"{fever.thread_id} (mother)", "Conversation") in named(admin, fever.thread_id)
    with tenant_scope(program_a.tenant.id):
        fact = MemoryEntry.objects.as_of().get()
    facts = admin.get(SEARCH, {"q": fact.content}).context["facts"]
    assert [fact.pk for fact, _ in facts] == [fact.pk]


def test_an_id_opens_its_object(
    program_a: Program, fever: Message, browser: Browser, admin: Client
) -> None:
    with tenant_scope(program_a.tenant.id):
        fact = MemoryEntry.objects.as_of().get()
        escalation = Escalation.objects.create(
            agent_id=program_a.agent.pk, user_id="mother", thread_id="t1", opened_by="person"
        )
    for row, page in (
        (fever, f"/admin/conversations/{fever.pk}/"),
        (fact, f"/admin/memory/memoryentry/{fact.pk}/change/"),
        (program_a.agent, f"/admin/orchestrator/agent/{program_a.agent.pk}/change/"),
        (escalation, f"/admin/escalations/{escalation.pk}/"),
    ):
        assert admin.get(SEARCH, {"q": f" {row.pk} "})["Location"] == page
    assert admin.get(SEARCH, {"q": str(uuid4())}).status_code == 200
    # A user without the permission to view facts gets none.
    assert browser(program_a.tenant, *READS).get(SEARCH, {"q": str(fact.pk)}).status_code == 200


def test_an_erased_id_finds_its_receipt(program_a: Program, browser: Browser) -> None:
    with tenant_scope(program_a.tenant.id):
        request = ErasureRequest.objects.create(
            user_id=pseudonym("gone"), requested_by="x", done_at="2026-01-01T00:00Z", receipt={}
        )
    client = browser(program_a.tenant)
    page = client.get("/admin/audit/erasurerequest/", {"q": "gone"})
    assert f"/admin/audit/erasurerequest/{request.pk}/change/" in page.text


def test_the_palette_finds_people_agents_and_lists(
    program_a: Program, fever: Message, browser: Browser, admin: Client
) -> None:
    people = admin.get(PALETTE, {"s": "Tilda", "extended": "1"}).text
    assert "/admin/people/person/?user=mother" in people
    assert "/admin/search/?q=Tilda" in people
    agents = admin.get(PALETTE, {"s": "ada", "extended": "1"}).text
    assert f"/admin/orchestrator/agent/{program_a.agent.pk}/change/" in agents
    assert "/admin/memory/message/" in admin.get(PALETTE, {"s": "messages", "extended": "1"}).text
    nobody = browser(program_a.tenant, "view_message")
    assert "Tilda Brandt" not in nobody.get(PALETTE, {"s": "tilda", "extended": "1"}).text


def test_markup_in_names_and_messages_is_text(
    program_a: Program, send_message: SendMessage, admin: Client
) -> None:
    send_message(program_a, "<img src=x> fever", user_id="<b>x", name="<i>Eve", answered=False)
    with tenant_scope(program_a.tenant.id):
        Agent.objects.create(name="<u>eve", system_prompt="")
    for page in (
        admin.get(SEARCH, {"q": "eve"}).text,
        admin.get(SEARCH, {"q": "<img src=x> fever"}).text,
        admin.get(PALETTE, {"s": "eve", "extended": "1"}).text,
    ):
        for markup in ("<img src=x", "<b>x", "<i>Eve", "<u>eve"):
            assert markup not in page


def test_each_kind_needs_its_permission(
    program_a: Program, fever: Message, browser: Browser
) -> None:
    assert browser(program_a.tenant, "view_message").get(SEARCH, {"q": "a"}).status_code == 403
    context: Any = browser(program_a.tenant, *READS).get(SEARCH, {"q": "mother"}).context
    assert (context["named"], context["facts"]) == ([], [])
    client = browser(program_a.tenant, "search_everyone", "view_scope")
    assert named(client, "mother") == [("Tilda Brandt (mother)", "Person")]
    assert client.get(SEARCH, {"q": "mother"}).context["messages_found"] == []
    assert named(client, fever.thread_id) == []


def test_a_recall_has_the_memories_with_their_reasons(program_a: Program, admin: Client) -> None:
    query = {"agent": str(program_a.agent.pk), "user": "maria", "q": "When will she visit?"}
    answer = admin.get("/admin/memories/", query)
    best = answer.context["hits"][0]
    assert best["content"] == "My sister lives in Lisbon and visits in May."
    assert {"meaning", "words"} <= {str(label) for label, _ in best["signals"]}
    with tenant_scope(program_a.tenant.id):
        event = AccessEvent.objects.get(action="search", subject="memories")
    assert (user_of(event), event.detail) == ("maria", {})
    nobody = admin.get("/admin/memories/", {**query, "user": "somebody"})
    assert "No person has this id or name." in nobody.text
