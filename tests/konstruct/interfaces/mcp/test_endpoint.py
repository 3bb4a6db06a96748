"""The endpoint: authentication, answers, and invalid requests."""

import json
from functools import partial
from typing import Any

import pytest
from django.test import Client
from mcp_types.methods import validate_server_result
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from konstruct.interfaces.mcp.protocol import read_message
from konstruct.urls import interfaces
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tests.described import described, errors_in, schema_of_answer
from tests.konstruct.conftest import Program
from tests.konstruct.interfaces.mcp.speaking import (
    ENDPOINT,
    NEW,
    OLD,
    ask,
    body_of,
    call,
    headers_of,
)

pytestmark = pytest.mark.django_db

CLIENT = {"capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}


def post(program: Program, body: Any, **options: Any) -> Any:
    return program.post(ENDPOINT, body, **options)


def error_of(answer: Any) -> int:
    """Check the form of the JSON-RPC error. Return its code."""
    assert answer.headers["Content-Type"] == "application/json"
    body = answer.json()
    assert set(body) == {"jsonrpc", "id", "error"}
    assert body["error"]["message"]
    code: int = body["error"]["code"]
    return code


@pytest.mark.parametrize("version", HANDSHAKE_PROTOCOL_VERSIONS)
def test_the_older_era_begins_with_a_handshake(program_a: Program, version: str) -> None:
    body = body_of("initialize", {"protocolVersion": version, **CLIENT}, version)
    answer = post(program_a, body)
    result = answer.json()["result"]
    assert result["protocolVersion"] == version
    assert "Mcp-Session-Id" not in answer.headers
    validate_server_result("initialize", version, result)
    headers = {"MCP-Protocol-Version": version}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert (post(program_a, ready, headers=headers).status_code) == 202
    assert ask(program_a, "ping", version).json()["result"] == {}


def test_a_client_of_another_revision_is_offered_the_latest(program_a: Program) -> None:
    body = body_of("initialize", {"protocolVersion": "1999-01-01", **CLIENT}, OLD)
    assert post(program_a, body).json()["result"]["protocolVersion"] == OLD


def test_the_new_era_discovers(program_a: Program) -> None:
    result = ask(program_a, "server/discover", NEW).json()["result"]
    assert result["supportedVersions"] == [NEW]
    assert (result["cacheScope"], result["resultType"]) == ("private", "complete")
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "konstruct"
    validate_server_result("server/discover", NEW, result)


@pytest.mark.parametrize("version", [*HANDSHAKE_PROTOCOL_VERSIONS, NEW])
def test_tools_match_the_protocol_version(program_a: Program, version: str) -> None:
    result = ask(program_a, "tools/list", version).json()["result"]
    validate_server_result("tools/list", version, result)
    assert ("ttlMs" in result) is (version == NEW)


def test_methods_of_another_era_are_not_there(program_a: Program) -> None:
    for method, version, status in (
        ("initialize", NEW, 404),
        ("ping", NEW, 404),
        ("server/discover", OLD, 200),
        ("completion/complete", OLD, 200),
        ("no/such", NEW, 404),
        ("no/such", OLD, 200),
        ("\ud800", OLD, 200),
    ):
        answer = ask(program_a, method, version)
        assert answer.status_code == status, method
        assert error_of(answer) in (-32601, -32602)


def test_an_unknown_tool_is_an_error_of_the_protocol(program_a: Program) -> None:
    for version, status in ((OLD, 200), (NEW, 400)):
        answer = ask(program_a, "tools/call", version, name="delete_all_memories", arguments={})
        assert (answer.status_code, error_of(answer)) == (status, -32602)
        assert "forget" in answer.json()["error"]["message"]
        assert answer.json()["id"] == 1


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, -32600),
        (b"{", 400, -32700),
        (b"NaN", 400, -32700),
        (b'{"id": 1, "id": 2}', 400, -32700),
        (b"[" * 100_000, 400, -32700),
        (b'{"a":' * 100 + b"1" + b"}" * 100, 400, -32700),
        (b'{"jsonrpc": "2.0", "id": ' + b"9" * 5_000 + b', "method": "ping"}', 400, -32700),
        (b"[]", 400, -32600),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', 400, -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "result": {}}', 400, -32600),
        (b'"' + b"x" * 3_000_000 + b'"', 413, -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}', 200, -32602),
        (
            b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": 5}}',
            200,
            -32602,
        ),
        (
            b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call",'
            b' "params": {"name": "list", "arguments": []}}',
            200,
            -32602,
        ),
        (b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "\\ud800"}', 200, -32601),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "prompts/list"}', 200, -32601),
    ],
)
def test_malformed_request_gets_a_protocol_error(
    program_a: Program, body: bytes, status: int, code: int
) -> None:
    answer = post(program_a, body)
    assert (answer.status_code, error_of(answer)) == (status, code)
    assert answer.headers["X-Request-ID"]


def test_only_json_is_accepted_and_returned(program_a: Program) -> None:
    body = body_of("ping", {}, OLD)
    as_form = post(program_a, body, content_type="application/x-www-form-urlencoded")
    assert (as_form.status_code, error_of(as_form)) == (415, -32600)
    picky = post(program_a, body, headers={"Accept": "image/png"})
    assert (picky.status_code, error_of(picky)) == (406, -32600)
    both = post(program_a, body, headers={"Accept": "application/json, text/event-stream"})
    assert both.status_code == 200


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH", "OPTIONS", "HEAD"])
def test_there_are_no_streams_and_no_sessions(program_a: Program, method: str) -> None:
    headers = {"Mcp-Session-Id": "x", "Accept": "text/event-stream"}
    answer = program_a.request(method, ENDPOINT, headers=headers)
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


