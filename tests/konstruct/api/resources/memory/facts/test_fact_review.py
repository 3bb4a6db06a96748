"""The review of facts by REST: the queue, decisions, events, evidence, and replies."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from konstruct.api.auth.keys import roll_key
from konstruct.api.models import ApiKey, KeyScope
from memory.facts import Author
from memory.facts.lifecycle import RecordedCandidate
from memory.models import Message
from memory.models.facts import AuthorKind
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tests.konstruct.api.resources.memory.facts.keeping import FACTS, keep
from tests.konstruct.conftest import Program, json_bytes, user_of
from tests.konstruct.extracted import propose
from tests.konstruct.interfaces.mcp.speaking import call, text_of
from tests.konstruct.interfaces.mem0.calls import ADD
from tests.memory.recall_traces import fact_of, store_trace

OWN = "urn:konstruct:problem:own-proposal"
STATEMENT = "By the way, I live in Oslo now."


def send(program: Program, content: str = STATEMENT, user_id: str = "maria") -> Message:
    """Send a message. Return its row."""
    sent = program.send(content, user_id=user_id).json()
    with tenant_scope(program.tenant.id):
        return Message.objects.get(pk=sent["id"])


def home(program: Program, city: str, **fields: Any) -> RecordedCandidate:
    """Create a run that proposes maria's home."""
    return propose(
        send(program, f"By the way, I live in {city} now."),
        city,
        f"Maria lives in {city}.",
        subject="Maria",
        slot="home_city",
        value=city,
        is_multi_valued=False,
        **fields,
    )


def decide(program: Program, memory_id: UUID, decision: str, **fields: Any) -> Any:
    return program.post(f"{FACTS}{memory_id}/{decision}/", fields)


def other_key(program: Program, **options: Any) -> Program:
    return program.with_key(scopes=KeyScope.values, **options)


def key_author(program: Program) -> Author:
    prefix = program.key.split("_")[2]
    with tenant_scope(program.tenant.id):
        key = ApiKey.objects.get(prefix=prefix)
    return Author(AuthorKind.PROGRAM, str(key.pk), key.name)


def test_queue_lists_proposals_oldest_first_and_recall_ignores_them(program_a: Program) -> None:
    first, second = home(program_a, "Oslo").memory_id, home(program_a, "Rome").memory_id
    assert program_a.get(f"{FACTS}?user_id=maria").json()["results"] == []
    address = f"{FACTS}?state=proposed&ordering=created_at&limit=1"
    page = program_a.get(address).json()
    (fact,) = page["results"]
    assert (fact["memory_id"], fact["state"], fact["review_reason"]) == (
        str(first), "proposed", "health",
    )  # fmt: skip
    assert (fact["subject"], fact["slot"], fact["value"], fact["kind"]) == (
        "Maria", "home_city", "Oslo", "observed",
    )  # fmt: skip
    (following,) = program_a.get(page["next"]).json()["results"]
    assert following["memory_id"] == str(second)
    slots = program_a.get(f"{FACTS}?state=proposed&slot=diet").json()["results"]
    assert slots == []
    refused = program_a.get(f"{FACTS}?state=proposed&at=2026-01-01T00:00:00Z")
    assert refused.status_code == 400


def test_a_fact_has_the_evidence_that_it_rests_on(program_a: Program) -> None:
    memory_id = home(program_a, "Oslo").memory_id
    fact = program_a.get(f"{FACTS}{memory_id}/").json()
    (evidence,) = fact["evidence"]
    assert (evidence["quote"], evidence["start"], evidence["end"]) == ("Oslo", 22, 26)
    assert evidence["run_id"] == fact["run_id"]
    assert evidence["url"].endswith(f"/api/v1/messages/{evidence['message_id']}/")
    assert fact["learned_at"] is not None


