"""Pages that ask for a person take an id or a name, and never drop the typed text."""

from typing import Any

import pytest
from django.test import Client

from konstruct.orchestrator.identities.channel_identities import find_people, identity_of, link
from konstruct.orchestrator.models import SavedQuestion
from tenants.context import tenant_scope
from tests.konstruct.conftest import Browser, Program, SendMessage

UNKNOWN = "No person has this id or name."
FACTS, MESSAGES = "/admin/memory/memoryentry/", "/admin/memory/message/"


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
        assert find_people("mar") == find_people("Lössl", whole=True) == find_people(" ") == []


@pytest.mark.parametrize(
    "page",
    ["memories/?agent={agent}&q=Where+is+she%3F", "search/?q=sister", "facts/review/?slot="],
)
def test_a_page_takes_a_name_and_says_whom_it_could_mean(
    client: Client, populated_a: Program, page: str
) -> None:
    address = "/admin/" + page.format(agent=populated_a.agent.pk)
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
    """Return whether a page has rows of the user, or filters by the user."""
    context = page.context
    if "filters" in context:
        return context["filters"].get("user") == user_id
    if "messages_found" in context:
        return {found.message.user_id for found, *_ in context["messages_found"]} == {user_id}
    return bool(context.get("found"))


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
    found = client.get(MESSAGES, {"q": "Lößl"}).context["cl"].result_list
    assert {message.user_id for message in found} == {"maria"}
