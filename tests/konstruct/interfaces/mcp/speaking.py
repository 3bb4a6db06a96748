"""Requests to the MCP endpoint without the official client, including invalid ones."""

from typing import Any

from mcp_types import CLIENT_CAPABILITIES_META_KEY, PROTOCOL_VERSION_META_KEY
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from tests.konstruct.conftest import Program

ENDPOINT = "/mcp"
OLD, NEW = LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION


def body_of(method: str, params: dict[str, Any], version: str) -> dict[str, Any]:
    """Return the body of a request of the revision."""
    if version == NEW:
        meta = {PROTOCOL_VERSION_META_KEY: NEW, CLIENT_CAPABILITIES_META_KEY: {}}
        params = {"_meta": meta, **params}
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def headers_of(method: str, params: dict[str, Any], version: str) -> dict[str, str]:
    """Return the headers of the request."""
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": version}
    if version == NEW:
        headers["Mcp-Method"] = method
        if method == "tools/call":
            headers["Mcp-Name"] = str(params.get("name"))
    return headers


def ask(program: Program, method: str, version: str = OLD, **params: Any) -> Any:
    """Send a request. Return the response."""
    return program.post(
        ENDPOINT, body_of(method, params, version), headers=headers_of(method, params, version)
    )


def call(program: Program, tool: str, version: str = OLD, **arguments: Any) -> dict[str, Any]:
    """Call a tool. Return its result."""
    answer = ask(program, "tools/call", version, name=tool, arguments=arguments)
    assert answer.status_code == 200, answer.content
    result: dict[str, Any] = answer.json()["result"]
    return result


def text_of(result: dict[str, Any]) -> str:
    """Return the text of a tool's result."""
    (content,) = result["content"]
    return str(content["text"])
