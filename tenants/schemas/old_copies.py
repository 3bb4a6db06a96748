"""Old copies of tenants that were moved to another server. They are kept for a day.

No process serves a copy. The name of its schema is `moved_`, the tenant's id, and the time of the
move in seconds since 1970.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from tenants.context import (
    execute,
    fetch_column,
    public_scope,
    server_scope,
    tenant_connection,
)
from tenants.exceptions import KonstructError
from tenants.models import Job, Tenant
from tenants.naming import schema_name_of
from tenants.postgresql.exceptions import ServerDown
from tenants.schemas.migration_state import schema_exists
from tenants.servers import servers

COPY_LIFETIME: Final = timedelta(days=1)

_NAME = re.compile(r"moved_([0-9a-f]{32})_(\d+)")
_COPIES = r"""
SELECT nspname FROM pg_namespace WHERE nspname ~ '^moved_[0-9a-f]{32}_\d+$' ORDER BY nspname
"""


class SchemaLeftOver(KonstructError):
    """A server still has a schema of a tenant that is on another server."""


@dataclass(frozen=True)
class OldCopy:
    """The schema that a tenant left on its former server."""

    server: str
    schema_name: str
    tenant_id: UUID
    left_at: datetime


def name_of_copy(tenant_id: UUID, left_at: datetime) -> str:
    """Return the name of the schema that a tenant leaves at this time."""
    return f"moved_{tenant_id.hex}_{int(left_at.timestamp())}"


def old_copies(tenant_id: UUID | None = None) -> Iterator[OldCopy]:
    """Yield the old copies of a tenant, or of all tenants: one query for each server that is up."""
    for server in servers() if len(servers()) > 1 else ():
        try:
            with server_scope(server):
                names = [_NAME.fullmatch(name) for name in fetch_column(_COPIES)]
        except ServerDown:
            continue
        for name in names:
            if name and tenant_id in (None, UUID(name[1])):
                left_at = datetime.fromtimestamp(int(name[2]), UTC)
                yield OldCopy(server, name[0], UUID(name[1]), left_at)


def drop_old_copies(tenant_id: UUID | None = None) -> int:
    """Drop all old copies of a tenant, or the copies of all tenants that are a day old.

    Needs the owner's role.

    Args:
        tenant_id: the tenant; by default all tenants.

    Returns:
        The number of copies.

    Raises:
        SchemaLeftOver: an interrupted move left a copy under the tenant's own name. Such a copy is
            dropped only if the tenant was deleted.
    """
    dropped = 0
    for copy in list(old_copies(tenant_id)):
        if tenant_id is not None or datetime.now(UTC) - copy.left_at >= COPY_LIFETIME:
            _drop(copy.server, copy.schema_name)
            dropped += 1
    if tenant_id is not None and len(servers()) > 1:
        dropped += _drop_left_over(tenant_id)
    return dropped


def _drop(server: str, schema_name: str) -> None:
    with server_scope(server):
        execute(f"DROP SCHEMA IF EXISTS {schema_name} CASCADE")


def _drop_left_over(tenant_id: UUID) -> int:
    with public_scope():
        tenant = Tenant.objects.filter(id=tenant_id).first()
    name, dropped = schema_name_of(tenant_id), 0
    for server in servers():
        if tenant is not None and server in (tenant.server, tenant.moving_to):
            continue
        with suppress(ServerDown), server_scope(server):
            if not schema_exists(name):
                continue
            if tenant is not None:
                raise SchemaLeftOver(
                    f"a schema {name} exists on {server}, and tenant {tenant.slug!r} is on"
                    f" {tenant.server}: check its content, and drop it there, with the tenant's"
                    " rows in public.tenants_job"
                )
            _drop(server, name)
            tenant_connection().set_schema(name)
            Job.objects.filter(tenant_id=tenant_id).delete()
            dropped += 1
    return dropped
