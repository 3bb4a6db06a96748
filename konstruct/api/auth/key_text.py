"""The text of an API key: what it says, and what of it is stored. Pure."""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from uuid import UUID

_KEY = re.compile(r"ks_(?P<tenant>[0-9a-f]{32})_(?P<prefix>[0-9a-f]{12})_(?P<secret>[0-9a-f]{64})")


@dataclass(frozen=True)
class KeyText:
    """An API key: `ks_<tenant>_<prefix>_<secret>`.

    The tenant is in it so that a host which serves all tenants knows where to look; the prefix
    finds the row; only the secret proves anything.
    """

    tenant_id: UUID
    prefix: str
    secret: str

    def __str__(self) -> str:
        return f"ks_{self.tenant_id.hex}_{self.prefix}_{self.secret}"

    def __repr__(self) -> str:
        return f"<API key {self.prefix}>"

    @property
    def digest(self) -> str:
        """What is stored. The secret is 256 random bits: a plain hash of it cannot be searched."""
        return hashlib.sha256(self.secret.encode()).hexdigest()

    def matches(self, digest: str) -> bool:
        """Compare with what is stored, in a time that does not depend on where they differ."""
        return hmac.compare_digest(self.digest, digest)


def new_key(tenant_id: UUID) -> KeyText:
    """Make a key for the tenant."""
    return KeyText(tenant_id, prefix=secrets.token_hex(6), secret=secrets.token_hex(32))


def parse_key(text: str) -> KeyText | None:
    """Read a key's text; None if it is not one."""
    found = _KEY.fullmatch(text)
    return found and KeyText(UUID(found["tenant"]), found["prefix"], found["secret"])


def bearer_key(authorization: str) -> str | None:
    """Return the credentials of an Authorization header; None for a scheme that is no key's.

    `Bearer …`, or `Token …`, as clients of mem0 say it.
    """
    scheme, _, credentials = authorization.strip().partition(" ")
    return credentials.strip() if scheme.lower() in ("bearer", "token") else None
