"""Database servers: their names, and which of them each tenant is on."""

import time
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections

from tenants.exceptions import InvalidTenant

# The server that keeps the list of tenants. It may have tenants like any other.
MAIN: Final = DEFAULT_DB_ALIAS
# How long a process trusts what it has read. Requests and tasks read their tenant's row, and note
# what it says.
TRUSTED_SECONDS: Final = 5.0

_REPLICA: Final = "_replica"
_SERVER = "SELECT server FROM public.tenants_tenant WHERE id = %s"

_noted: dict[UUID, tuple[str, float]] = {}


def servers() -> list[str]:
    """The names of all servers, which are Django's aliases of them; the main one first."""
    return [MAIN, *settings.TENANT_DATABASES]


def require_server(name: str) -> None:
    """Check the name of a server.

    Raises:
        InvalidTenant: there is no such server.
    """
    if name not in servers():
        raise InvalidTenant(f"no server is called {name!r}, but {', '.join(servers())} are")


def open_servers() -> list[str]:
    """Those that take new tenants."""
    return [name for name in servers() if name not in settings.TENANT_DATABASES_CLOSED]


def replica_of(server: str) -> str | None:
    """Django's alias of a server's standby; None if this process knows of none."""
    alias = f"{server}{_REPLICA}"
    return alias if alias in connections.settings else None


def main_of(alias: str) -> str:
    """The server that an alias of it, or of its standby, means."""
    return alias.removesuffix(_REPLICA)


def replicas() -> list[str]:
    """Django's aliases of all standbys."""
    return [alias for alias in map(replica_of, servers()) if alias is not None]


def note_server(tenant_id: UUID, server: str) -> None:
    """Note what the tenant's row says, for those who enter the tenant next."""
    if settings.TENANT_DATABASES:
        _noted[tenant_id] = (server, time.monotonic() + TRUSTED_SECONDS)


def forget_servers() -> None:
    """Read each tenant's row again before it is entered."""
    _noted.clear()


def server_of(tenant_id: UUID) -> str:
    """The server that a tenant is on; the main one if there is no such tenant.

    The connection to the main server is in that tenant, or in none, so that it sees the row.
    """
    if not settings.TENANT_DATABASES:
        return MAIN
    server, until = _noted.get(tenant_id, (MAIN, 0.0))
    if time.monotonic() < until:
        return server
    with connections[MAIN].cursor() as cursor:
        cursor.execute(_SERVER, [tenant_id])
        row = cursor.fetchone()
    if row is None:
        return MAIN
    note_server(tenant_id, row[0])
    return str(row[0])
