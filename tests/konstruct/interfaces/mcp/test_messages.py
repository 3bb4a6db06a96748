"""Parsing of messages: revisions, envelopes, and headers that must agree with the body."""

from konstruct.interfaces.mcp.protocol import read_message
from tests.konstruct.interfaces.mcp.speaking import NEW, OLD, body_of, headers_of

CALL = {"name": "search", "arguments": {}}


def test_request_without_the_header_has_an_older_revision() -> None:
    assert read_message(body_of("ping", {}, OLD), {}).version == "2025-03-26"


def test_a_name_may_be_sent_in_base64() -> None:
    headers = {**headers_of("tools/call", CALL, NEW), "Mcp-Name": "=?base64?c2VhcmNo?="}
    assert read_message(body_of("tools/call", CALL, NEW), headers).params["name"] == "search"
