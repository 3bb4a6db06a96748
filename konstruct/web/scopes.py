"""What an ASGI scope says of a request before Django has it."""

from typing import Any
from urllib.parse import unquote_to_bytes

from django.utils.encoding import repercent_broken_unicode

Scope = dict[str, Any]


def path_of(scope: Scope) -> str:
    """The path as Django reads it under WSGI: what is no UTF-8 stays percent-encoded."""
    raw: bytes = scope["raw_path"]
    return repercent_broken_unicode(unquote_to_bytes(raw)).decode()


def announced_length(scope: Scope) -> int | None:
    """The Content-Length, which the server has checked to be a number; None without one."""
    value = _header(scope, b"content-length")
    return int(value) if value.isdigit() else None


def is_framed_twice(scope: Scope) -> bool:
    """Return whether the end of the body is ambiguous, which RFC 9112 wants refused (6.1, 6.3).

    It is ambiguous with both Content-Length and Transfer-Encoding, and with Transfer-Encoding in
    HTTP/1.0: a proxy and this server may read different requests. h11 refuses other errors, such as
    two lengths.
    """
    names = {name for name, _ in scope["headers"]}
    return b"transfer-encoding" in names and (
        b"content-length" in names or scope.get("http_version") == "1.0"
    )


def _header(scope: Scope, name: bytes) -> str:
    found = (value for key, value in scope["headers"] if key == name)
    return next(found, b"").decode("latin-1")
