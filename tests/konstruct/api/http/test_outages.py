"""Without its database each interface answers 503 with Retry-After, and logs one line."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError, connections
from django.test import Client
from psycopg.errors import LockNotAvailable

from konstruct.api.http.problems import problem_of
from konstruct.orchestrator.exceptions import Busy
from memory.exceptions import FactBusy
from tenants.exceptions import TenantBehind, TenantMoving
from tenants.outages import ServerDown
from tests.konstruct.conftest import Program
from tests.servers.slack import SIGNING_SECRET, mention, signed

LOCK_TIMEOUT = OperationalError("canceling statement due to lock timeout")
LOCK_TIMEOUT.__cause__ = LockNotAvailable()

KEYED = [
    ("POST", "/api/v1/messages/"),
    ("GET", "/api/v1/conversations/"),
    ("POST", "/v1/chat/completions"),
    ("POST", "/mem0/v3/memories/add/"),
    ("POST", "/mcp"),
]


@pytest.fixture
def database_down(transactional_db: None) -> Iterator[None]:
    """Refuse all connections to Postgres."""
    connection = connections["default"]
    connection.close()
    host = connection.settings_dict["HOST"]
    connection.settings_dict["HOST"] = "/nonexistent"
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict["HOST"] = host


def assert_refused(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    (line,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert "503: OperationalError: " in line.getMessage()
    assert "\n" not in line.getMessage()
    assert line.exc_info is None


@pytest.mark.parametrize(("method", "path"), KEYED)
@pytest.mark.parametrize("host", ["localhost", "tenant-a.localhost"])
def test_a_program_is_refused_in_the_form_of_its_interface(
    program_a: Program,
    database_down: None,
    caplog: pytest.LogCaptureFixture,
    method: str,
    path: str,
    host: str,
) -> None:
    program_a.host = host
    answer = program_a.write(method, path, {})
    assert_refused(answer, caplog)
    document = answer.json()
    if path == "/mcp":
        assert document["error"]["data"]["type"] == "urn:konstruct:problem:unavailable"
    elif path.startswith("/v1/"):
        assert document["error"]["type"] == "server_error"
    else:
        assert document["type"] == "urn:konstruct:problem:unavailable"


@pytest.mark.parametrize("host", ["localhost", "tenant-a.localhost"])
def test_the_admin_is_refused_in_plain_text(
    database_down: None, caplog: pytest.LogCaptureFixture, host: str
) -> None:
    client = Client(raise_request_exception=False, headers={"Host": host})
    client.cookies["sessionid"] = "a" * 32
    answer = client.get("/admin/")
    assert_refused(answer, caplog)
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.content == b"This service is not available at the moment; try again soon.\n"


def test_slack_is_refused(
    database_down: None, caplog: pytest.LogCaptureFixture, settings: Any
) -> None:
    settings.SLACK_SIGNING_SECRET = SIGNING_SECRET
    body = json.dumps(mention("T1", "Hello")).encode()
    client = Client(raise_request_exception=False, headers={"Host": "localhost"})
    answer = client.post(
        "/channels/slack/events/", body, content_type="application/json", headers=signed(body)
    )
    assert_refused(answer, caplog)


@pytest.mark.of_one_server(reason="it makes the main server read-only")
@pytest.mark.of_a_session  # a pooler refuses the startup parameter
def test_a_database_that_takes_no_writes_is_an_outage(
    transactional_db: None, program_a: Program, caplog: pytest.LogCaptureFixture
) -> None:
    connection = connections["default"]
    connection.close()
    before = connection.settings_dict["OPTIONS"]
    connection.settings_dict["OPTIONS"] = before | {
        "options": "-c default_transaction_read_only=on"
    }
    try:
        answer = program_a.get("/api/v1/conversations/")
    finally:
        connection.close()
        connection.settings_dict["OPTIONS"] = before
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    (line,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert "503: InternalError: cannot execute" in line.getMessage()


@pytest.mark.parametrize(
    ("error", "retry_after"),
    [
        (TenantMoving("acme"), "3"),
        (TenantBehind("acme"), "30"),
        (ServerDown("eu1"), "5"),
        (Busy("the conversation"), "1"),
        (LOCK_TIMEOUT, "5"),
        (FactBusy(10), "1"),
    ],
)
def test_outage_in_a_view_is_answered_with_retry_after(error: Exception, retry_after: str) -> None:
    problem = problem_of(error)
    assert (problem.status, problem.headers) == (503, {"Retry-After": retry_after})
