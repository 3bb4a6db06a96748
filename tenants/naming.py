"""Names in Postgres: schemas, each computed from the id of its tenant, and roles."""

import re
from functools import lru_cache
from uuid import UUID

from tenants.exceptions import InvalidTenantId

SCHEMA_PATTERN = r"^t_[0-9a-f]{32}$"
_SCHEMA = re.compile(SCHEMA_PATTERN)

# Migrates, provisions and erases; owns every table.
OWNER_ROLE = "konstruct_owner"
# Web and workers: owns nothing, cannot bypass row-level security.
APP_ROLE = "konstruct_app"

# manage.py connects these as the owner and everything else as the application.
OWNER_COMMANDS = frozenset(
    {
        "backup", "create_tenant", "delete_tenant", "demo", "erase_user", "make_schema_script",
        "migrate", "migrate_schemas", "move_tenant", "owner_worker", "reindex_words", "restore",
        "set_up_tenant", "sqlmigrate", "verify_backup", "verify_memory",
    }
)  # fmt: skip


def as_uuid(value: object) -> UUID | None:
    """Return a UUID, or the text of one, as a UUID; None for any other value."""
    try:
        return value if isinstance(value, UUID) else UUID(value)  # type: ignore[arg-type]
    except (AttributeError, TypeError, ValueError):
        return None


def as_tenant_id(value: UUID | str) -> UUID:
    """Return ``value`` as a UUID, or raise `InvalidTenantId`."""
    if (tenant_id := as_uuid(value)) is None:
        raise InvalidTenantId(f"{value!r} is not the id (a UUID) of a tenant")
    return tenant_id


def schema_name_of(tenant_id: UUID) -> str:
    """Return the name of the tenant's schema."""
    return f"t_{tenant_id.hex}"


@lru_cache(maxsize=4096)
def tenant_id_of(schema_name: str) -> UUID | None:
    """Return the tenant's id of this schema; None for any other schema."""
    return UUID(schema_name[2:]) if _SCHEMA.fullmatch(schema_name) else None
