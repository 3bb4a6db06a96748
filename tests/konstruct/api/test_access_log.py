"""What the API writes into the access log: every request for memory, with who and for whom."""

import pytest
from django.test import Client

from konstruct.api.access import issue_key
from konstruct.api.audited import WRITTEN_DOWN
from konstruct.api.models import KeyScope
from konstruct.audit.models import AccessEvent
from tenants.context import tenant_scope
from tests.konstruct.api.routes import CASES
from tests.konstruct.conftest import Program

# A program's own traffic, numbers, and agents, which are no memory.
NOT_WRITTEN_DOWN = {
    ("messages", "GET"),
    ("messages", "POST"),
    ("message", "GET"),
    ("import", "POST"),
    ("usage", "GET"),
    ("agents", "GET"),
    ("agent", "GET"),
    # The request itself is written down, by whoever asks.
    ("erasures", "POST"),
    ("erasure", "GET"),
}


def events(program: Program) -> list[AccessEvent]:
    with tenant_scope(program.tenant.id):
        return list(AccessEvent.objects.order_by("id"))


def test_every_endpoint_is_written_down_or_is_said_not_to_be() -> None:
    assert set(CASES) == set(WRITTEN_DOWN) | NOT_WRITTEN_DOWN
    assert not set(WRITTEN_DOWN) & NOT_WRITTEN_DOWN


def test_a_search_says_who_asked_what_about_whom(program_a: Program, program_b: Program) -> None:
    body = {"agent": "ada", "user_id": "maria", "query": "Where does she live?"}
    answer = program_a.post("/api/v1/memories/search/", body)
    assert answer.status_code == 200
    (event,) = events(program_a)
    assert (event.action, event.subject, event.user_id) == ("search", "memories", "maria")
    assert (event.actor_kind, event.actor) == ("program", "tests")
    assert event.detail == {"agent": "ada", "query": "Where does she live?"}
    assert event.request_id == answer.headers["X-Request-ID"]
    assert events(program_b) == []


@pytest.mark.parametrize(
    ("method", "path", "logged"),
    [
        ("GET", "windows/?agent=ada&user_id=maria", ("view", "window", "maria")),
        ("DELETE", "windows/?agent=ada&user_id=maria", ("clear", "window", "maria")),
        ("GET", "conversations/", ("list", "conversations", None)),
        ("GET", "users/", ("list", "people", None)),
    ],
)
def test_reading_and_clearing_are_written_down(
    program_a: Program, method: str, path: str, logged: tuple[str, str, str | None]
) -> None:

    _, key = issue_key(tenant_id=program_a.tenant.id, name="all", scopes=KeyScope.values)
    program_a.key = str(key)
    assert program_a.request(method, f"/api/v1/{path}").status_code in (200, 204)
    assert [(event.action, event.subject, event.user_id) for event in events(program_a)] == [logged]


def test_what_was_refused_was_not_done(program_a: Program) -> None:
    _, key = issue_key(tenant_id=program_a.tenant.id, name="reader", scopes=[KeyScope.READ])
    program_a.key = str(key)
    refused = program_a.request("DELETE", "/api/v1/windows/?agent=ada&user_id=maria")
    assert refused.status_code == 403
    stranger = Client(headers={"Host": "tenant-a.localhost"})
    assert stranger.get("/api/v1/conversations/").status_code == 401
    assert events(program_a) == []


def test_odd_bodies_are_refused_as_ever(program_a: Program) -> None:
    for body, status in ((b"[1, 2]", 400), (b"{", 400), (b'{"user_id": 5}', 400)):
        assert program_a.post("/api/v1/memories/search/", body).status_code == status
