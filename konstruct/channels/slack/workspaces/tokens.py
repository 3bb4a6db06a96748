"""Tokens of workspaces at rest: encrypted under keys that can be changed. Pure but for settings.

CHANNEL_TOKEN_KEYS names the keys: the first one encrypts, all of them decrypt. The content says
whose it is, so that a row copied to another tenant or workspace is of no use there.
"""

import json
from uuid import UUID

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from konstruct.channels.exceptions import TokenUnreadable

HOW_TO_MAKE = (
    "python -c 'from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())'"
)


def encrypt(token: str, *, tenant_id: UUID, place: str) -> str:
    """Encrypt a token, for this tenant and place (`slack T024BE7LD`) alone."""
    content = json.dumps({"tenant": str(tenant_id), "place": place, "token": token})
    return _keys().encrypt(content.encode()).decode()


def decrypt(encrypted: str, *, tenant_id: UUID, place: str) -> str:
    """Decrypt a token.

    Raises TokenUnreadable.
    """
    content = json.loads(_decrypted(encrypted, place))
    if (content["tenant"], content["place"]) != (str(tenant_id), place):
        raise TokenUnreadable(f"The token of {place} was encrypted for another place.")
    return str(content["token"])


def encrypt_again(encrypted: str, *, place: str) -> str:
    """Encrypt again, with the first key.

    Raises TokenUnreadable.
    """
    return _keys().encrypt(_decrypted(encrypted, place)).decode()


def _decrypted(encrypted: str, place: str) -> bytes:
    try:
        return _keys().decrypt(encrypted)
    except InvalidToken:
        raise TokenUnreadable(
            f"The token of {place} cannot be read with any of CHANNEL_TOKEN_KEYS: add the key that "
            "encrypted it, or connect the workspace again."
        ) from None


def _keys() -> MultiFernet:
    if not settings.CHANNEL_TOKEN_KEYS:
        raise ImproperlyConfigured(f"CHANNEL_TOKEN_KEYS is not set; {HOW_TO_MAKE} makes a key")
    try:
        return MultiFernet([Fernet(key) for key in settings.CHANNEL_TOKEN_KEYS])
    except ValueError:
        raise ImproperlyConfigured(
            f"CHANNEL_TOKEN_KEYS holds what is no key; {HOW_TO_MAKE} makes one"
        ) from None
