"""Corrections of facts: their author, value, evidence and reason, and messages that say the old."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import Client

from memory.indexing import drain
from memory.models import MemoryEntry
from memory.models.facts import FactEvent, FactEvidence
from tenants.context import tenant_scope
from tests.konstruct.admin.memory.test_facts import FACTS, form_of
from tests.konstruct.conftest import Program, SendMessage
from tests.konstruct.extracted import propose

REVIEW = "/admin/facts/review/"
SLOT = {"subject": "Maria", "slot": "home", "value": "Antwerp", "is_multi_valued": False}
CONTENT = "Maria lives in Brussels."


@pytest.fixture
def home(program_a: Program, send_message: SendMessage) -> Callable[..., UUID]:
    """Propose maria's home from a message, beside two others that name it."""

    def make(review: str = "") -> UUID:
        message = send_message(program_a, "I live in Antwerp. My dog is Rex.", answered=False)
        propose_home = {"review": review, **SLOT}
        fact = propose(message, "Antwerp", "Maria lives in Antwerp.", **propose_home).memory_id
        send_message(program_a, "Antwerp is home. It rains a lot here.", answered=False)
        send_message(program_a, "I like rain.", answered=False)
        send_message(program_a, "Antwerp again.", answered=False, user_id="bob")
        drain(program_a.tenant.id)
        return fact

    return make


def by_form(program: Program, client: Client, fact: UUID) -> None:
    page = f"{FACTS}{fact}/change/"
    sent = form_of(client, fact, content=CONTENT, reason="She said so.")
    assert client.post(page, sent).status_code == 302


def by_key(program: Program, client: Client, fact: UUID) -> None:
    sent = {"decision": "edit", "content": CONTENT, "value": "Antwerp", "reason": "She said so."}
    page = client.post(REVIEW, {"fact": fact, **sent}, follow=True)
    assert "Other messages say the old value." in page.text


def by_rest(program: Program, client: Client, fact: UUID) -> None:
    body = {"content": CONTENT, "reason": "She said so."}
    answer = program.write("PATCH", f"/api/v1/facts/{fact}/", body)
    assert answer.json()["value"] == "Brussels"


def by_mem0(program: Program, client: Client, fact: UUID) -> None:
    answer = program.write("PUT", f"/mem0/v1/memories/{fact}/", {"text": CONTENT})
    assert answer.status_code == 200, answer.content


@pytest.mark.parametrize("correct", [by_form, by_key, by_rest, by_mem0])
def test_a_correction_has_its_author_value_and_evidence_and_offers_the_old_messages(
    program_a: Program,
    admin: Client,
    home: Callable[..., UUID],
    correct: Callable[[Program, Client, UUID], None],
) -> None:
    fact = home("health" if correct is by_key else "")
    correct(program_a, admin, fact)
    with tenant_scope(program_a.tenant.id):
        author = "tests" if correct in (by_rest, by_mem0) else User.objects.latest("id").username
        entry = MemoryEntry.objects.get(pk=fact)
        event = FactEvent.objects.filter(memory_id=fact, action="change").get()
        assert not FactEvidence.objects.filter(memory_id=fact).exists()
    assert (entry.content, entry.value, entry.slot) == (CONTENT, "Brussels", "home")
    assert event.author_name == author
    assert event.reason == ("" if correct is by_mem0 else "She said so.")
    person = admin.get("/admin/people/person/?user=maria").text
    assert f'Fact changed <span class="k-muted">by <bdi>{author}</bdi>' in person
    address = f"{FACTS}{fact}/change/"
    page = admin.get(address)
    assert page.context["known"]["evidence"] == []
    assert [item.quote for item in page.context["known"]["former_evidence"]] == ["Antwerp"]
    ((message, words, place),) = page.context["known"]["also_said"]
    assert words == "Antwerp is home."
    exclude = f"/admin/messages/{message.pk}/exclude/"
    answer = admin.post(exclude, {"words": place, "fact": str(fact)})
    assert answer.headers["Location"] == address
    assert "also-said" not in admin.get(address).text


def test_a_content_without_the_value_asks_for_it_and_keeps_what_was_typed(
    program_a: Program, admin: Client, home: Callable[..., UUID]
) -> None:
    fact = home("health")
    unclear: dict[str, Any] = {"content": "Maria has moved.", "reason": "By phone."}
    page = admin.post(REVIEW, {"fact": fact, "decision": "edit", "value": "Antwerp", **unclear})
    for text in ("does not have the value of home", "Maria has moved.", "By phone.", " open>"):
        assert text in page.text
    admin.post(REVIEW, {"fact": fact, "decision": "confirm"})
    address = f"{FACTS}{fact}/change/"
    page = admin.post(address, form_of(admin, fact, **unclear))
    assert "does not have the value of home" in page.text
    assert admin.post(address, form_of(admin, fact, **unclear, value="")).status_code == 302
    with tenant_scope(program_a.tenant.id):
        assert MemoryEntry.objects.get(pk=fact).value == ""
