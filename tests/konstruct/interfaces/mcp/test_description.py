"""docs/mcp.yaml matches the requests and answers."""

from functools import partial
from typing import Any

import pytest
from django.test import Client

from konstruct.urls import interfaces
from tests.described import described, errors_in, schema_of_answer
from tests.konstruct.conftest import Program
from tests.konstruct.interfaces.mcp.speaking import ENDPOINT, NEW, OLD, ask, body_of, headers_of

errors = partial(errors_in, "mcp")
pytestmark = pytest.mark.django_db


def test_every_route_is_described() -> None:
    named = {f"/{pattern.pattern}" for pattern in interfaces.mcp_urls if pattern.name}
    assert set(described("mcp")["paths"]) == named


def test_every_described_method_is_answered(program_a: Program) -> None:
    methods = described("mcp")["components"]["schemas"]["Message"]["then"]["properties"]["method"]
    for method in (*methods["enum"], "no/such"):
        codes = {
            ask(program_a, method, version).json().get("error", {}).get("code")
            for version in (OLD, NEW)
        }
        assert (codes == {-32601}) is (method == "no/such"), method


@pytest.mark.parametrize(
    ("method", "params", "version", "status"),
    [
        ("tools/list", {}, OLD, 200),
        ("tools/list", {}, NEW, 200),
        ("tools/call", {"name": "search", "arguments": {"query": "?", "user_id": "m"}}, OLD, 200),
        ("tools/call", {"name": "forget", "arguments": {}}, OLD, 200),
        ("no/such", {}, OLD, 200),
        ("no/such", {}, NEW, 404),
    ],
)
def test_answers_are_as_they_are_described(
    program_a: Program, method: str, params: dict[str, Any], version: str, status: int
) -> None:
    body = body_of(method, params, version)
    assert (errors(body, "Message") == []) is (method != "no/such")
    answer = program_a.post(ENDPOINT, body, headers=headers_of(method, params, version))
    assert answer.status_code == status
    schema = schema_of_answer("mcp", ENDPOINT, "POST", status)
    assert errors(answer.json(), schema) == []


@pytest.mark.parametrize("body", [[], {"jsonrpc": "1.0", "id": 1, "method": "ping"}, {"id": 1}])
def test_undocumented_field_is_refused(program_a: Program, body: Any) -> None:
    assert errors(body, "Message")
    refused = program_a.post(ENDPOINT, body)
    assert (refused.status_code, errors(refused.json(), "Refusal")) == (400, [])


def test_metadata_and_a_missing_key_are_as_they_are_described() -> None:
    path = "/.well-known/oauth-protected-resource"
    answer = Client().get(path, headers={"Host": "localhost"})
    assert errors(answer.json(), "Metadata") == []
    refused = Client().post(ENDPOINT, {}, "application/json", headers={"Host": "localhost"})
    assert (refused.status_code, errors(refused.json(), "Refusal")) == (401, [])
