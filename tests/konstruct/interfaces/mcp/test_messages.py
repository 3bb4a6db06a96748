"""Parsing of messages: revisions, envelopes, and headers that must agree with the body."""

from typing import Any

import pytest
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    PROTOCOL_VERSION_META_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
)

from konstruct.interfaces.mcp.errors import RpcError
from konstruct.interfaces.mcp.protocol import read_message
from tests.konstruct.interfaces.mcp.speaking import NEW, OLD, body_of, headers_of

CALL = {"name": "search", "arguments": {}}


@pytest.mark.parametrize("version", [OLD, NEW])
def test_a_request_of_each_era_is_read(version: str) -> None:
    message = read_message(
        body_of("tools/call", CALL, version), headers_of("tools/call", CALL, version)
    )
    assert (message.id, message.method, message.version) == (1, "tools/call", version)
    assert message.params["name"] == "search"
    assert message.is_modern is (version == NEW)


def test_request_without_the_header_has_an_older_revision() -> None:
    assert read_message(body_of("ping", {}, OLD), {}).version == "2025-03-26"


def test_a_notification_has_no_id() -> None:
    body = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert read_message(body, {}).id is None
    assert read_message(body, {"MCP-Protocol-Version": NEW}).id is None


@pytest.mark.parametrize(
    "body",
    [
        [],
        [{"jsonrpc": "2.0", "id": 1, "method": "ping"}],
        None,
        "ping",
        5,
        {},
        {"jsonrpc": "1.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": None, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1.5, "method": "ping"},
        {"jsonrpc": "2.0", "id": True, "method": "ping"},
        {"jsonrpc": "2.0", "id": [1], "method": "ping"},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": 1, "method": 5},
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []},
    ],
)
def test_invalid_request_is_refused(body: Any) -> None:
    for headers in ({}, {"MCP-Protocol-Version": NEW}):
        with pytest.raises(RpcError) as refused:
            read_message(body, headers)
        assert refused.value.code == INVALID_REQUEST


def changed(**headers: str | None) -> dict[str, str]:
    """Return valid headers with some of them changed or left out."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    sent = {**headers_of("tools/call", CALL, NEW), **names}
    return {name: value for name, value in sent.items() if value is not None}


@pytest.mark.parametrize(
    "headers",
    [
        changed(Mcp_Method=None),
        changed(Mcp_Method="tools/list"),
        changed(Mcp_Method="tools/call, tools/call"),
        changed(Mcp_Name=None),
        changed(Mcp_Name="forget"),
        changed(Mcp_Name="=?base64?!!!?="),
        changed(Mcp_Name="=?base64?gA==?="),
        changed(MCP_Protocol_Version="2099-01-01"),
    ],
)
def test_headers_must_match_the_body(headers: dict[str, str]) -> None:
    with pytest.raises(RpcError) as refused:
        read_message(body_of("tools/call", CALL, NEW), headers)
    assert refused.value.code == HEADER_MISMATCH


def test_a_name_may_be_sent_in_base64() -> None:
    headers = changed(Mcp_Name="=?base64?c2VhcmNo?=")
    assert read_message(body_of("tools/call", CALL, NEW), headers).params["name"] == "search"


@pytest.mark.parametrize(
    "meta", [None, 5, [], {}, {PROTOCOL_VERSION_META_KEY: NEW}, {CLIENT_CAPABILITIES_META_KEY: {}}]
)
def test_stateless_request_without_its_client_is_refused(meta: Any) -> None:
    body = body_of("tools/call", {**CALL, "_meta": meta}, NEW)
    with pytest.raises(RpcError) as refused:
        read_message(body, changed())
    assert refused.value.code == INVALID_PARAMS


def test_unknown_protocol_version_gets_the_supported_versions() -> None:
    meta = {PROTOCOL_VERSION_META_KEY: "2099-01-01", CLIENT_CAPABILITIES_META_KEY: {}}
    body = body_of("tools/call", {**CALL, "_meta": meta}, NEW)
    for sent in (body, {"jsonrpc": "2.0", "method": "notifications/x"}):
        with pytest.raises(RpcError) as refused:
            read_message(sent, changed(MCP_Protocol_Version="2099-01-01"))
        assert refused.value.code == UNSUPPORTED_PROTOCOL_VERSION
        assert refused.value.data == {"supported": [NEW], "requested": "2099-01-01"}
