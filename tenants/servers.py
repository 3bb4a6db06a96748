"""Database servers: their names, and the server of each tenant."""

import time
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections

from tenants.exceptions import InvalidTenant

# The server with the list of tenants. It may have tenants like any other.
MAIN: Final = DEFAULT_DB_ALIAS
# How long a process caches the server of a tenant. Requests and tasks read their tenant's row, and
# update the cache.
CACHE_SECONDS: Final = 5.0

_SERVER = "SELECT server FROM public.tenants_tenant WHERE id = %s"

_cached_servers: dict[UUID, tuple[str, float]] = {}


def servers() -> list[str]:
    """Return the names of all servers, which are Django's aliases; the main one first."""
    return [MAIN, *settings.TENANT_DATABASES]


def require_server(name: str) -> None:
    """Check the name of a server for a new tenant.

    Raises:
        InvalidTenant: there is no such server, or it takes no new tenants.
    """
    if name not in servers():
        raise InvalidTenant(f"no server is called {name!r}, but {', '.join(servers())} are")
    if name in settings.TENANT_DATABASES_CLOSED:
        raise InvalidTenant(f"the server {name!r} takes no new tenants (TENANT_DATABASES_CLOSED)")


def bytes_on(server: str) -> int:
    """Return the size of the database on a server."""
    with connections[server].cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        return int(cursor.fetchone()[0])


def cache_server(tenant_id: UUID, server: str) -> None:
    """Cache the server of a tenant, from the tenant's row."""
    if settings.TENANT_DATABASES:
        _cached_servers[tenant_id] = (server, time.monotonic() + CACHE_SECONDS)


def clear_server_cache() -> None:
    """Empty the cache: each tenant's row is read again."""
    _cached_servers.clear()


def server_of(tenant_id: UUID) -> str:
    """Return the server of a tenant; the main one if there is no such tenant.

    The connection to the main server is in that tenant, or in none, so that it can read the row.
    """
    if not settings.TENANT_DATABASES:
        return MAIN
    server, until = _cached_servers.get(tenant_id, (MAIN, 0.0))
    if time.monotonic() < until:
        return server
    with connections[MAIN].cursor() as cursor:
        cursor.execute(_SERVER, [tenant_id])
        row = cursor.fetchone()
    if row is None:
        return MAIN
    cache_server(tenant_id, row[0])
    return str(row[0])
