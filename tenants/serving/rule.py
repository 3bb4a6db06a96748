"""Which tenants are served: one rule for requests and tasks."""

from contextlib import suppress
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError
from psycopg.errors import UndefinedTable

from tenants.context import current_server, current_tenant_id
from tenants.exceptions import TenantBehind, TenantMoving, TenantNotServing, UnknownTenant
from tenants.models import Tenant
from tenants.schemas.migration_state import fits
from tenants.servers import note_server


def require_serving(tenant_id: UUID) -> Tenant:
    """Return the tenant if its requests and tasks may be done; note where it is.

    Works in the public schema and inside the tenant, which sees its own row.

    Raises:
        UnknownTenant: there is none with this id.
        TenantNotServing: it is suspended, or not provisioned yet.
        TenantBehind: its schema and this code do not fit.
        TenantMoving: it is on its way to another server.
    """
    tenant = Tenant.objects.filter(id=tenant_id).first()
    if tenant is None:
        raise UnknownTenant(f"no tenant has the id {tenant_id}")
    note_server(tenant_id, tenant.server)
    refuse_unless_serving(tenant)
    return tenant


def refuse_unless_serving(tenant: Tenant) -> None:
    """Raise if the tenant's requests and tasks may not be done, as `require_serving` does."""
    if tenant.state != Tenant.State.ACTIVE:
        raise TenantNotServing(tenant.slug, tenant.state)
    if tenant.moving_to:
        raise TenantMoving(tenant.slug)
    if not fits(tenant.migrated_to):
        raise TenantBehind(tenant.slug)


def moved_meanwhile(error: Exception) -> TenantMoving | None:
    """What an error means that was raised in a tenant, if it was moved since it was entered."""
    tenant_id = current_tenant_id()
    is_missing = isinstance(error, UndefinedTable) or isinstance(error.__cause__, UndefinedTable)
    if not (settings.TENANT_DATABASES and tenant_id and is_missing):
        return None
    with suppress(DatabaseError):
        tenant = Tenant.objects.filter(id=tenant_id).first()
        if tenant is not None and (tenant.moving_to or tenant.server != current_server()):
            note_server(tenant_id, tenant.server)
            return TenantMoving(tenant.slug)
    return None
