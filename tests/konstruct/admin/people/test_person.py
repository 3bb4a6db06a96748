"""The page of a person: facts as of a moment, and the timeline."""

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.utils import timezone

from konstruct.admin import people as pages
from konstruct.orchestrator.identities import channel_identities
from konstruct.orchestrator.identities.channel_identities import find_people, identity_of, link
from konstruct.orchestrator.identities.timeline import EntryKind, Position, timeline
from konstruct.orchestrator.models import SavedQuestion
from memory.facts import Author, LongTermMemory, exclude_from_recall, retract
from memory.indexing import drain
from memory.models import MemoryEntry, Message
from memory.models.facts import AuthorKind
from tenants.audit.people import Person
from tenants.context import tenant_scope
from tests.konstruct.conftest import Browser, Program, SendMessage

PERSON = "/admin/people/person/"
EVA = Author(AuthorKind.PERSON, "7", "Eva")


def entries(program: Program, *users: str, **chosen: Any) -> list[Any]:
    with tenant_scope(program.tenant.id):
        return timeline(users, **chosen)


def all_pages(client: Client, **query: str) -> list[Any]:
    found: list[Any] = []
    page = client.get(PERSON, query)
    for _ in range(100):
        found += page.context["entries"]
        if not page.context["earlier"]:
            return found
        page = client.get(PERSON, {**query, "before": page.context["earlier"]})
    raise AssertionError("the pages do not end")


def test_the_timeline_has_every_kind_once_and_in_order(
    pending_a: Program, pending_b: Program, admin: Client, monkeypatch: Any
) -> None:
    with tenant_scope(pending_a.tenant.id):
        message = Message.objects.filter(user_id="maria", role="user").earliest("number")
        exclude_from_recall(message, author=EVA, reason="A joke.")
    admin.post(f"{PERSON}erase/?user=maria", {"typed": "maria", "reason": "Her own wish."})
    monkeypatch.setattr(pages, "PER_PAGE", 3)
    listed = all_pages(admin, user="maria")
    assert len({entry["key"] for entry in listed}) == len(listed)
    assert [(entry["at"], entry["key"]) for entry in listed] == sorted(
        ((entry["at"], entry["key"]) for entry in listed), reverse=True
    )
    assert {entry["kind"] for entry in listed} == {
        kind for kind in EntryKind if kind not in (EntryKind.ESCALATION, EntryKind.CONSENT)
    }
    zoe = entries(pending_a, "zoe")
    assert {(event.kind, event.action) for event in zoe} >= {
        (EntryKind.CONSENT, "asked"),
        (EntryKind.ESCALATION, "opened"),
    }
    texts = " ".join(entry["text"] + entry["note"] for entry in listed)
    assert "tenant-a" in texts
    assert "tenant-b" not in texts
    for entry in listed:
        assert admin.get(entry["address"]).status_code == 200, entry


def test_the_timeline_is_narrowed_by_kind_agent_and_position(pending_a: Program) -> None:
    facts = entries(pending_a, "maria", kinds=[EntryKind.FACT])
    assert {event.kind for event in facts} == {EntryKind.FACT}
    assert [event.action for event in facts][-2:] == ["change", "enter"]
    everything = entries(pending_a, "maria", limit=1000)
    assert entries(pending_a, "maria", limit=2) == everything[:2]
    place = Position(everything[1].at, everything[1].key)
    assert entries(pending_a, "maria", before=place, limit=1000) == everything[2:]
    of_agent = entries(pending_a, "maria", agent_id=pending_a.agent.pk, limit=1000)
    assert of_agent == [entry for entry in everything if entry.agent_id == pending_a.agent.pk]
    assert entries(pending_a, "maria", agent_id=pending_a.tenant.id) == []
    assert entries(pending_a, "maria", kinds=[]) == []
    assert entries(pending_a, "nobody") == []


def test_person_page_shows_the_facts_of_a_date(populated_a: Program, admin: Client) -> None:
    tenant_id = populated_a.tenant.id
    today = timezone.now()
    facts = LongTermMemory()
    with tenant_scope(tenant_id):
        former = facts.store(
            MemoryEntry(
                tenant_id=tenant_id,
                user_id="maria",
                content="Maria lives in Rome.",
                valid_from=today - timedelta(days=30),
            )
        )
        facts.update(
            former, tenant_id, content="Maria lives in Oslo.", valid_from=today - timedelta(days=3)
        )
        wrong = facts.store(
            MemoryEntry(tenant_id=tenant_id, user_id="maria", content="Maria has a dog.")
        )
        retract(wrong, author=EVA)

    def page_as_of(day: int) -> str:
        at = (today - timedelta(days=day)).date().isoformat()
        return admin.get(PERSON, {"user": "maria", "at": at}).text

    assert "Maria lives in Rome." in page_as_of(10)
    assert "Maria lives in Oslo." not in page_as_of(10)
    assert "recorded later" in page_as_of(10)
    assert "Lisbon and visits" not in page_as_of(10)
    assert "Maria lives in Oslo." in page_as_of(1)
    now = admin.get(PERSON, {"user": "maria"})
    content = [row.content for row in now.context["facts"]["current"]["rows"]]
    assert "Maria lives in Oslo." in content
    assert [row.content for row in now.context["facts"]["former"]["rows"]] == ["Maria has a dog."]


