"""API keys: making, checking and revoking them."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models.functions import Now

from konstruct.api.keys import KeyText, new_key
from konstruct.api.models import ApiKey
from tenants.context import tenant_scope
from tenants.exceptions import KonstructError


class KeyInvalid(KonstructError):
    """An API key cannot be made like this."""


@dataclass(frozen=True)
class Program:
    """Who a request with an API key comes from, in the place of a user."""

    key: ApiKey
    is_authenticated: bool = True
    is_staff: bool = False

    def __str__(self) -> str:
        return self.key.name


def issue_key(
    *, tenant_id: UUID, name: str, expires_at: datetime | None = None
) -> tuple[ApiKey, KeyText]:
    """Make a key. Its text is returned here and can never be had again.

    Raises KeyInvalid for a name that a key cannot have.
    """
    text = new_key(tenant_id)
    key = ApiKey(name=name, prefix=text.prefix, secret_digest=text.digest, expires_at=expires_at)
    with tenant_scope(tenant_id):
        try:
            key.clean_fields()
        except ValidationError as error:
            raise KeyInvalid(f"name: {' '.join(error.messages)}") from error
        key.save(force_insert=True)
    return key, text


def check_key(text: KeyText) -> ApiKey | None:
    """Return the key's row if it opens the door of the tenant that we are in: one indexed query."""
    key = ApiKey.objects.valid().filter(prefix=text.prefix, tenant_id=text.tenant_id).first()
    return key if key is not None and text.matches(key.secret_digest) else None


def revoke_key(key_id: UUID) -> bool:
    """Close the door for a key, for good. Tells whether it was open."""
    return bool(ApiKey.objects.filter(pk=key_id, revoked_at__isnull=True).update(revoked_at=Now()))
