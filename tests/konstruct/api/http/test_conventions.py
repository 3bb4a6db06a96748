"""Conventions of all requests: gzip, CORS, strict JSON, methods, media types."""

import gzip
import json
from typing import Any

import pytest
from django.test import Client
from rest_framework.response import Response

from konstruct.api.auth.keys import KeyInvalid
from konstruct.api.http.views import ApiViewSet, operation
from tenants.audit.models import Action
from tests.konstruct.conftest import MESSAGES, Program
from tests.konstruct.interfaces.mcp.speaking import call

AGENTS = "/api/v1/agents/"


def test_long_response_is_compressed_if_the_client_accepts_it(program_a: Program) -> None:
    for number in range(5):
        program_a.send(f"message {number} " + "word " * 100)
    plain = program_a.get(MESSAGES)
    packed = program_a.get(MESSAGES, headers={"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in packed.headers["Vary"]
    assert json.loads(gzip.decompress(packed.content)) == plain.json()


def test_a_problem_is_readable_when_compressed(program_a: Program) -> None:
    program_a.host = "nobody.localhost"
    packed = program_a.get(MESSAGES, headers={"Accept-Encoding": "gzip"})
    body = packed.content
    document = json.loads(gzip.decompress(body) if "Content-Encoding" in packed.headers else body)
    assert document["errors"][0]["field"] == "Host"


def asked_from(origin: str, method: str = "GET", **headers: str) -> Any:
    client = Client(headers={"Host": "localhost", "Origin": origin, **headers})
    return client.generic(method, MESSAGES)


def test_cross_origin_pages_cannot_use_the_api() -> None:
    for method in ("GET", "OPTIONS"):
        response = asked_from(
            "https://evil.example", method, **{"Access-Control-Request-Method": "POST"}
        )
        assert "Access-Control-Allow-Origin" not in response.headers


def test_allowed_origins_can_use_only_the_api(settings: Any) -> None:
    settings.CORS_ALLOWED_ORIGINS = ["https://app.example"]
    asking = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,idempotency-key",
    }
    response = asked_from("https://app.example", "OPTIONS", **asking)
    assert response.headers["Access-Control-Allow-Origin"] == "https://app.example"
    assert "idempotency-key" in response.headers["Access-Control-Allow-Headers"]
    assert "Access-Control-Allow-Credentials" not in response.headers
    other = asked_from("https://evil.example", "OPTIONS", **asking)
    assert "Access-Control-Allow-Origin" not in other.headers
    client = Client(headers={"Host": "localhost", "Origin": "https://app.example"})
    assert "Access-Control-Allow-Origin" not in client.get("/health/live").headers


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"name": "a", "name": "b"}', "The name 'name' is given twice in one object."),
        (b'{"name": "a", "recall_weights": {"x": 1, "x": 2}}', "The name 'x' is given twice"),
        (b'{"name": NaN}', "NaN is no JSON."),
        (b'{"name": -Infinity}', "-Infinity is no JSON."),
        (b'\xef\xbb\xbf{"name": "a"}', "JSON parse error"),
        (b'{"name": "\xff"}', "JSON parse error"),
        (b'{"name": 1' + b"0" * 5000 + b"}", "A number has more than 4,300 digits."),
        (b"[" * 65 + b"]" * 65, "The JSON is nested too deeply: deeper than 64 levels."),
        # Python can read it, but not write it.
        (b'{"name": ' + b"[" * 900 + b"]" * 900 + b"}", "The JSON is nested too deeply"),
        (b'{"a": ' * 100_000, "The JSON is nested too deeply"),
        (b'{"' + b"k" * 5000 + b'": 1, "' + b"k" * 5000 + b'": 1}', "The name 'kkk"),
    ],
)
def test_json_that_can_be_read_in_two_ways_is_refused(
    program_a: Program, body: bytes, words: str
) -> None:
    response = program_a.post(AGENTS, body)
    assert response.status_code == 400
    assert response.json()["type"] == "urn:konstruct:problem:malformed-body"
    assert response.json()["errors"][0]["detail"].startswith(words)


def test_a_number_beyond_all_numbers_is_refused(program_a: Program) -> None:
    response = program_a.post(AGENTS, b'{"name": "a", "recall_open_at": 1e999}')
    assert [error["field"] for error in response.json()["errors"]] == ["recall_open_at"]


def test_answers_to_a_key_are_not_cached(program_a: Program) -> None:
    sent = program_a.send("Hello")
    paths = (MESSAGES, sent.json()["url"], "/api/v1/nowhere/", "/mem0/v1/ping/", "/v1/models")
    answers = [sent, *map(program_a.get, paths)]
    assert {answer.headers.get("Cache-Control") for answer in answers} == {"no-store"}


def test_the_pseudonym_of_an_erased_user_is_no_id(program_a: Program) -> None:
    user_id = f"erased:{'0' * 32}"
    fact = {"content": "Tea.", "agent": "ada", "user_id": user_id}
    line = {**fact, "thread_id": "t", "role": "user"}
    refused = (
        program_a.send("Hello", user_id=user_id),
        program_a.post("/api/v1/facts/", fact),
        program_a.post("/api/v1/facts/batch/", {"facts": [fact]}),
        program_a.post("/api/v1/erasures/", {"user_id": user_id}),
        program_a.post(
            "/mem0/v3/memories/add/", {"messages": "Tea.", "infer": False, "user_id": user_id}
        ),
        program_a.post(
            "/v1/chat/completions",
            {"model": "ada", "user": user_id, "messages": [{"role": "user", "content": "Hi"}]},
        ),
    )
    assert [answer.status_code for answer in refused] == [400] * len(refused)
    imported = program_a.post("/api/v1/messages/batch/", {"messages": [line]})
    assert b"erased" in imported.content or imported.status_code == 404
    answer = call(program_a, "remember", content="Tea.", agent="ada", user_id=user_id)
    assert answer["isError"]
    with pytest.raises(KeyInvalid, match="erased users"):
        program_a.with_key(user_id=user_id)


def test_a_method_without_an_operation_fails_when_the_class_is_made() -> None:
    with pytest.raises(TypeError, match="does not declare destroy: decorate the method"):

        class Undeclared(ApiViewSet):
            @operation(Action.VIEW, "thing", permission="memory.view_message")
            def retrieve(self, request: Any) -> Response:
                return Response()

            def destroy(self, request: Any) -> Response:
                return Response(status=204)
