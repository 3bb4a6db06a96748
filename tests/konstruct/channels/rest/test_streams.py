"""A message as a stream of server-sent events."""

import json
from typing import Any
from unittest.mock import Mock
from urllib.parse import urlsplit

import pytest
from django.db import OperationalError

from konstruct.channels.rest import views
from tests.konstruct.api.seed_data import answer
from tests.konstruct.conftest import MESSAGES, Program

EVENTS = {"Accept": "text/event-stream"}


def events_of(response: Any) -> list[tuple[str, Any]]:
    """Return the events of a stream that is complete."""
    assert (response.status_code, response.headers["Content-Type"]) == (200, "text/event-stream")
    *events, rest = response.content.decode().split("\n\n")
    assert rest == ""
    lines = [event.removeprefix("event: ").split("\ndata: ") for event in events]
    return [(name, json.loads(data)) for name, data in lines]


def test_stream_begins_with_the_message_and_ends_with_its_final_state(program_a: Program) -> None:
    body, key = {"agent": "ada", "user_id": "maria", "content": "Hi"}, {"Idempotency-Key": "k"}
    (opening, (name, late)) = events_of(
        program_a.post(f"{MESSAGES}?wait=0.01", body, headers={**EVENTS, **key})
    )
    assert opening == ("accepted", late)
    assert (name, late["status"]) == ("message", "queued")
    answer(program_a, late["id"], "Line 1\n\nLine 2")
    _, (name, document) = events_of(program_a.post(MESSAGES, body, headers={**EVENTS, **key}))
    assert (name, document) == ("message", program_a.get(urlsplit(late["url"]).path).json())
    assert document["reply"]["content"] == "Line 1\n\nLine 2"


def test_interrupted_stream_ends_with_a_problem(
    program_a: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "_message", Mock(side_effect=OperationalError("lost")))
    body = {"agent": "ada", "user_id": "maria", "content": "Hi"}
    response = program_a.post(f"{MESSAGES}?wait=0.01", body, headers=EVENTS)
    _, (name, problem) = events_of(response)
    assert (name, problem["type"]) == ("error", "urn:konstruct:problem:unavailable")


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("text/event-stream", "text/event-stream"),
        ("text/event-stream, */*;q=0.1", "text/event-stream"),
        ("application/json;q=0.5, text/event-stream", "text/event-stream"),
        ("application/json, text/event-stream;q=0.5", "application/json"),
        ("*/*", "application/json"),
    ],
)
def test_accept_header_of_events_gets_a_stream(
    program_a: Program, accept: str, media_type: str
) -> None:
    body = {"agent": "ada", "user_id": "maria", "content": "Hi"}
    response = program_a.post(f"{MESSAGES}?wait=0.01", body, headers={"Accept": accept})
    assert response.headers["Content-Type"] == media_type


def test_refused_request_is_not_a_stream(program_a: Program) -> None:
    refused = program_a.post(MESSAGES, {}, headers=EVENTS)
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert refused.status_code == 400
    assert program_a.get(MESSAGES, headers=EVENTS).status_code == 406
