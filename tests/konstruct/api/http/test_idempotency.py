"""Idempotency-Key: a key belongs to its caller, independent of the requests of other callers."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connections
from django.test import Client

from konstruct.api.models import KeyScope
from konstruct.orchestrator.pipeline.accept import Incoming, accept
from memory.facts import LongTermMemory
from memory.models import MemoryEntry
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program

FACTS, AGENTS = "/api/v1/facts/", "/api/v1/agents/"
KEY = {"Idempotency-Key": "1"}


@pytest.fixture
def another(program_a: Program) -> Callable[..., Program]:
    """Create another key of tenant A with these bindings."""

    def make(**binding: Any) -> Program:
        return program_a.with_key(scopes=KeyScope.values, **binding)

    return make


def facts_of(program: Program) -> list[tuple[str, str | None]]:
    with tenant_scope(program.tenant.id):
        return sorted(MemoryEntry.objects.entries().values_list("content", "user_id"))


def test_two_users_keys_keep_a_fact_each(another: Callable[..., Program]) -> None:
    maria, bob = another(user_id="maria"), another(user_id="bob")
    body = {"content": "Likes tea."}
    of_maria, of_bob = (program.post(FACTS, body, headers=KEY) for program in (maria, bob))
    assert (of_maria.status_code, of_bob.status_code) == (201, 201)
    assert of_maria.json()["memory_id"] != of_bob.json()["memory_id"]
    assert facts_of(maria) == [("Likes tea.", "bob"), ("Likes tea.", "maria")]
    again = [program.post(FACTS, body, headers=KEY).json() for program in (maria, bob)]
    assert [memory["memory_id"] for memory in again] == [
        of_maria.json()["memory_id"],
        of_bob.json()["memory_id"],
    ]
    assert len(facts_of(maria)) == 2


@pytest.mark.parametrize("name", ["maria", "bob"])
def test_two_keys_send_a_message_each(another: Callable[..., Program], name: str) -> None:
    """The second request may be equal or not, of the same user or another."""
    first, second = another(user_id="maria"), another(user_id=name)
    sent = [first.send(headers=KEY), second.send(user_id=name, headers=KEY)]
    assert [response.status_code for response in sent] == [202, 202]
    assert len({response.json()["id"] for response in sent}) == 2
    other = second.send("Something else", user_id=name, headers=KEY)
    assert other.status_code == 422
    assert sent[0].json()["id"] not in other.content.decode()
    assert first.send(headers=KEY).json()["id"] == sent[0].json()["id"]


def test_a_person_and_a_program_are_two_callers(program_a: Program) -> None:
    with tenant_scope(program_a.tenant.id):
        person = get_user_model().objects.create_superuser("root", password="x")
    client = Client(headers={"Host": "tenant-a.localhost"})
    with tenant_scope(program_a.tenant.id):
        client.force_login(person)
    body = {"agent": "ada", "content": "Tea."}
    answer = client.post(FACTS, body, content_type="application/json", headers=KEY)
    its = program_a.post(FACTS, {**body, "content": "Coffee."}, headers=KEY)
    assert (answer.status_code, its.status_code) == (201, 201)
    again = client.post(FACTS, body, content_type="application/json", headers=KEY)
    assert again.json()["memory_id"] == answer.json()["memory_id"]


def test_a_key_is_another_at_another_address(program_a: Program) -> None:
    sent = program_a.send(headers=KEY)
    fact = program_a.post(FACTS, {"agent": "ada", "content": "Tea."}, headers=KEY)
    agent = program_a.post(AGENTS, {"name": "bo"}, headers=KEY)
    assert [response.status_code for response in (sent, fact, agent)] == [202, 201, 201]


def test_a_program_cannot_take_a_key_of_slack(program_a: Program) -> None:
    """Messages of Slack are accepted, whatever keys programs have used."""
    slack = "slack/T1/C1/1700000000.000100"
    assert program_a.send(headers={"Idempotency-Key": slack}).status_code == 202
    agent_id = program_a.agent.id
    incoming = Incoming(agent_id, "maria", "t", "slack", "Hello", idempotency_key=slack)
    message, created = accept(incoming, tenant_id=program_a.tenant.id)
    assert created
    assert accept(incoming, tenant_id=program_a.tenant.id) == (message, False)


@pytest.mark.django_db(transaction=True)
def test_the_same_request_while_the_first_is_at_work_is_refused_at_once(
    program_a: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits neither in Postgres nor in a web thread with a transaction."""
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    is_at_work, go_on = threading.Event(), threading.Event()
    remember = LongTermMemory.remember

    def slowly(*args: Any, **options: Any) -> Any:
        is_at_work.set()
        assert go_on.wait(60)
        return remember(*args, **options)

    monkeypatch.setattr(LongTermMemory, "remember", slowly)

    def post() -> Any:
        try:
            return program_a.post(FACTS, {"agent": "ada", "content": "Tea."}, headers=KEY)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(post)
        assert is_at_work.wait(60)
        second = program_a.post(FACTS, {"agent": "ada", "content": "Tea."}, headers=KEY)
        go_on.set()
        assert first.result().status_code == 201
    assert (second.status_code, second.headers["Retry-After"]) == (409, "1")
    assert slept == []
    assert second.json()["type"] == "urn:konstruct:problem:idempotency-key-in-use"
    again = program_a.post(FACTS, {"agent": "ada", "content": "Tea."}, headers=KEY)
    assert again.json()["memory_id"] == first.result().json()["memory_id"]
