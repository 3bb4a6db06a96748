"""Keyed digests of erased users, which replace their ids in receipts and in the journal.

A reader who knows an id can find its receipt; a reader who does not cannot recover the id
(docs/decisions/0028-the-access-log-has-pseudonyms-receipts-have-digests.md).
"""

import hashlib
import hmac
from functools import lru_cache
from typing import Final

from django.conf import settings

from tenants.context import required_tenant_id

PREFIX = "erased:"
_SALT = b"konstruct.audit.pseudonyms"
# 128 bits, so that no two ids of a tenant have the same pseudonym.
_DIGITS = 32

# Shorter ids and numbers are not searched for in texts: "1" is in every address.
MIN_CHARACTERS: Final = 3
MIN_DIGITS: Final = 6


def pseudonym(user_id: str) -> str:
    """Return the pseudonym of a user of the current tenant."""
    return _digest(user_id, settings.SECRET_KEY)


def pseudonyms(user_id: str) -> list[str]:
    """Return the pseudonyms of a user under each SECRET_KEY that is or was in use."""
    return [
        _digest(user_id, secret) for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    ]


def is_distinctive(id: str) -> bool:
    """Return whether an id is long enough to be recognised in texts."""
    return len(id) >= (MIN_DIGITS if id.isdecimal() else MIN_CHARACTERS)


def _digest(user_id: str, secret: str | bytes) -> str:
    value = f"{required_tenant_id()}\0{user_id}".encode()
    return PREFIX + hmac.digest(_key(secret), value, "sha256").hex()[:_DIGITS]


@lru_cache(maxsize=16)
def _key(secret: str | bytes) -> bytes:
    # As django.utils.crypto.salted_hmac derives it.
    given = secret.encode() if isinstance(secret, str) else secret
    return hashlib.sha256(_SALT + given).digest()
