"""Content types are cached for one connection in one schema."""

from typing import Any

from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType

from tenants.context import tenant_scope
from tenants.models import Tenant


def test_content_types_are_cached_for_a_tenant(
    tenant_a: Tenant, django_assert_num_queries: Any
) -> None:
    with tenant_scope(tenant_a.id):
        with django_assert_num_queries(1):
            found = ContentType.objects.get_for_model(User)
        with django_assert_num_queries(0):
            assert ContentType.objects.get_for_model(User) == found
            assert ContentType.objects.get_for_id(found.pk) == found


def test_content_types_of_a_deleted_tenant_leave_the_cache(
    tenant_a: Tenant, tenant_b: Tenant, django_assert_num_queries: Any
) -> None:
    with tenant_scope(tenant_a.id):
        ContentType.objects.get_for_model(User)
    with tenant_scope(tenant_b.id), django_assert_num_queries(1):
        ContentType.objects.get_for_model(User)
