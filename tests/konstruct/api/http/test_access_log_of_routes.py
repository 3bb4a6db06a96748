"""Entries of every route in the access log, for a tenant with rows of every kind."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError
from django.test import Client

from konstruct.api.http import access_log, views
from memory.facts import LongTermMemory
from memory.models import MemoryEntry, Message
from tenants.context import tenant_scope
from tests.konstruct.api.routes import CASES, V1, view_of
from tests.konstruct.api.seed_data import SeedData
from tests.konstruct.conftest import MESSAGES, access_events, json_bytes

pytestmark = pytest.mark.django_db


@pytest.mark.usefixtures("model_without_facts")
@pytest.mark.parametrize(("route", "method"), sorted(CASES))
def test_request_has_one_record_of_its_action(seed: SeedData, route: str, method: str) -> None:
    case = CASES[route, method]
    if route == "session":
        return  # LangGraph's connection is outside of this transaction: test_sessions.py
    before = len(access_events(seed.program.tenant))
    body = None if case.body is None else json_bytes(case.body(seed))
    answer = seed.program.request(
        method, case.path(seed), data=body or b"", content_type="application/json",
        headers={"X-Forwarded-For": "203.0.113.9"}, REMOTE_ADDR="198.51.100.7",
    )  # fmt: skip
    assert answer.status_code < 300
    (event,) = access_events(seed.program.tenant)[before:]
    declared = view_of(route).operations[method]
    assert (event.action, event.subject) == (declared.action, declared.subject)
    assert (event.actor_kind, event.actor) == ("program", "tests")
    assert event.address == "198.51.100.7"
    assert event.request_id == answer.headers["X-Request-ID"]


@pytest.mark.parametrize(("route", "method"), sorted(CASES))
def test_refused_request_is_recorded_once_as_refused(
    seed: SeedData, route: str, method: str
) -> None:
    case = CASES[route, method]
    key = seed.program.with_key(scopes=["erase"], user_id="nobody", agent_id=seed.other.pk)
    body = None if case.body is None else json_bytes(case.body(seed))
    before = len(access_events(seed.program.tenant))
    refused = key.request(
        method, case.path(seed), data=body or b"", content_type="application/json"
    )
    # For a key that is bound to another agent, this one does not exist.
    erases = {
        ("erasures", "POST"): 422, ("erasure", "GET"): 404,
        ("transcript", "DELETE"): 422, ("message", "DELETE"): 404,
    }  # fmt: skip
    assert refused.status_code == erases.get((route, method), 403)
    (event,) = access_events(seed.program.tenant)[before:]
    declared = view_of(route).operations[method]
    assert (event.action, event.subject) == ("refuse", declared.subject)
    assert event.detail["attempted"] == declared.action
    assert event.detail["status"] == refused.status_code
    assert event.actor == "bound"


def test_failed_read_is_not_recorded_as_a_read(
    seed: SeedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: Any, **__: Any) -> None:
        raise RuntimeError("later")

    monkeypatch.setattr("konstruct.api.resources.memory.facts.etag_response", breaks)
    before = len(access_events(seed.program.tenant))
    assert seed.program.get(f"{V1}facts/{seed.fact}/").status_code == 500
    (event,) = access_events(seed.program.tenant)[before:]
    assert (event.action, event.detail["attempted"], event.detail["status"]) == (
        "refuse",
        "view",
        500,
    )


def test_refused_change_is_rolled_back_and_its_record_is_kept(seed: SeedData) -> None:
    path = f"{V1}facts/{seed.fact}/"
    before = len(access_events(seed.program.tenant))
    refused = seed.program.request(
        "PATCH", path, data=b'{"content": "Vera hates tea."}', content_type="application/json",
        headers={"If-Match": '"another"'},
    )  # fmt: skip
    assert refused.status_code == 412
    standing = LongTermMemory().get(seed.fact, seed.program.tenant.id)
    assert standing is not None
    assert standing.content == "Vera likes tea."
    (event,) = access_events(seed.program.tenant)[before:]
    assert (event.action, event.detail["status"]) == ("refuse", 412)


def test_action_without_a_record_is_rolled_back(
    seed: SeedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_full(*_: Any, **__: Any) -> None:
        raise DatabaseError("no room")

    monkeypatch.setattr(access_log, "record_access", is_full)
    monkeypatch.setattr(views, "record_request", access_log.record_request)
    body = {"agent": "ada", "user_id": "vera", "content": "Vera is tall."}
    assert seed.program.post(f"{V1}facts/", body).status_code == 500
    assert seed.program.send("Hello?").status_code == 500
    assert seed.program.get(f"{V1}facts/").status_code == 500
    with tenant_scope(seed.program.tenant.id):
        assert not MemoryEntry.objects.filter(content="Vera is tall.").exists()
        assert not Message.objects.filter(content="Hello?").exists()


def test_link_is_recorded_with_the_former_user_of_the_identity(seed: SeedData) -> None:
    before = len(access_events(seed.program.tenant))
    path = f"{V1}identities/{seed.identity}/link/"
    linked = seed.program.request(
        "PUT", path, data=b'{"user_id": "nora"}', content_type="application/json"
    )
    assert linked.status_code == 200
    (event,) = access_events(seed.program.tenant)[before:]
    assert (event.action, event.user_id) == ("link", "nora")
    assert event.detail["before"]["user_id"] == "maria"
    assert event.detail["after"]["user_id"] == "nora"


def test_a_person_is_recorded_by_name(seed: SeedData) -> None:
    client = Client(headers={"Host": "tenant-a.localhost"})
    with tenant_scope(seed.program.tenant.id):
        eva = User.objects.create_superuser("eva")
        client.force_login(eva)
    before = len(access_events(seed.program.tenant))
    assert client.get(MESSAGES).status_code == 200
    (event,) = access_events(seed.program.tenant)[before:]
    assert (event.actor_kind, event.actor, event.actor_id) == ("person", "eva", str(eva.pk))
