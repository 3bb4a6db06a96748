"""The name that the record has for somebody who was erased: a keyed digest of their id.

Who knows an id can find its receipt and what was done with its memory; who does not cannot read
it from either (docs/decisions/0028-an-erased-id-is-kept-as-a-keyed-digest.md).
"""

from django.conf import settings
from django.utils.crypto import salted_hmac

from tenants.context import required_tenant_id

PREFIX = "erased:"
_SALT = "konstruct.audit.pseudonyms"
# 128 bits: no two ids of a tenant share them.
_DIGITS = 32


def pseudonym(user_id: str) -> str:
    """Return the name that stands for the user in the tenant that we are in, once erased."""
    return _digest(user_id, settings.SECRET_KEY)


def pseudonyms(user_id: str) -> list[str]:
    """As `pseudonym`, under each SECRET_KEY that is or was in use: for looking up."""
    return [
        _digest(user_id, secret) for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    ]


def _digest(user_id: str, secret: str) -> str:
    value = f"{required_tenant_id()}\0{user_id}"
    return (
        PREFIX + salted_hmac(_SALT, value, secret=secret, algorithm="sha256").hexdigest()[:_DIGITS]
    )
