"""Content types are cached for one connection in one schema."""

from threading import Thread
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import connections

from tenants.context import tenant_scope
from tenants.models import Tenant
from tests.messages import statements


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


@pytest.mark.django_db(transaction=True)
def test_cache_of_content_types_is_separate_for_each_thread(
    tenant_a: Tenant, tenant_b: Tenant, django_assert_num_queries: Any
) -> None:
    queries = []

    def read_in_b() -> None:
        try:
            with tenant_scope(tenant_b.id), statements() as captured:
                ContentType.objects.get_for_model(User)
            queries.append(len(captured))
        finally:
            connections.close_all()

    with tenant_scope(tenant_a.id):
        ContentType.objects.get_for_model(User)
        other = Thread(target=read_in_b)
        other.start()
        other.join()
        with django_assert_num_queries(0):
            ContentType.objects.get_for_model(User)
    assert queries == [1]
