"""Keyed digests of erased users, which replace their ids in receipts and in the journal.

A reader who knows an id can find its receipt; a reader who does not cannot recover the id
(docs/decisions/0028-the-access-log-has-pseudonyms-receipts-have-digests.md).
"""

from typing import Final

from tenants.context import required_tenant_id
from tenants.secret_keys import keyed_digest, secrets

PREFIX = "erased:"
_PURPOSE: Final = b"konstruct.audit.pseudonyms"
# 128 bits, so that no two ids of a tenant have the same pseudonym.
_DIGITS: Final = 32

# Shorter ids and numbers are not searched for in texts: "1" is in every address.
MIN_CHARACTERS: Final = 3
MIN_DIGITS: Final = 6


def pseudonym(user_id: str) -> str:
    """Return the pseudonym of a user of the current tenant."""
    return pseudonyms(user_id)[0]


def pseudonyms(user_id: str) -> list[str]:
    """Return the pseudonyms of a user under each SECRET_KEY that is or was in use."""
    value = f"{required_tenant_id()}\0{user_id}".encode()
    return [PREFIX + keyed_digest(value, _PURPOSE, secret)[:_DIGITS] for secret in secrets()]


def is_distinctive(id: str) -> bool:
    """Return whether an id is long enough to be recognised in texts."""
    return len(id) >= (MIN_DIGITS if id.isdecimal() else MIN_CHARACTERS)
