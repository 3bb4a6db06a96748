"""The review of facts in the admin: the queue, decisions, the page of a fact, and runs."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from konstruct.orchestrator.models import ExtractionRun
from memory.facts import exclude_from_recall
from memory.models import MemoryEntry, Message, RecallExclusion
from memory.models.facts import SYSTEM, FactEvent
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tests.konstruct.conftest import Browser, Program, SendMessage
from tests.konstruct.extracted import propose

REVIEW = "/admin/facts/review/"


@pytest.fixture
def home(program_a: Program, send_message: SendMessage) -> Callable[..., UUID]:
    """Create a run that proposes maria's home."""

    def make(city: str, *, program: Program = program_a, **fields: Any) -> UUID:
        message = send_message(program, f"I live in {city} <now>.", answered=False)
        values = {"subject": "Maria", "slot": "home", "value": city, "is_multi_valued": False}
        return propose(message, city, f"Maria lives in {city}.", **{**values, **fields}).memory_id

    return make


def post(client: Client, fact: UUID, decision: str, **fields: str) -> str:
    answer = client.post(REVIEW, {"fact": fact, "decision": decision, **fields}, follow=True)
    assert answer.status_code == 200
    return str(answer.text)


def state(program: Program, fact: UUID) -> str:
    with tenant_scope(program.tenant.id):
        return str(MemoryEntry.objects.get(pk=fact).state)


def test_facts_of_excluded_messages_leave_the_queue_until_they_are_included_again(
    program_a: Program, admin: Client, home: Callable[..., UUID]
) -> None:
    fact = home("Oslo")
    with tenant_scope(program_a.tenant.id):
        message = Message.objects.get()
    conversation, exclude = (
        f"/admin/{page}{message.pk}/" for page in ("conversations/", "messages/")
    )
    exclude += "exclude/"
    queue = "/api/v1/facts/?state=proposed"
    assert exclude in admin.get(conversation).text
    assert "excluded from recall" not in admin.get(conversation).text
    admin.post(exclude, {"words": "whole", "reason": "A joke."})
    assert "excluded from recall" in admin.get(conversation).text
    assert admin.get(REVIEW).context["fact"] is None
    assert program_a.get(queue).json()["results"] == []
    assert "Maria lives in Oslo." not in admin.get("/admin/").text
    with tenant_scope(program_a.tenant.id):
        exclusion = RecallExclusion.objects.get()
    admin.post(f"/admin/messages/{message.pk}/include/{exclusion.pk}/")
    assert admin.get(REVIEW).context["fact"].pk == fact
    assert len(program_a.get(queue).json()["results"]) == 1
    # Words beside the evidence do not count.
    with tenant_scope(program_a.tenant.id):
        exclude_from_recall(message, author=SYSTEM, start=0, end=6)
    assert admin.get(REVIEW).context["fact"].pk == fact
    assert "words of it are excluded" in admin.get(conversation).text


def test_the_oldest_fact_is_shown_with_its_quote_and_the_next_one_after_a_decision(
    program_a: Program, admin: Client, home: Callable[..., UUID]
) -> None:
    old = home("Rome", review="")
    first, second = home("Oslo"), home("Bergen", slot="office")
    page = admin.get(REVIEW).text
    assert "I live in <mark>Oslo</mark> &lt;now&gt;." in page
    assert "Maria lives in <del>Rome</del><ins>Oslo</ins>." in page
    assert ">2 proposed<" in page
    following = post(admin, first, "confirm")
    assert "Maria lives in Bergen." in following
    assert ">1 propuesto<" in admin.get(REVIEW, headers={"Accept-Language": "es"}).text
    assert [state(program_a, memory_id) for memory_id in (old, first)] == ["superseded", "active"]
    assert "No fact needs a review" in post(admin, second, "reject", reason="A joke.")
    for decision in ("reject", "edit"):  # another tab has decided
        refused = post(admin, first, decision, content="Maria lives in Turku.")
        assert "The fact “Maria lives in Oslo.” is current by now" in refused
    with tenant_scope(program_a.tenant.id):
        event = FactEvent.objects.filter(memory_id=second).latest("number")
        decided = AccessEvent.objects.filter(action="decide").order_by("id")
        decisions = [event.detail["decision"] for event in decided]
    assert (event.action, event.author_kind, event.reason) == ("reject", "person", "A joke.")
    assert decisions == ["confirm", "reject"]


