"""Entries of the API in the access log: every request with its outcome."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client

from konstruct.orchestrator.models import Agent
from tenants.context import tenant_scope
from tenants.limits.rate_limit import ANONYMOUS_BURST
from tests.konstruct.api.routes import V1
from tests.konstruct.conftest import MESSAGES, Program, access_events, user_of, users_shown

SEARCH = f"{V1}memories/search/"
EVE = {"agent": "ada", "user_id": "eve", "query": "Where does she live?"}


def test_search_is_recorded_with_caller_and_subject_and_without_the_query(
    program_a: Program, program_b: Program
) -> None:
    program_a.send("Hello.", user_id="eve")
    before = len(access_events(program_a.tenant))
    answer = program_a.post(SEARCH, EVE)
    assert answer.status_code == 200
    (event,) = access_events(program_a.tenant)[before:]
    assert (event.action, event.subject, user_of(event)) == ("search", "memories", "eve")
    assert event.agent_id == program_a.agent.pk
    assert event.detail == {}
    assert access_events(program_b.tenant) == []


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({**EVE, "agent": "nobody"}, 422),
        ({**EVE, "top_k": -1}, 400),
        (b"{", 400),
        (b"[1, 2]", 400),
        (b'{"user_id": 5}', 400),
        (b'{"agent": "ada", "user_id": "a\\ud800b", "query": "\\udc00"}', 400),
        (b'{"agent": "ada", "user_id": "a\\u0000b", "query": "x"}', 400),
    ],
)
def test_impossible_request_is_recorded_as_refused(
    program_a: Program, body: Any, status: int
) -> None:
    assert program_a.post(SEARCH, body).status_code == status
    (event,) = access_events(program_a.tenant)
    assert (event.action, event.detail["status"]) == ("refuse", status)


def test_change_is_recorded_with_values_before_and_after(program_a: Program) -> None:
    made = program_a.post(f"{V1}agents/", {"name": "cleo", "persona": "Formal."}).json()
    path = f"{V1}agents/{made['id']}/"
    changed = program_a.write("PATCH", path, {"persona": "Kind."})
    assert changed.status_code == 200
    created, edited = access_events(program_a.tenant)
    assert created.action == "create"
    assert created.subject_id == edited.subject_id == made["id"]
    assert created.detail["after"]["is_active"] is True
    assert "before" not in created.detail
    assert edited.detail == {"withheld": ["persona"]}
    assert "Formal" not in str(created.detail)
    with tenant_scope(program_a.tenant.id):
        assert Agent.objects.get(pk=made["id"]).persona == "Kind."


def test_a_session_without_the_csrf_token_is_refused_by_name(program_a: Program) -> None:
    client = Client(enforce_csrf_checks=True, headers={"Host": "tenant-a.localhost"})
    with tenant_scope(program_a.tenant.id):
        client.force_login(User.objects.create_superuser("eva"))
    assert client.post(MESSAGES, b"{}", content_type="application/json").status_code == 403
    (event,) = access_events(program_a.tenant)
    assert (event.action, event.actor, event.detail["status"]) == ("refuse", "eva", 403)


def test_request_refused_before_authentication_is_recorded(program_a: Program) -> None:
    accept = {"Accept": "text/html"}
    assert program_a.get(MESSAGES, headers=accept).status_code == 406
    (event,) = access_events(program_a.tenant)
    assert (event.action, event.actor, event.detail["status"]) == ("refuse", "tests", 406)
    program_a.key, program_a.host = "nonsense", "tenant-a.localhost"
    assert program_a.get(MESSAGES, headers=accept).status_code == 406
    assert access_events(program_a.tenant)[-1].actor_kind == "unknown"


def statuses_of(send: Callable[[], Any], times: int) -> list[int]:
    return [send().status_code for _ in range(times)]


def test_invalid_keys_are_recorded_within_a_limit(program_a: Program) -> None:
    """Different keys of this tenant from one address. A valid key from there still works."""
    cache.clear()

    def guess() -> Any:
        key = f"ks_{program_a.tenant.id.hex}_{uuid4().hex[:12]}_{uuid4().hex * 2}"
        return Program(program_a.tenant, program_a.agent, key).get(MESSAGES)

    statuses = statuses_of(guess, ANONYMOUS_BURST + 10)
    assert statuses[:ANONYMOUS_BURST] == [401] * ANONYMOUS_BURST
    assert statuses[-1] == 429
    refused = guess()
    assert int(refused.headers["Retry-After"]) > 0
    recorded = access_events(program_a.tenant)
    assert {(event.action, event.actor_kind, event.actor) for event in recorded} == {
        ("refuse", "unknown", "")
    }
    assert ANONYMOUS_BURST <= len(recorded) <= ANONYMOUS_BURST + 2
    assert program_a.get(MESSAGES).status_code == 200
    cache.clear()


def test_requests_without_any_key_cannot_fill_the_log(program_a: Program) -> None:
    cache.clear()
    stranger = Client(headers={"Host": "tenant-a.localhost"})
    statuses = statuses_of(lambda: stranger.get(MESSAGES), ANONYMOUS_BURST + 10)
    assert set(statuses) == {401}
    assert ANONYMOUS_BURST <= len(access_events(program_a.tenant)) <= ANONYMOUS_BURST + 2
    cache.clear()


def test_throttled_caller_is_recorded_once_per_interval(program_a: Program, settings: Any) -> None:
    settings.RATE_LIMIT_BURST, settings.RATE_LIMIT_PER_SECOND = 2, 1e-3
    cache.clear()
    statuses = statuses_of(lambda: program_a.get(MESSAGES), 6)
    assert statuses == [200, 429, 429, 429, 429, 429]
    assert [event.action for event in access_events(program_a.tenant)] == ["list", "refuse"]
    cache.clear()


def test_a_refused_search_of_eve_is_no_search_of_eve(program_a: Program) -> None:
    program_a.send("Hello.", user_id="eve")
    before = len(access_events(program_a.tenant))
    bound = program_a.with_key(user_id="maria")
    assert bound.post(SEARCH, EVE).status_code == 403
    (event,) = access_events(program_a.tenant)[before:]
    assert (event.action, user_of(event)) == ("refuse", "eve")
    assert event.detail["attempted"] == "search"
    assert event.detail["status"] == 403


def test_who_saw_a_person_has_lists_searches_and_single_rows(
    program_a: Program, program_b: Program
) -> None:
    for program in (program_a, program_b):
        for user_id in ("eve", "bob"):
            program.send(f"Hello from {user_id}.", user_id=user_id)
    before = len(access_events(program_a.tenant))
    for path in ("messages/", "conversations/", "users/", "messages/?user_id=bob", "agents/"):
        assert program_a.get(f"{V1}{path}").status_code == 200
    shown = [users_shown(event) for event in access_events(program_a.tenant)[before:]]
    assert shown == [["bob", "eve"], ["bob", "eve"], ["bob", "eve"], ["bob"], []]
    page = program_a.get(f"{V1}users/eve/timeline/?kind=access").json()["results"]
    assert [entry["action"] for entry in page] == ["list", "list", "list", "send"]
    assert program_b.get(f"{V1}users/eve/timeline/?kind=access").json()["results"] != page
