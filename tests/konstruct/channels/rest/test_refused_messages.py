"""Messages that the REST channel refuses: the error names the field, and no row is created."""

from typing import Any

import pytest

from tenants.context import tenant_scope
from tests.konstruct.channels.rest.sent import refused_fields, rows
from tests.konstruct.conftest import MESSAGES, Program


@pytest.mark.parametrize("key", ["", "with space", "x" * 256, "ümlaut"])
def test_an_idempotency_key_must_be_visible_ascii(program_a: Program, key: str) -> None:
    response = program_a.send(headers={"Idempotency-Key": key})
    assert (response.status_code, refused_fields(response)) == (400, ["Idempotency-Key"])
    assert rows(program_a) == (0, 0, 0)


BAD_BODIES = [
    ({"content": ""}, 400, ["content"]),
    ({"content": " \n\t"}, 400, ["content"]),
    ({"content": None}, 400, ["content"]),
    ({"content": ["Hello"]}, 400, ["content"]),
    ({"content": "x" * 32_769}, 400, ["content"]),
    ({"content": "a\0b"}, 400, ["content"]),
    ({"content": "half \ud83d"}, 400, ["content"]),
    ({"user_id": ""}, 400, ["user_id"]),
    ({"user_id": "a\0b"}, 400, ["user_id"]),
    ({"user_id": "a\nb"}, 400, ["user_id"]),
    ({"user_id": "x" * 256}, 400, ["user_id"]),
    ({"user_id": 42}, 400, ["user_id"]),
    ({"thread_id": ""}, 400, ["thread_id"]),
    ({"name": "x" * 121}, 400, ["name"]),
    ({"agent": ""}, 400, ["agent"]),
    ({"agent": {"name": "ada"}}, 400, ["agent"]),
    ({"agent": "nobody"}, 422, ["agent"]),
    ({"agent": "00000000-0000-0000-0000-000000000000"}, 422, ["agent"]),
    ({"role": "assistant"}, 400, ["role"]),
    ({"tenant_id": "x", "thread": "y"}, 400, ["tenant_id", "thread"]),
    ({"\ud83d": "x"}, 400, ["\ud83d"]),
]


@pytest.mark.parametrize(("fields", "status", "named"), BAD_BODIES)
def test_invalid_field_is_named_and_nothing_is_stored(
    program_a: Program, fields: dict[str, Any], status: int, named: list[str]
) -> None:
    response = program_a.send(**{"content": "Hello", **fields})
    assert (response.status_code, refused_fields(response)) == (status, named)
    assert rows(program_a) == (0, 0, 0)


@pytest.mark.parametrize("missing", ["agent", "user_id", "content"])
def test_a_missing_field_is_named(program_a: Program, missing: str) -> None:
    body = {"agent": "ada", "user_id": "maria", "content": "Hello"}
    response = program_a.post(
        MESSAGES, {name: value for name, value in body.items() if name != missing}
    )
    assert (response.status_code, refused_fields(response)) == (400, [missing])
    assert rows(program_a) == (0, 0, 0)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"nonsense", b'{"content": NaN}', b"\xff\xfe", b"[" * 100_000, b'"text"', b"[]",
     b"null", b"1" * 5000, b'{"content": 1e999}'],
)  # fmt: skip
def test_body_that_is_not_a_json_object_is_refused(program_a: Program, body: bytes) -> None:
    response = program_a.post(MESSAGES, body)
    assert response.status_code == 400
    assert rows(program_a) == (0, 0, 0)
    assert refused_fields(response)


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_only_json_is_accepted(program_a: Program, content_type: str) -> None:
    body = b'{"agent": "ada", "user_id": "maria", "content": "Hello"}'
    response = program_a.post(MESSAGES, body, content_type=content_type)
    assert response.status_code == 415
    assert response.json()["type"] == "urn:konstruct:problem:unsupported-media-type"
    assert rows(program_a) == (0, 0, 0)


@pytest.mark.parametrize("wait", ["abc", "-1", "61", "nan", "inf", "", "1e9", "1&wait=2"])
def test_invalid_wait_is_refused(program_a: Program, wait: str) -> None:
    response = program_a.send(query=f"?wait={wait}")
    assert (response.status_code, refused_fields(response)) == (400, ["wait"])
    assert rows(program_a) == (0, 0, 0)


def test_an_unknown_query_parameter_is_refused(program_a: Program) -> None:
    response = program_a.send(query="?timeout=5")
    assert (response.status_code, refused_fields(response)) == (400, ["timeout"])
    assert rows(program_a) == (0, 0, 0)


def test_inactive_agent_accepts_no_message(program_a: Program) -> None:
    with tenant_scope(program_a.tenant.id):
        program_a.agent.is_active = False
        program_a.agent.save()
    response = program_a.send()
    assert (response.status_code, refused_fields(response)) == (422, ["agent"])
    assert rows(program_a) == (0, 0, 0)


def test_other_methods_are_refused(program_a: Program) -> None:
    response = program_a.request("DELETE", MESSAGES)
    assert (response.status_code, response.headers["Allow"]) == (405, "GET, POST, HEAD, OPTIONS")
    assert response.json()["type"] == "urn:konstruct:problem:method-not-allowed"
