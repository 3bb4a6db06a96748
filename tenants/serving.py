"""Which tenants are served: one rule for requests and tasks."""

from uuid import UUID

from tenants.exceptions import TenantNotServing, UnknownTenant
from tenants.models import Tenant


def require_serving(tenant_id: UUID) -> Tenant:
    """Return the tenant if its requests and tasks may be done.

    Works in the public schema and inside the tenant, which sees its own row.

    Raises:
        UnknownTenant: there is none with this id.
        TenantNotServing: it is suspended, or not provisioned yet.
    """
    tenant = Tenant.objects.filter(id=tenant_id).first()
    if tenant is None:
        raise UnknownTenant(f"no tenant has the id {tenant_id}")
    if tenant.state != Tenant.State.ACTIVE:
        raise TenantNotServing(tenant.slug, tenant.state)
    return tenant
