"""Which tenants are served: one rule for requests and tasks."""

from uuid import UUID

from tenants.exceptions import TenantBehind, TenantNotServing, UnknownTenant
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
    if not fits(tenant.migrated_to):
        raise TenantBehind(tenant.slug)