def test_a_confirmed_fact_is_active_and_supersedes_the_one_before(program_a: Program) -> None:
    old = home(program_a, "Rome", review="").memory_id
    new = home(program_a, "Oslo").memory_id
    answer = decide(program_a, new, "confirm", reason="She moved.")
    assert answer.status_code == 200, answer.content
    assert (answer.json()["state"], answer.json()["review_reason"]) == ("active", "")
    assert answer.json()["replaces"] == str(old)
    superseded = program_a.get(f"{FACTS}{old}/").json()
    assert superseded["state"] == "superseded"
    events = program_a.get(f"{FACTS}{new}/events/").json()["results"]
    assert [(event["action"], event["author_kind"]) for event in events] == [
        ("confirm", "program"), ("propose", "run"),
    ]  # fmt: skip
    assert (events[0]["author_name"], events[0]["reason"]) == ("tests", "She moved.")
    (ended,) = [
        event
        for event in program_a.get(f"{FACTS}{old}/events/").json()["results"]
        if event["action"] == "supersede"
    ]
    assert ended["other_id"] == str(new)
    with tenant_scope(program_a.tenant.id):
        event = AccessEvent.objects.filter(action="decide").get()
    assert (event.subject, event.subject_id, user_of(event)) == ("fact", str(new), "maria")
    assert event.detail["decision"] == "confirm"
    assert event.detail["after"]["state"] == "active"


@pytest.mark.parametrize(
    ("decisions", "states"),
    [
        (["reject", "restore", "confirm"], ["rejected", "proposed", "active"]),
        (["confirm", "retract", "restore"], ["active", "retracted", "active"]),
    ],
)
def test_decisions_can_be_undone(
    program_a: Program, decisions: list[str], states: list[str]
) -> None:
    memory_id = home(program_a, "Oslo").memory_id
    found = [decide(program_a, memory_id, decision).json()["state"] for decision in decisions]
    assert found == states


@pytest.mark.parametrize(
    ("before", "decision"),
    [([], "retract"), ([], "restore"), (["confirm"], "reject"), (["reject"], "confirm")],
)
def test_a_decision_that_does_not_fit_the_state_is_refused(
    program_a: Program, before: list[str], decision: str
) -> None:
    memory_id = home(program_a, "Oslo").memory_id
    for fact in before:
        decide(program_a, memory_id, fact)
    answer = decide(program_a, memory_id, decision)
    assert (answer.status_code, answer.json()["type"]) == (409, "urn:konstruct:problem:wrong-state")


def test_value_is_not_restored_beside_an_active_one(program_a: Program) -> None:
    old, _ = home(program_a, "Rome", review=""), home(program_a, "Oslo", review="")
    answer = decide(program_a, old.memory_id, "restore")
    assert (answer.status_code, answer.json()["type"]) == (409, "urn:konstruct:problem:slot-taken")


def test_key_cannot_confirm_a_proposal_of_the_same_person(program_a: Program) -> None:
    with tenant_scope(program_a.tenant.id):
        eva = User.objects.create_user("eva", is_staff=True)
        eva.user_permissions.set(Permission.objects.filter(codename="review_memoryentry"))
    key_of_eva, also_hers = (other_key(program_a, created_by=str(eva.pk)) for _ in range(2))
    memory_id = home(program_a, "Oslo", author=key_author(key_of_eva)).memory_id
    browser = Client(headers={"Host": f"{program_a.tenant.slug}.localhost"})
    with tenant_scope(program_a.tenant.id):
        browser.force_login(eva)
    address = f"{FACTS}{memory_id}/confirm/"
    by_herself = browser.post(address, json_bytes({}), content_type="application/json")
    for answer in (key_of_eva.post(address, {}), also_hers.post(address, {}), by_herself):
        assert (answer.status_code, answer.json()["type"]) == (409, OWN)
    # Any key may reject it, and a key of another person may confirm it.
    assert decide(other_key(program_a), memory_id, "confirm").status_code == 200


def test_a_rolled_key_cannot_confirm_a_proposal_of_its_predecessor(program_a: Program) -> None:
    first = other_key(program_a, created_by="7")
    memory_id = home(program_a, "Oslo", author=key_author(first)).memory_id
    with tenant_scope(program_a.tenant.id):
        key = ApiKey.objects.get(pk=key_author(first).id)
    for person in ("8", "9"):
        with tenant_scope(program_a.tenant.id):
            key, text = roll_key(key, grace=timedelta(hours=1), created_by=person)
        rolled = Program(program_a.tenant, program_a.agent, str(text))
        answer = rolled.post(f"{FACTS}{memory_id}/confirm/", {})
        assert (answer.status_code, answer.json()["type"]) == (409, OWN)
    assert decide(other_key(program_a, created_by="10"), memory_id, "confirm").status_code == 200


