"""Handing threads over by the API: documents and permissions of a program."""

from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission, User

from konstruct.orchestrator import pipeline
from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.models import Agent, Escalation
from memory.indexing import drain
from memory.models import Message
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program

V1 = "/api/v1/"
CASES = f"{V1}escalations/"


@pytest.fixture
def bert(program_a: Program) -> Agent:
    """Another agent of tenant A."""
    return create_agent(tenant_id=program_a.tenant.id, name="bert")


def send_and_answer(program: Program, content: str, **fields: Any) -> Any:
    """Send a message to ada, answer it, and return its document."""
    sent = program.send(content, thread_id="t1", **fields).json()
    with tenant_scope(program.tenant.id):
        message = Message.objects.get(pk=sent["id"])
        pipeline.handle(tenant_id=program.tenant.id, message_id=message.id)
    drain(program.tenant.id)
    return program.get(f"{V1}messages/{sent['id']}/").json()


def hand(program: Program, to_agent: str, **fields: Any) -> Any:
    body = {"agent": "ada", "user_id": "maria", "thread_id": "t1", "reason": "Invoices."}
    return program.post(CASES, {**body, "to_agent": to_agent, **fields})


@pytest.mark.slow
def test_program_hands_over_reads_the_new_agent_and_reverts(
    program_a: Program, bert: Agent
) -> None:
    send_and_answer(program_a, "Hello")
    made = hand(program_a, "bert")
    assert made.status_code == 201
    case = made.json()
    assert (case["to_agent"], case["to_agent_id"]) == ("bert", str(bert.id))
    assert (case["agent"], case["from_agent_id"]) == ("ada", str(program_a.agent.id))
    assert hand(program_a, str(bert.id)).status_code == 200
    message = send_and_answer(program_a, "Where is my invoice?")
    assert (message["agent"], message["agent_id"]) == ("ada", str(program_a.agent.id))
    assert (message["answered_by"], message["answered_by_id"]) == ("bert", str(bert.id))
    assert message["reply"]["content"].startswith("This is bert.")
    (event,) = program_a.get(f"{V1}recall-events/?message_id={message['id']}").json()["results"]
    assert (event["agent"], event["agent_id"]) == ("bert", str(bert.id))
    for query, count in (
        ("to_agent=bert", 1), ("to_agent=ada", 0), ("to=agent", 1), ("to=person", 0),
        ("agent=ada&state=open", 1), ("agent=bert", 0),
    ):  # fmt: skip
        assert len(program_a.get(f"{CASES}?{query}").json()["results"]) == count, query
    done = program_a.post(f"{case['url']}resolution/", {"let_agent_answer": True}).json()
    assert (done["state"], done["outcome"]) == ("resolved", "resolved")
    assert send_and_answer(program_a, "Thanks")["answered_by"] == "ada"


@pytest.mark.parametrize("to_agent", ["nobody", "ada", "0b6ef0bd-51a8-4c92-9f1e-7d0f5a3b6c21"])
def test_handover_to_an_unsuitable_agent_is_refused(
    to_agent: str, program_a: Program, program_b: Program, bert: Agent
) -> None:
    send_and_answer(program_a, "Hello")
    for agent in (to_agent, str(program_b.agent.id)):
        refused = hand(program_a, agent)
        assert (refused.status_code, refused.json()["type"]) == (
            422, "urn:konstruct:problem:unknown-agent",
        )  # fmt: skip
    assert hand(program_a, "bert", thread_id="silent").status_code == 422
    with tenant_scope(program_a.tenant.id):
        Agent.objects.filter(name="bert").update(is_active=False)
    assert hand(program_a, "bert").status_code == 422
    with tenant_scope(program_a.tenant.id):
        assert not Escalation.objects.exists()


def test_agent_key_cannot_hand_over_to_or_read_another_agent(
    program_a: Program, bert: Agent
) -> None:
    of_ada = program_a.with_key(agent_id=program_a.agent.id)
    of_bert = program_a.with_key(agent_id=bert.id)
    send_and_answer(program_a, "Hello")
    assert hand(of_ada, "bert").status_code == 422
    assert hand(of_bert, "bert").status_code == 422
    case = hand(program_a, "bert").json()
    message = send_and_answer(program_a, "Where is my invoice?")
    # Messages to ada with her answers belong to ada; those copied for bert belong to bert.
    assert of_ada.get(f"{V1}messages/{message['id']}/").json()["answered_by"] == "bert"
    assert of_bert.get(f"{V1}messages/{message['id']}/").status_code == 404
    assert of_bert.get(case["url"]).status_code == 404
    assert of_bert.post(f"{case['url']}resolution/", {"let_agent_answer": True}).status_code == 404
    address = f"{V1}recall-events/?message_id={message['id']}"
    (event,) = of_bert.get(address).json()["results"]
    assert of_ada.get(address).json()["results"] == []
    assert of_ada.get(event["url"]).status_code == 404
    assert of_ada.get(f"{CASES}?to_agent=bert").status_code == 422


