"""Secrets of tenants, encrypted by CHANNEL_TOKEN_KEYS: the first key encrypts, all of them decrypt.

An encrypted secret names its tenant and place, so that a row copied elsewhere is unreadable there.
"""

import json
from uuid import UUID

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from tenants.exceptions import KonstructError


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
        raise SecretUnreadable(
            f"The secret of {place} cannot be read with any of CHANNEL_TOKEN_KEYS: add the key that"
            " encrypted it, or enter the secret again."
        ) from None
    if (content["tenant"], content["place"]) != (str(tenant_id), place):
        raise SecretUnreadable(f"The secret of {place} was encrypted for another place.")
    return str(content["token"])


def _keys() -> MultiFernet:
    if not settings.CHANNEL_TOKEN_KEYS:
        raise ImproperlyConfigured(
            "CHANNEL_TOKEN_KEYS is not set; python -c 'from cryptography.fernet import Fernet; "
            "print(Fernet.generate_key().decode())' makes a key"
        )
    return MultiFernet([Fernet(key) for key in settings.CHANNEL_TOKEN_KEYS])
