"""Messages of MCP: which revision a request speaks, and whether it is well-formed in it.

Until the revision 2025-11-25 a client begins with `initialize`, and may say its revision in a
header. Since 2026-07-28 every request stands by itself: it says revision and capabilities in its
body, and revision, method and name in headers as well, which must agree.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    DEFAULT_NEGOTIATED_VERSION,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PROTOCOL_VERSION_META_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
    JSONRPCNotification,
    JSONRPCRequest,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from konstruct.interfaces.mcp.errors import RpcError

VERSION_HEADER: Final = "MCP-Protocol-Version"
METHOD_HEADER: Final = "Mcp-Method"
NAME_HEADER: Final = "Mcp-Name"
# Which parameter of a method the header of the name repeats.
_NAMED_BY: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
# With which status a revision since 2026-07-28 wants an error to be sent; the others with 200.
_STATUS: Final = {
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    UNSUPPORTED_PROTOCOL_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}
_ENCODED = re.compile(r"=\?base64\?([A-Za-z0-9+/=]*)\?=")


@dataclass(frozen=True)
class Message:
    """A request, or a notification, which has no id and gets no answer."""

    id: int | str | None
    method: str
    params: dict[str, Any]
    version: str

    @property
    def is_modern(self) -> bool:
        """Whether it stands by itself, without a handshake before it."""
        return self.version in MODERN_PROTOCOL_VERSIONS

    def status_of(self, error: RpcError) -> int:
        """The HTTP status with which an error of the method is sent."""
        return _STATUS.get(error.code, 200) if self.is_modern else 200


def read_message(body: Any, headers: Mapping[str, str]) -> Message:
    """Return the message of a request's body, in the revision that its headers name.

    Raises RpcError for what is no message, or contradicts its headers.
    """
    if not isinstance(body, dict):
        raise RpcError(
            INVALID_REQUEST, "Send one JSON-RPC message as a JSON object. Batches are not taken."
        )
    kind = JSONRPCRequest if "id" in body else JSONRPCNotification
    try:
        parsed: JSONRPCRequest | JSONRPCNotification = kind.model_validate(body)
    except ValidationError as error:
        raise RpcError(INVALID_REQUEST, f"No JSON-RPC request: {complaint(error)}") from error
    version = headers.get(VERSION_HEADER, DEFAULT_NEGOTIATED_VERSION)
    params = parsed.params or {}
    message = Message(getattr(parsed, "id", None), parsed.method, params, version)
    if version in HANDSHAKE_PROTOCOL_VERSIONS:
        return message
    if message.id is not None:
        _check_envelope(message, headers)
    if not message.is_modern:
        raise RpcError(
            UNSUPPORTED_PROTOCOL_VERSION,
            f"This server does not speak the revision {version[:100]!r}.",
            {"supported": list(MODERN_PROTOCOL_VERSIONS), "requested": version},
        )
    return message


def _check_envelope(message: Message, headers: Mapping[str, str]) -> None:
    """Raise RpcError unless the request says what it must, and its headers say the same."""
    meta = message.params.get("_meta")
    needed = (PROTOCOL_VERSION_META_KEY, CLIENT_CAPABILITIES_META_KEY)
    missing = [key for key in needed if not isinstance(meta, dict) or key not in meta]
    if missing or not isinstance(meta, dict):
        raise RpcError(INVALID_PARAMS, f"params._meta lacks {' and '.join(missing)}.")
    if meta[PROTOCOL_VERSION_META_KEY] != message.version:
        raise _mismatch(VERSION_HEADER, f"params._meta.{PROTOCOL_VERSION_META_KEY}")
    if headers.get(METHOD_HEADER) != message.method:
        raise _mismatch(METHOD_HEADER, "method")
    parameter = _NAMED_BY.get(message.method)
    name = message.params.get(parameter) if parameter else None
    if name is not None and _decoded(headers.get(NAME_HEADER)) != name:
        raise _mismatch(NAME_HEADER, f"params.{parameter}")


def _mismatch(header: str, member: str) -> RpcError:
    return RpcError(HEADER_MISMATCH, f"The header {header} must say the same as {member}.")


def _decoded(value: str | None) -> str | None:
    """The text of a header that may be in base64; None if it cannot be read."""
    found = _ENCODED.fullmatch(value or "")
    if found is None:
        return value
    try:
        return base64.b64decode(found[1], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def complaint(error: ValidationError) -> str:
    """What is wrong, in a sentence for each of the first three mistakes."""
    mistakes = error.errors(include_url=False, include_input=False, include_context=False)[:3]
    return "; ".join(
        f"{'.'.join(str(part)[:100] for part in each['loc']) or 'body'}: {each['msg']}"
        for each in mistakes
    )
