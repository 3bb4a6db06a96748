"""Database servers: their names, the server of each tenant, and the router of models."""

import time
from typing import Any, Final, cast
from uuid import UUID

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import Model
from django_tenants.routers import TenantSyncRouter

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


def current_server() -> str:
    """Return the server of this thread's tenant; the main one outside of tenants."""
    if len(connections.settings) == 1:  # called for every query
        return MAIN
    server: str = cast(Any, connections[MAIN]).server  # of tenants.postgresql
    return server


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


class ServerRouter(TenantSyncRouter):
    """Routes the list of tenants to the main server, and other models to the current tenant's."""

    def db_for_read(self, model: type[Model], **hints: Any) -> str:
        server = current_server()
        describes_tenants = model._meta.app_label == "tenants" and model._meta.model_name != "job"
        return MAIN if server != MAIN and describes_tenants else server

    def db_for_write(self, model: type[Model], **hints: Any) -> str:
        return self.db_for_read(model)

    def allow_migrate(
        self, db: str, app_label: str, model_name: str | None = None, **hints: Any
    ) -> bool:
        """Every server has every table: of the public schema, or of each tenant's."""
        if db not in servers():
            return False
        is_public = cast(Any, connections[db]).tenant_id is None
        wanted = settings.SHARED_APPS if is_public else settings.TENANT_APPS
        allowed: bool = self.app_in_list(app_label, wanted)
        return allowed
