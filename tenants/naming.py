"""The name of a tenant's schema, which is computed from the tenant's id and back."""

import re
from functools import lru_cache
from uuid import UUID

from tenants.exceptions import InvalidTenantId

SCHEMA_PATTERN = r"^t_[0-9a-f]{32}$"
_SCHEMA = re.compile(SCHEMA_PATTERN)


def as_tenant_id(value: UUID | str) -> UUID:
    """Return ``value`` as a UUID, or raise `InvalidTenantId`."""
    if isinstance(value, UUID):
        return value
    try:
        return UUID(value)
    except (AttributeError, TypeError, ValueError):
        raise InvalidTenantId(f"{value!r} is not the id (a UUID) of a tenant") from None


def schema_name_of(tenant_id: UUID) -> str:
    """Return the name of the tenant's schema."""
    return f"t_{tenant_id.hex}"


@lru_cache(maxsize=4096)
def tenant_id_of(schema_name: str) -> UUID | None:
    """Return the tenant's id of this schema; None for any other schema."""
    return UUID(schema_name[2:]) if _SCHEMA.fullmatch(schema_name) else None