def test_the_address_may_end_in_a_slash(program_a: Program) -> None:
    answer = program_a.post("/mcp/", body_of("ping", {}, OLD))
    assert answer.json()["result"] == {}


@pytest.mark.parametrize("host", ["localhost", "tenant-a.localhost"])
def test_answer_without_a_key_names_the_metadata(program_a: Program, host: str) -> None:
    program_a.host = host
    metadata = f"http://{host}/.well-known/oauth-protected-resource/mcp"
    for key in ("", "ks_nonsense", program_a.key[:-1] + ("0" if program_a.key[-1] != "0" else "1")):
        stranger = Program(program_a.tenant, program_a.agent, key, host)
        for method in ("POST", "GET"):
            answer = stranger.write(method, ENDPOINT, body_of("tools/list", {}, OLD))
            assert (answer.status_code, error_of(answer)) == (401, -32600)
            assert f'resource_metadata="{metadata}"' in answer.headers["WWW-Authenticate"]
            assert errors(answer.json(), "Refusal") == []
    answer = Client().get(metadata, headers={"Host": host})
    assert errors(answer.json(), "Metadata") == []
    assert answer.json() == {
        "resource": f"http://{host}/mcp",
        "resource_name": "Konstruct",
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["read", "write"],
    }
    same = Client().get(metadata.removesuffix("/mcp"), headers={"Host": host})
    assert same.json() == answer.json()
    assert Client().post(metadata, headers={"Host": host}).status_code == 405


def test_the_public_host_takes_the_keys_tenant(program_a: Program, program_b: Program) -> None:
    call(program_a, "remember", content="Maria is in A.", user_id="maria")
    call(program_b, "remember", content="Maria is in B.", user_id="maria")
    for program, own in ((program_a, "Maria is in A."), (program_b, "Maria is in B.")):
        (found,) = call(program, "list", user_id="maria")["structuredContent"]["results"]
        assert found["content"] == own
    program_b.host = "tenant-a.localhost"
    refused = ask(program_b, "tools/call", name="list", arguments={"user_id": "maria"})
    assert refused.status_code == 401
    assert b"Maria" not in refused.content


def test_a_cookie_is_no_key(program_a: Program, django_user_model: Any) -> None:
    browser = Client(headers={"Host": "tenant-a.localhost"})
    with tenant_scope(program_a.tenant.id):
        browser.force_login(django_user_model.objects.create_superuser("eva"))
    body = json.dumps(body_of("tools/list", {}, OLD))
    assert browser.post(ENDPOINT, body, content_type="application/json").status_code == 401


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://localhost", 200),
        ("https://evil.example", 403),
        ("null", 403),
        ("http://tenant-a.localhost", 403),
        ("http://localhost.evil.example", 403),
        ("http://[", 403),
        ("https://app.example.com", 200),
    ],
)
def test_pages_of_other_origins_are_refused(
    program_a: Program, settings: Any, origin: str, status: int
) -> None:
    settings.CORS_ALLOWED_ORIGINS = ["https://app.example.com"]
    answer = post(program_a, body_of("ping", {}, OLD), headers={"Origin": origin})
    assert answer.status_code == status


def test_unknown_host_is_refused(program_a: Program) -> None:
    for host, status in (("rebound.example", 400), ("nobody.localhost", 404)):
        program_a.host = host
        answer = ask(program_a, "tools/list")
        assert (answer.status_code, error_of(answer)) == (status, -32600)


def test_calls_cost_tokens(program_a: Program, settings: Any) -> None:
    settings.RATE_LIMIT_BURST, settings.RATE_LIMIT_PER_SECOND = 4, 0.001
    eager = program_a.with_key(name="eager")
    answers = [ask(eager, "tools/call", name="list", arguments={"user_id": "m"}) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert error_of(answers[-1]) == -32600
    assert answers[-1].headers["Retry-After"]
    assert answers[0].headers["RateLimit-Remaining"] == "1"


def test_a_request_that_touches_no_memory_leaves_no_record(program_a: Program) -> None:
    def events() -> int:
        with tenant_scope(program_a.tenant.id):
            return AccessEvent.objects.count()

    before = events()
    ask(program_a, "tools/list")
    ask(program_a, "ping")
    assert events() == before
    post(program_a, b"{")
    with tenant_scope(program_a.tenant.id):
        event = AccessEvent.objects.latest("id")
    assert (event.action, event.subject, event.detail["status"]) == ("refuse", "mcp", 400)


def test_pages_of_allowed_origins_may_send_the_headers_of_mcp(settings: Any) -> None:
    settings.CORS_ALLOWED_ORIGINS = ["https://app.example.com"]
    preflight = Client().options(
        ENDPOINT,
        headers={
            "Host": "localhost",
            "Origin": "https://app.example.com",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": ", ".join(headers_of("tools/call", {}, NEW)),
        },
    )
    assert preflight.status_code == 200
    allowed = preflight.headers["Access-Control-Allow-Headers"]
    assert {"mcp-method", "mcp-name", "mcp-protocol-version"} <= set(allowed.split(", "))


CALL = {"name": "search", "arguments": {}}


def test_request_without_the_header_has_an_older_revision() -> None:
    assert read_message(body_of("ping", {}, OLD), {}).version == "2025-03-26"


def test_a_name_may_be_sent_in_base64() -> None:
    headers = {**headers_of("tools/call", CALL, NEW), "Mcp-Name": "=?base64?c2VhcmNo?="}
    assert read_message(body_of("tools/call", CALL, NEW), headers).params["name"] == "search"


errors = partial(errors_in, "mcp")


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
