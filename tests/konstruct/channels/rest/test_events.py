"""Events and webhooks by REST, and a program that answers as the person."""

import json
from typing import Any

import pytest

from konstruct.api.models import KeyScope
from konstruct.orchestrator.models import Agent, Escalation
from memory.models import Message
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tenants.outbox.models import Subscription
from tests.jobs import work
from tests.konstruct.channels.notifications.conftest import ask
from tests.konstruct.conftest import Program
from tests.servers.llm import Answer, LLMServer

EVENTS = "/api/v1/events/"
WEBHOOKS = "/api/v1/webhooks/"
DELIVERIES = "/api/v1/webhook-deliveries/"
URL = "https://hooks.example.com/in"


def escalate(program: Program) -> str:
    """Let a message of maria wait for a person; return the URL of the escalation."""
    with tenant_scope(program.tenant.id):
        Agent.objects.update(escalate_on=["human"])
        ask(program, "A human, please")
        ask(program, "Where is my order?")
        return f"/api/v1/escalations/{Escalation.objects.get().pk}/"


def test_events_are_read_from_a_place_on(program_a: Program) -> None:
    escalate(program_a)
    first = program_a.get(f"{EVENTS}?limit=1").json()
    assert [event["type"] for event in first["events"]] == ["escalation.opened"]
    assert first["has_more"]
    rest = program_a.get(f"{EVENTS}?after={first['after']}").json()
    assert [event["type"] for event in rest["events"]] == [
        "escalation.waiting",
        "message.answered",
        "escalation.waiting",
    ]
    assert not rest["has_more"]
    assert {event["data"]["user_id"] for event in rest["events"]} == {"maria"}
    end = program_a.get(f"{EVENTS}?after={rest['after']}").json()
    assert end == {"events": [], "after": rest["after"], "has_more": False}


@pytest.mark.parametrize("query", ["after=-1", "after=x", "limit=0", "limit=501", "since=1"])
def test_wrong_parameters_of_events_are_refused(program_a: Program, query: str) -> None:
    assert program_a.get(f"{EVENTS}?{query}").status_code == 400


def test_a_webhook_is_created_changed_rotated_and_deleted(program_a: Program) -> None:
    made = program_a.post(WEBHOOKS, {"url": URL, "types": ["fact.proposed"]})
    assert made.status_code == 201
    webhook = made.json()
    assert webhook.pop("secret").startswith("whsec_")
    address = f"{WEBHOOKS}{webhook['id']}/"
    assert made.headers["Location"].endswith(address)
    assert program_a.get(address).json() == webhook
    assert "whsec_" not in program_a.get(WEBHOOKS).text
    changed = program_a.write("PATCH", address, {"is_active": False}).json()
    assert changed == {**webhook, "is_active": False}
    rotated = program_a.post(f"{address}secret/", {}).json()
    assert rotated["secret"].startswith("whsec_")
    assert rotated["previous_until"]
    assert program_a.request("DELETE", address).status_code == 204
    assert program_a.get(address).status_code == 404


@pytest.mark.parametrize(
    "fields",
    [
        {"url": "http://hooks.example.com/"},
        {"url": "https://169.254.169.254/latest"},
        {"url": "https://localhost@10.0.0.1/"},
        {"url": URL, "types": ["fact.eaten"]},
        {"url": URL, "secret": "whsec_mine"},
        {},
    ],
)
def test_wrong_webhooks_are_refused(program_a: Program, fields: dict[str, Any]) -> None:
    response = program_a.post(WEBHOOKS, fields)
    assert response.status_code in (400, 422)
    with tenant_scope(program_a.tenant.id):
        assert not Subscription.objects.exists()


def test_a_key_that_may_only_write_gets_nothing_by_a_webhook(program_a: Program) -> None:
    made = program_a.post(WEBHOOKS, {"url": URL}).json()
    writer = program_a.with_key(scopes=[KeyScope.WRITE])
    for method, address, body in (
        ("POST", WEBHOOKS, {"url": URL, "includes_content": True}),
        ("PATCH", f"{WEBHOOKS}{made['id']}/", {"url": "https://elsewhere.example.com/"}),
        ("POST", f"{WEBHOOKS}{made['id']}/secret/", {}),
    ):
        response = writer.write(method, address, body)
        assert (response.status_code, "scope `read`" in response.text) == (403, True)
    with tenant_scope(program_a.tenant.id):
        assert Subscription.objects.get().url == URL


