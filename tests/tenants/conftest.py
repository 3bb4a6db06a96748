"""Two tenants with a user each, and a connection that has read in one of them."""

import pytest
from django.contrib.auth.models import User

from tenants.context import connection, tenant_scope
from tenants.models import Tenant
from tests.tenants.accidents import names


@pytest.fixture
def users(tenant_a: Tenant, tenant_b: Tenant) -> tuple[Tenant, Tenant]:
    """Create user "of-tenant-a" in one tenant and "of-tenant-b" in the other, committed."""
    for tenant in (tenant_a, tenant_b):
        with tenant_scope(tenant.id):
            User.objects.create(username=f"of-{tenant.slug}")
    return tenant_a, tenant_b


@pytest.fixture
def in_a(users: tuple[Tenant, Tenant]) -> Tenant:
    """Read in tenant A outside of a transaction. Return tenant B."""
    tenant_a, tenant_b = users
    connection.set_tenant(tenant_a)
    assert names() == ["of-tenant-a"]
    return tenant_b
