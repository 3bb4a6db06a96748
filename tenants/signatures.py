"""HMACs of JSON documents under SECRET_KEY, for files that leave the deployment and return."""

import hmac
import json
from hashlib import sha256
from typing import Any, Final

from django.conf import settings

# Characters of the digest that names a key.
_KEY_ID_DIGITS: Final = 8


def signature(document: dict[str, Any], purpose: bytes, secret: str | bytes = "") -> str:
    """Return the HMAC-SHA-256 of a document in its canonical form.

    Args:
        document: a JSON object.
        purpose: separates documents of different kinds: their signatures differ.
        secret: the key; by default SECRET_KEY.
    """
    return keyed_digest(canonical(document), purpose, secret or settings.SECRET_KEY)


def is_signed(document: dict[str, Any], purpose: bytes, given: str) -> bool:
    """Return whether a signature is valid under a SECRET_KEY that is or was in use."""
    return any(
        hmac.compare_digest(signature(document, purpose, secret).encode(), given.encode())
        for secret in secrets()
    )


def keyed_digest(value: bytes, purpose: bytes, secret: str | bytes) -> str:
    """Return the HMAC-SHA-256 of bytes, in hexadecimal digits."""
    return hmac.digest(sha256(purpose + _bytes(secret)).digest(), value, "sha256").hex()


def canonical(document: dict[str, Any]) -> bytes:
    """Return the canonical form of a document: sorted names, no whitespace, ASCII."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def key_id(secret: str | bytes) -> str:
    """Return a short name of a secret key, which does not reveal it."""
    return sha256(b"konstruct.key-id" + _bytes(secret)).hexdigest()[:_KEY_ID_DIGITS]


def secrets() -> list[str]:
    """Return the secret keys: the current one, then the former ones."""
    return [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]


def _bytes(secret: str | bytes) -> bytes:
    return secret.encode() if isinstance(secret, str) else secret
