"""Parsing of messages: revisions, envelopes, and headers that must agree with the body."""

from konstruct.interfaces.mcp.protocol import read_message
from tests.konstruct.interfaces.mcp.speaking import NEW, OLD, body_of, headers_of

CALL = {"name": "search", "arguments": {}}


def test_request_without_the_header_has_an_older_revision() -> None:
    assert read_message(body_of("ping", {}, OLD), {}).version == "2025-03-26"


def test_a_notification_has_no_id() -> None:
    body = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert read_message(body, {}).id is None
    assert read_message(body, {"MCP-Protocol-Version": NEW}).id is None


def changed(**headers: str | None) -> dict[str, str]:
    """Return valid headers with some of them changed or left out."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    sent = {**headers_of("tools/call", CALL, NEW), **names}
    return {name: value for name, value in sent.items() if value is not None}


def test_a_name_may_be_sent_in_base64() -> None:
    headers = changed(Mcp_Name="=?base64?c2VhcmNo?=")
    assert read_message(body_of("tools/call", CALL, NEW), headers).params["name"] == "search"