def test_evidence_names_the_agent_of_its_message(program_a: Program, admin: Client) -> None:
    with tenant_scope(program_a.tenant.id):
        reply = Message.objects.create(
            agent_id=program_a.agent.pk, user_id="maria", thread_id="t", channel="rest",
            role="assistant", content="You live in Oslo.",
        )  # fmt: skip
        fact = propose(reply, "Oslo", "Maria lives in Oslo.").memory_id
        MemoryEntry.objects.filter(pk=fact).update(agent_id=None)
    name = program_a.agent.name
    page = admin.get(REVIEW).text
    assert "<bdi>all agents</bdi>" in page
    assert f'<bdi class="k-strong">{name}</bdi>' in page
    page = admin.get(f"/admin/memory/memoryentry/{fact}/change/").text
    assert f"<bdi>{name}</bdi>," in page


@pytest.mark.parametrize(
    ("review", "decision", "expected"),
    [("", "retract", "retracted"), ("", "end", "active"), ("health", "reject", "rejected")],
)
def test_the_page_of_a_fact_has_its_decisions_with_a_reason(
    program_a: Program, admin: Client, home: Callable[..., UUID],
    review: str, decision: str, expected: str,
) -> None:  # fmt: skip
    fact = home("Oslo", review=review)
    address, page = f"/admin/facts/{fact}/decide/", f"/admin/memory/memoryentry/{fact}/change/"
    assert f'name="decision" value="{decision}"' in admin.get(page).text
    form = {"decision": decision, "reason": "Checked."}
    assert admin.post(address, form).status_code == 302
    assert state(program_a, fact) == expected
    assert "Checked." in admin.get(page).text
    admin.post(address, {"decision": "confirm"})  # which the state does not allow
    assert state(program_a, fact) == expected


def test_extraction_run_is_shown_and_rolled_back(
    program_a: Program, admin: Client, home: Callable[..., UUID]
) -> None:
    fact = home("Oslo")
    with tenant_scope(program_a.tenant.id):
        run = ExtractionRun.objects.get()
    page = f"/admin/extraction-runs/{run.pk}/"
    shown = admin.get(f"/admin/orchestrator/extractionrun/{run.pk}/change/").text
    assert "test-model" in shown
    assert admin.get("/admin/orchestrator/extractionrun/").status_code == 200
    assert "are removed" in admin.get(f"{page}roll-back/").text
    rolled_back = admin.post(f"{page}roll-back/", follow=True).text
    assert "Rolled back. Facts: 1 removed, 0 restored, 0 kept." in rolled_back
    with tenant_scope(program_a.tenant.id):
        assert not MemoryEntry.objects.filter(pk=fact).exists()


def test_the_list_shows_the_state_of_each_fact(
    program_a: Program, browser: Browser, home: Callable[..., UUID]
) -> None:
    home("Rome", review="")
    home("Oslo", review="")
    home("Bergen")
    client = browser(program_a.tenant)
    found = {}
    for state_name in ("now", "proposed", "superseded", "retracted"):
        page = client.get(f"/admin/memory/memoryentry/?state={state_name}")
        admin = page.context["cl"].model_admin
        found[state_name] = [
            (fact.value, admin.status(fact)) for fact in page.context["cl"].result_list
        ]
        if state_name == "now":
            assert ">current<" in "".join(page.text.split())
    assert found == {
        "now": [("Oslo", "current")],
        "proposed": [("Bergen", "proposed")],
        "superseded": [("Rome", "superseded")],
        "retracted": [],
    }


def test_auditors_do_not_review(
    program_a: Program, browser: Browser, home: Callable[..., UUID]
) -> None:
    fact, client = home("Oslo"), browser(program_a.tenant, "view_memoryentry")
    assert client.get(REVIEW).status_code == 403
    assert client.post(REVIEW, {"fact": fact, "decision": "confirm"}).status_code == 403
    assert client.post(f"/admin/facts/{fact}/decide/", {"decision": "reject"}).status_code == 403
    assert state(program_a, fact) == "proposed"