def test_page_of_a_linked_account_shows_messages_of_both_accounts(
    populated_a: Program, admin: Client, send_message: SendMessage
) -> None:
    send_message(populated_a, "Said in Slack.", answered=False, user_id="U024", name="Mia")
    with tenant_scope(populated_a.tenant.id):
        identity = channel_identities.identity_of("slack", "T1", "U024")
        channel_identities.link(identity, "maria", by="eva")
    for user_id in ("maria", "U024"):
        page = admin.get(PERSON, {"user": user_id})
        assert (page.context["user_id"], page.context["name"]) == ("maria", "Mia")
        assert "Said in Slack." in page.text
        assert "likes green tea" in page.text


def test_each_kind_needs_its_permission(pending_a: Program, browser: Browser) -> None:
    reader = browser(pending_a.tenant, "view_scope", "view_memoryentry")
    page = reader.get(PERSON, {"user": "maria"})
    assert {entry["kind"] for entry in page.context["entries"]} == {EntryKind.FACT}
    assert "Lisbon and visits" not in page.text
    looker = browser(pending_a.tenant, "view_scope")
    page = looker.get(PERSON, {"user": "zoe"})
    assert page.context["entries"] == []


UNKNOWN = "No person has this id or name."
FACTS = "/admin/memory/memoryentry/"


@pytest.fixture
def client(populated_a: Program, browser: Browser, send_message: SendMessage) -> Client:
    """Log in to a tenant with maria and two people of the same name."""
    for user_id, name in (("maria", "Maria Lößl"), ("u-1", "Theo Kern"), ("u-2", "Theo Kern")):
        send_message(populated_a, "Hello.", answered=False, user_id=user_id, name=name)
    with tenant_scope(populated_a.tenant.id):
        link(identity_of("slack", "T1", "U024", "Mia"), "maria", by="eva")
    return browser(populated_a.tenant)


def test_a_text_names_people(client: Client, populated_a: Program) -> None:
    with tenant_scope(populated_a.tenant.id):
        for text in ("maria", "Maria Lößl", "LOSSL", "lossl maria", "mia", "U024", "MARIA"):
            assert len(find_people(text)) == 1, text
            assert {*find_people(text)} <= {"maria", "U024"}
        assert find_people("theo kern") == ["u-1", "u-2"]
        Person.objects.filter(pk="u-1").update(chosen_name="T. Kern")
        assert find_people("t. kern", whole=True) == ["u-1"]
        assert find_people("mar") == find_people("Lössl", whole=True) == find_people(" ") == []


def test_a_page_takes_a_name_and_says_whom_it_could_mean(client: Client) -> None:
    address = "/admin/search/?q=sister"
    for typed in ("maria", "Lößl"):
        found = client.get(f"{address}&user={typed}")
        assert is_about(found, "maria")
        assert f'value="{typed}"' in found.text
    for typed, texts in (("Theo Kern", ("Several people", "u-1", "u-2")), ("Otto", (UNKNOWN,))):
        found = client.get(f"{address}&user={typed}")
        assert not is_about(found, "maria")
        for text in (*texts, f'value="{typed}"'):
            assert text in found.text


def is_about(page: Any, user_id: str) -> bool:
    """Return whether a page has rows of the user."""
    found = page.context.get("messages_found", ())
    return {row.message.user_id for row, *_ in found} == {user_id}


def test_forms_take_a_name_and_keep_what_was_typed(client: Client, populated_a: Program) -> None:
    address = f"/admin/agents/{populated_a.agent.pk}/try/"
    sent = {"content": "Where does my sister live?", "do": "save", "user_id": "maria lossl"}
    assert client.post(address, sent).status_code == 302
    with tenant_scope(populated_a.tenant.id):
        assert SavedQuestion.objects.get().user_id == "maria"
    page = client.post(address, {"content": "Hello, you.", "user_id": "Lößl"})
    assert page.context["sides"]
    for do in ("", "save"):
        for typed, text in (("Otto", UNKNOWN), ("Theo Kern", "Theo Kern (u-1), Theo Kern (u-2)")):
            page = client.post(address, {"content": "Hello, you.", "user_id": typed, "do": do})
            for expected in (text, "Hello, you.", f'value="{typed}"'):
                assert expected in page.text
            assert not page.context["sides"]
    # A fact may be about a person who is not known yet.
    fact = {"metadata": "{}", "valid_from_0": "", "valid_from_1": ""}
    for typed, user_id in (("Maria Lößl", "maria"), ("Otto", "Otto"), ("Maria", "Maria")):
        content = f"Likes {typed}."
        client.post(f"{FACTS}add/", {**fact, "content": content, "user_id": typed})
        listed = client.get(FACTS, {"q": user_id}).context["cl"].result_list
        assert (content, user_id) in [(row.content, row.user_id) for row in listed]


@pytest.mark.django_db(transaction=True)
def test_erasure_form_warns_of_ids_that_look_the_same(program_a: Program, admin: Client) -> None:
    for user_id in ("zoe", "zoe ", "eva"):
        assert program_a.send("Hello", user_id=user_id).status_code == 202
    drain(program_a.tenant.id)
    page = admin.get(f"/admin/people/person/erase/?{urlencode({'user': 'zoe'})}").content.decode()
    assert "zoe‹U+0020›" in page
    other = admin.get(f"/admin/people/person/?{urlencode({'user': 'zoe '})}").content.decode()
    assert "(zoe‹U+0020›)" in other
    alone = admin.get(f"/admin/people/person/erase/?{urlencode({'user': 'eva'})}").content.decode()
    assert 'id="alike"' not in alone
    assert "Messages: 1 · Facts: 0" in alone