@pytest.mark.parametrize("decision", ["", "reject"])
def test_a_key_cannot_activate_its_proposal_by_storing_its_text(
    program_a: Program, decision: str
) -> None:
    own = other_key(program_a, created_by="7")
    memory_id = home(program_a, "Oslo", author=key_author(own)).memory_id
    if decision:
        decide(own, memory_id, decision)
    text = "Maria lives in Oslo."
    fact = {"content": text, "agent": "ada", "user_id": "maria"}
    named = own.post(FACTS, {**fact, "content": "Old.", "external_id": "e1"}).json()["memory_id"]
    refusals = [
        own.post(FACTS, fact),
        own.post(f"{FACTS}batch/", {"facts": [fact]}),
        own.post(FACTS, {**fact, "external_id": "another fact"}),
        own.write("PATCH", f"{FACTS}{named}/", {"content": text}),
        own.post(ADD, {"messages": text, "infer": False, "agent_id": "ada", "user_id": "maria"}),
    ]
    assert [answer.status_code for answer in refusals] == [409] * 5
    answer = text_of(call(own, "remember", content=text, agent="ada", user_id="maria"))
    assert "you proposed fact" in answer
    state = program_a.get(f"{FACTS}{memory_id}/").json()["state"]
    assert state == ("rejected" if decision else "proposed")
    assert other_key(program_a, created_by="8").post(FACTS, fact).status_code == 200
    assert program_a.get(f"{FACTS}{memory_id}/").json()["state"] == "active"


def test_an_if_match_of_another_state_is_refused(program_a: Program) -> None:
    memory_id = home(program_a, "Oslo").memory_id
    tag = program_a.get(f"{FACTS}{memory_id}/").headers["ETag"]
    first, second = (
        program_a.write("POST", f"{FACTS}{memory_id}/{decision}/", {}, headers={"If-Match": tag})
        for decision in ("reject", "restore")
    )  # fmt: skip
    assert (first.status_code, second.status_code) == (200, 412)


def test_a_bound_key_decides_about_its_own_user_alone(program_a: Program) -> None:
    marias = home(program_a, "Oslo").memory_id
    of_maria, of_theo = (other_key(program_a, user_id=user) for user in ("maria", "theo"))
    for tail in ("", "events/", "replies/"):
        assert of_theo.get(f"{FACTS}{marias}/{tail}").status_code == 404
        assert of_maria.get(f"{FACTS}{marias}/{tail}").status_code == 200
    assert of_theo.get(f"{FACTS}?state=proposed").json()["results"] == []
    for decision in ("confirm", "reject", "retract", "restore"):
        assert decide(of_theo, marias, decision).status_code == 404
    shared = keep(program_a, "Tea is at five.")["memory_id"]
    assert decide(of_maria, shared, "retract").status_code == 404
    assert decide(of_maria, marias, "confirm").status_code == 200


def test_the_replies_that_used_a_fact_are_listed(program_a: Program) -> None:
    used = keep(program_a, "Maria is allergic to walnuts.", user_id="maria")["memory_id"]
    unused = keep(program_a, "Maria plays the cello.", user_id="maria")["memory_id"]
    with tenant_scope(program_a.tenant.id):
        for memory_id, reason in ((used, ""), (unused, "below the floor")):
            store_trace(
                program_a.agent.id, "maria", query="Which nuts?",
                sources=[] if reason else [UUID(memory_id)],
                facts=[fact_of(memory_id, "…", reason=reason)],
            )  # fmt: skip
    (reply,) = program_a.get(f"{FACTS}{used}/replies/").json()["results"]
    assert (reply["query"], reply["user_id"]) == ("Which nuts?", "maria")
    assert program_a.get(f"{FACTS}{unused}/replies/").json()["results"] == []