def test_deliveries_are_listed_and_repeated(program_a: Program, settings: Any) -> None:
    settings.WEBHOOK_HOSTS = ["127.0.0.1"]
    with LLMServer() as receiver:
        program_a.post(WEBHOOKS, {"url": receiver.url, "types": ["escalation.opened"]})
        receiver.answers = [Answer("", 410)]
        escalate(program_a)
        work("notification")
        [failed] = program_a.get(f"{DELIVERIES}?state=failed").json()["results"]
        assert (failed["state"], failed["status"]) == ("failed", 410)
        assert "410" in failed["error"]
        address = f"{DELIVERIES}{failed['id']}/"
        waiting = program_a.post(f"{address}retry/", {}).json()
        assert waiting["state"] == "waiting"
        work("notification")
        assert program_a.get(address).json()["state"] == "delivered"
        assert not program_a.get(f"{DELIVERIES}?state=failed").json()["results"]
        assert len(receiver.requests) == 2


def test_bound_keys_and_other_tenants_reach_no_events(
    program_a: Program, program_b: Program
) -> None:
    escalate(program_a)
    made = program_a.post(WEBHOOKS, {"url": URL}).json()
    bound = program_a.with_key(user_id="maria", scopes=KeyScope.values)
    for path in (EVENTS, WEBHOOKS, DELIVERIES):
        assert bound.get(path).status_code == 403
    assert bound.post(WEBHOOKS, {"url": URL}).status_code == 403
    assert program_b.get(EVENTS).json()["events"] == []
    assert program_b.get(f"{WEBHOOKS}{made['id']}/").status_code == 404
    assert program_b.post(f"{WEBHOOKS}{made['id']}/secret/", {}).status_code == 404


def test_a_program_answers_as_the_person(program_a: Program, program_b: Program) -> None:
    escalation = escalate(program_a)
    headers = {"Idempotency-Key": "a1"}
    body = {"content": "It is on its way.", "name": "Eva"}
    answer = program_a.post(f"{escalation}answer/", body, headers=headers)
    assert answer.status_code == 201
    repeated = program_a.post(f"{escalation}answer/", body, headers=headers)
    assert (repeated.status_code, repeated.json()) == (200, answer.json())
    other = program_a.post(f"{escalation}answer/", {"content": "No."}, headers=headers)
    assert (other.status_code, other.json()["type"]) == (
        422,
        "urn:konstruct:problem:idempotency-key-reused",
    )
    with tenant_scope(program_a.tenant.id):
        held = Message.objects.get(content="Where is my order?")
        assert (held.reply.content, held.reply.name) == ("It is on its way.", "Eva")
    message = program_a.get(f"/api/v1/messages/{held.pk}/").json()
    assert (message["status"], message["reply"]["content"]) == ("answered", "It is on its way.")
    assert program_b.post(f"{escalation}answer/", body).status_code == 404


def test_answers_of_others_are_refused(program_a: Program) -> None:
    escalation = escalate(program_a)
    bound = program_a.with_key(user_id="maria", scopes=KeyScope.values)
    assert bound.post(f"{escalation}answer/", {"content": "Me."}).status_code == 403
    reader = program_a.with_key(scopes=[KeyScope.READ])
    assert reader.post(f"{escalation}answer/", {"content": "Me."}).status_code == 403
    assert program_a.post(f"{escalation}answer/", {"content": " "}).status_code == 400
    program_a.post(f"{escalation}resolution/", {"let_agent_answer": False})
    late = program_a.post(f"{escalation}answer/", {"content": "Late."})
    assert late.status_code == 409


def test_events_are_streamed_from_a_place_on(program_a: Program) -> None:
    escalate(program_a)
    listed = program_a.get(f"{EVENTS}?limit=1").json()
    accept = {"Accept": "text/event-stream"}
    stream = program_a.get(EVENTS, headers=accept)
    assert stream.headers["Content-Type"] == "text/event-stream"
    first, *others = stream.content.decode().split("\n\n")
    assert len(others) == 4
    place, name, data = first.split("\n")
    assert (place, name) == (f"id: {listed['after']}", "event: escalation.opened")
    assert json.loads(data.removeprefix("data: ")) == listed["events"][0]
    again = {**accept, "Last-Event-ID": str(listed["after"])}
    assert program_a.get(f"{EVENTS}?after=0", headers=again).content.decode() == "\n\n".join(others)
    with tenant_scope(program_a.tenant.id):
        assert AccessEvent.objects.filter(subject="events").count() == 3
    for wrong in ("x", "-1", "9" * 30):
        response = program_a.get(EVENTS, headers={**accept, "Last-Event-ID": wrong})
        assert response.status_code == 400
        assert "Last-Event-ID" in response.text