def test_an_agents_rules_name_others_by_name_or_id(program_a: Program, bert: Agent) -> None:
    url = f"{V1}agents/{program_a.agent.id}/"
    changes = {"hands_to": ["bert"], "hand_over_on": {"invoice": "bert"}, "hand_back_on": ["done"]}
    changed = program_a.write("PATCH", url, changes)
    assert changed.status_code == 200
    document = changed.json()
    assert document["hands_to"] == [str(bert.id)]
    assert document["hand_over_on"] == {"invoice": str(bert.id)}
    again = program_a.write("PATCH", url, {name: document[name] for name in changes})
    assert again.json() == document
    for wrong in (
        {"hands_to": ["zoe"]},
        {"hand_over_on": {"x": str(uuid4())}},
        {"hands_to": ["ada"]},
    ):
        refused = program_a.write("PATCH", url, wrong)
        assert (refused.status_code, program_a.get(url).json()) == (400, document)


def test_program_assigns_an_escalation_to_a_user_with_permission(
    program_a: Program, program_b: Program, bert: Agent
) -> None:
    send_and_answer(program_a, "Hello")
    case = hand(program_a, "bert").json()
    address = f"{CASES}{case['id']}/assignment/"
    with tenant_scope(program_a.tenant.id):
        eva = User.objects.create_user("eva", is_staff=True)
        User.objects.create_user("guest", is_staff=True)
        eva.user_permissions.set(Permission.objects.filter(codename="change_escalation"))

    def put(program: Program, to: Any) -> Any:
        return program.write("PUT", address, {"assigned_to": to})

    for to in ("eva", "eva", ""):
        answer = put(program_a, to)
        assert (answer.status_code, answer.json()["assigned_to"]) == (200, to)
    for to in ("guest", "nobody", "<b>\u202e", "x" * 150):
        answer = put(program_a, to)
        assert answer.status_code == 400
        assert "not a member of the team" in answer.content.decode()
    for to in ("e\0va", "x" * 151, None, 1):
        assert put(program_a, to).status_code == 400
    assert put(program_b, "eva").status_code == 404
    assert put(program_a.with_key(scopes=["write"], user_id="theo"), "eva").status_code == 404
    assert put(program_a.with_key(scopes=["read"]), "eva").status_code == 403
    with tenant_scope(program_a.tenant.id):
        event = AccessEvent.objects.filter(action="edit", subject="escalation").earliest("id")
    assert event.detail["withheld"] == ["assigned_to"]
    program_a.post(f"{CASES}{case['id']}/resolution/", {"let_agent_answer": True})
    assert put(program_a, "eva").status_code == 409


def test_another_tenant_with_the_same_names_is_not_touched(
    program_a: Program, program_b: Program, bert: Agent
) -> None:
    create_agent(tenant_id=program_b.tenant.id, id=bert.id, name="bert")
    send_and_answer(program_a, "Hello")
    send_and_answer(program_b, "Hello")
    case = hand(program_a, "bert").json()
    assert send_and_answer(program_b, "Hello again")["answered_by"] == "ada"
    assert program_b.get(CASES).json()["results"] == []
    assert program_b.get(f"{CASES}{case['id']}/").status_code == 404
    assert send_and_answer(program_a, "Hello again")["answered_by"] == "bert"


def test_an_idempotency_key_answers_one_escalation_once(program_a: Program) -> None:
    cases = {}
    for user_id in ("maria", "theo"):
        send_and_answer(program_a, "Hello", user_id=user_id)
        named = {"agent": "ada", "user_id": user_id, "thread_id": "t1", "reason": "Refund."}
        cases[user_id] = program_a.post(CASES, named).json()["id"]

    def answer(user_id: str) -> Any:
        address = f"{CASES}{cases[user_id]}/answer/"
        return program_a.post(address, {"content": "Done."}, HTTP_IDEMPOTENCY_KEY="1")

    answers = [answer(user_id) for user_id in ("maria", "theo", "maria")]
    assert [response.status_code for response in answers] == [201, 201, 200]
    with tenant_scope(program_a.tenant.id):
        written = Message.objects.filter(content="Done.").order_by("number")
        assert [message.user_id for message in written] == ["maria", "theo"]
    program_a.post(f"{CASES}{cases['maria']}/resolution/", {"let_agent_answer": True})
    assert (answer("maria").status_code, answer("maria").json()) == (200, answers[0].json())
