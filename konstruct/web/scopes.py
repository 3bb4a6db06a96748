"""What an ASGI scope says of a request before Django has it."""

from typing import Any
from urllib.parse import unquote_to_bytes

from django.utils.encoding import repercent_broken_unicode

from konstruct.api.auth.key_text import bearer_key, parse_key

Scope = dict[str, Any]


def path_of(scope: Scope) -> str:
    """The path as Django reads it under WSGI: what is no UTF-8 stays percent-encoded."""
    raw: bytes = scope["raw_path"]
    return repercent_broken_unicode(unquote_to_bytes(raw)).decode()


def announced_length(scope: Scope) -> int | None:
    """The Content-Length, which the server has checked to be a number; None without one."""
    value = _header(scope, b"content-length")
    return int(value) if value.isdigit() else None


def share_of(scope: Scope) -> str:
    """By what requests are counted that share the threads: the key's tenant, else the host.

    Nothing is proved by it. Who claims to be another takes a place in the other's queue.
    """
    key = parse_key(bearer_key(_header(scope, b"authorization")) or "")
    return key.tenant_id.hex if key is not None else _header(scope, b"host").lower()


def _header(scope: Scope, name: bytes) -> str:
    found = (value for key, value in scope["headers"] if key == name)
    return next(found, b"").decode("latin-1")
