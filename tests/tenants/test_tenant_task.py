"""The base class of tasks enters the tenant, pins it, and leaves it."""

from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest
from celery import Celery
from django.contrib.auth.models import User

from tenants.context import connection, current_tenant_id, tenant_scope
from tenants.exceptions import InvalidTenantId, TenantPinned, UnknownTenant
from tenants.models import Tenant
from tenants.serving import TenantTask

app = Celery("test", set_as_current=False)


@app.task(base=TenantTask)
def seen_inside(tenant_id: str, other: str = "") -> tuple[UUID | None, list[str]]:
    if other:
        with tenant_scope(other):
            pytest.fail("entered")
    return current_tenant_id(), [user.username for user in User.objects.all()]


@app.task(base=TenantTask)
def fails(tenant_id: str) -> None:
    raise ZeroDivisionError


@pytest.fixture(autouse=True)
def _in_no_tenant_before_and_after() -> Iterator[None]:
    assert current_tenant_id() is None
    yield
    assert current_tenant_id() is None
    assert connection.pinned_tenant is None


def test_a_task_runs_inside_its_tenant(tenant_a: Tenant, tenant_b: Tenant) -> None:
    for tenant in (tenant_a, tenant_b):
        with tenant_scope(tenant.id):
            User.objects.create(username=tenant.slug)
    assert seen_inside(str(tenant_a.id)) == (tenant_a.id, ["tenant-a"])
    assert seen_inside.apply([str(tenant_b.id)]).get() == (tenant_b.id, ["tenant-b"])
    assert seen_inside(tenant_id=tenant_a.id) == (tenant_a.id, ["tenant-a"])


def test_the_tenant_is_left_after_an_error(tenant_a: Tenant) -> None:
    with pytest.raises(ZeroDivisionError):
        fails.apply([str(tenant_a.id)], throw=True)


def test_a_task_cannot_enter_another_tenant(tenant_a: Tenant, tenant_b: Tenant) -> None:
    with pytest.raises(TenantPinned):
        seen_inside(str(tenant_a.id), str(tenant_b.id))


def test_a_task_without_a_tenant_is_refused(db: None) -> None:
    with pytest.raises(InvalidTenantId, match="was called without a tenant_id"):
        fails()


@pytest.mark.parametrize("text", ["", "acme"])
def test_task_with_an_invalid_tenant_id_is_refused(db: None, text: str) -> None:
    with pytest.raises(InvalidTenantId, match=f"'{text}' is not the id"):
        fails(text)


def test_task_of_a_deleted_tenant_is_dropped(db: None) -> None:
    assert seen_inside.apply([str(uuid4())]).state == "IGNORED"
    with pytest.raises(UnknownTenant):
        seen_inside(str(uuid4()))
