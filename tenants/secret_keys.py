"""Secrets and signatures by the keys of the settings.

Secrets of tenants are encrypted by CHANNEL_TOKEN_KEYS: the first key encrypts, all of them decrypt.
An encrypted secret names its tenant and place, so that a row copied elsewhere is unreadable there.
JSON documents that leave the deployment and return are signed by an HMAC under SECRET_KEY.
"""

import json
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.encoding import force_bytes

from tenants.exceptions import KonstructError

# Characters of the digest that names a key.
_KEY_ID_DIGITS: Final = 8


UNREADABLE: Final = (
    "The secret of {place} cannot be read with any of CHANNEL_TOKEN_KEYS: add the key that"
    " encrypted it, or enter the secret again."
)


class SecretUnreadable(KonstructError):
    """A secret was encrypted for another place, or with a key that is not configured."""


def encrypt(secret: str, *, tenant_id: UUID, place: str) -> str:
    """Encrypt a secret for one tenant and place, such as "slack T024BE7LD"."""
    content = {"tenant": str(tenant_id), "place": place, "token": secret}
    return _keys().encrypt(json.dumps(content).encode()).decode()


def decrypt(encrypted: str, *, tenant_id: UUID, place: str) -> str:
    """Decrypt a secret. Raises SecretUnreadable."""
    try:
        content = json.loads(_keys().decrypt(encrypted))
    except InvalidToken:
        raise SecretUnreadable(UNREADABLE.format(place=place)) from None
    if (content["tenant"], content["place"]) != (str(tenant_id), place):
        raise SecretUnreadable(f"The secret of {place} was encrypted for another place.")
    return str(content["token"])


def reencrypt(encrypted: str, *, place: str) -> str:
    """Encrypt a secret, or "", with the first key. Raises SecretUnreadable."""
    try:
        return encrypted and _keys().rotate(encrypted).decode()
    except InvalidToken:
        raise SecretUnreadable(UNREADABLE.format(place=place)) from None


def _keys() -> MultiFernet:
    if not settings.CHANNEL_TOKEN_KEYS:
        raise ImproperlyConfigured(
            "CHANNEL_TOKEN_KEYS is not set; python -c 'from cryptography.fernet import Fernet; "
            "print(Fernet.generate_key().decode())' makes a key"
        )
    return MultiFernet([Fernet(key) for key in settings.CHANNEL_TOKEN_KEYS])


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
        constant_time_compare(signature(document, purpose, secret), given) for secret in secrets()
    )


def keyed_digest(value: bytes, purpose: bytes, secret: str | bytes) -> str:
    """Return the HMAC-SHA-256 of bytes, in hexadecimal digits."""
    return salted_hmac(purpose, value, secret, algorithm="sha256").hexdigest()


def canonical(document: dict[str, Any]) -> bytes:
    """Return the canonical form of a document: sorted names, no whitespace, ASCII."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def key_id(secret: str | bytes) -> str:
    """Return a short name of a secret key, which does not reveal it."""
    return sha256(b"konstruct.key-id" + force_bytes(secret)).hexdigest()[:_KEY_ID_DIGITS]


def secrets() -> list[str]:
    """Return the secret keys: the current one, then the former ones."""
    return [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
