"""Operators' pages: tenants with state and schema, set up by the owner worker."""

import re
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.test import Client

from tenants.models import OperatorEvent, Tenant
from tenants.schemas.provisioning import migrate_due
from tests import database

TENANTS = "/admin/tenants/tenant/"


def test_tenants_are_listed_with_state_and_schema(operator: Client, tenant_a: Tenant) -> None:
    page = operator.get(TENANTS)
    assert {tenant.slug for tenant in page.context["cl"].result_list} == {"tenant-a", "tenant-b"}
    for text in ("active", "up to date", "tenant-a.localhost"):
        assert text in page.text
    page = operator.get(f"{TENANTS}{tenant_a.id}/change/")
    assert "up to date" in page.text


@pytest.fixture
def behind_and_failed() -> Iterator[None]:
    with database.as_owner():
        before = Tenant.objects.get(slug="tenant-a").migrated_to
        Tenant.objects.filter(slug="tenant-a").update(migrated_to="earlier")
        Tenant.objects.filter(slug="tenant-b").update(
            provisioning_error="DiskFull: no space left", provisioning_failed_at=Now()
        )
    yield
    with database.as_owner():
        Tenant.objects.update(
            migrated_to=before, provisioning_error="", provisioning_failed_at=None
        )


@pytest.mark.django_db(transaction=True)
def test_tenant_with_pending_or_failed_migrations_shows_it(
    operator: Client, behind_and_failed: None
) -> None:
    page = operator.get(TENANTS).text
    assert "to be migrated" in page
    assert "failed" in page
    assert "DiskFull: no space left" in page
    of_failed = operator.get(f"{TENANTS}{Tenant.objects.get(slug='tenant-b').pk}/change/").text
    assert re.search(r">\s*failed\s*<", of_failed)
    assert re.search(r">\s*DiskFull: no space left\s*<", of_failed)
    behind = operator.get(TENANTS, {"schema": "behind"}).context["cl"].result_list
    assert [tenant.slug for tenant in behind] == ["tenant-a"]
    failed = operator.get(TENANTS, {"schema": "failed"}).context["cl"].result_list
    assert [tenant.slug for tenant in failed] == ["tenant-b"]


@pytest.mark.django_db(transaction=True)
def test_operator_retries_the_migration_of_a_tenant(tenant_a: Tenant, tenant_b: Tenant) -> None:
    operator = Client(headers={"Host": "localhost"})
    operator.force_login(User.objects.create_superuser("olga"))
    client = Client(headers={"Host": "tenant-a.localhost"})
    with database.as_owner():
        Tenant.objects.filter(slug="tenant-a").update(
            migrated_to="earlier", provisioning_error="DiskFull", provisioning_failed_at=Now()
        )
        assert migrate_due() == 0
    assert client.get("/admin/login/").status_code == 503
    chosen = {"action": "migrate_again", "_selected_action": [str(tenant_a.id), str(tenant_b.id)]}
    page = operator.post(TENANTS, chosen, follow=True).text
    assert "tenant-a will be migrated in a moment" in page
    assert "tenant &#x27;tenant-b&#x27; is up to date" in page
    assert "waits for the owner&#x27;s worker" in page
    assert "DiskFull" in page
    with database.as_owner():
        assert migrate_due() == 1
        assert migrate_due() == 0
    assert client.get("/admin/login/").status_code == 200
    assert "DiskFull" not in operator.get(TENANTS).text


def test_resuming_is_written_down(operator: Client, tenant_a: Tenant) -> None:
    Tenant.objects.filter(id=tenant_a.id).update(state="suspended")
    operator.post(TENANTS, {"action": "resume", "_selected_action": [str(tenant_a.id)]})
    assert OperatorEvent.objects.get(subject="tenant").action == "resume"
    assert Tenant.objects.get(id=tenant_a.id).state == "active"


@pytest.mark.django_db(transaction=True)
def test_registered_tenant_is_set_up_by_the_owner_worker() -> None:
    operator = Client(headers={"Host": "localhost"})
    operator.force_login(User.objects.create_superuser("olga"))
    form = {"slug": "brand-new", "name": "Brand new"}
    wrong = {**form, "slug": "Brand"}
    refused = operator.post(f"{TENANTS}add/", wrong, headers={"Accept-Language": "es"})
    assert "Use letras minúsculas, cifras y guiones" in refused.text
    page = operator.post(f"{TENANTS}add/", form, follow=True).text
    assert "is being set up" in page
    assert "manage.py create_tenant brand-new" in page
    client = Client(headers={"Host": "brand-new.localhost"})
    assert client.get("/admin/login/").status_code == 503
    assert "being set up" in operator.get(TENANTS).text
    with database.as_owner():
        assert migrate_due() == 1
        assert migrate_due() == 0
    assert client.get("/admin/login/").status_code == 200
    assert Tenant.objects.get(slug="brand-new").state == "active"
