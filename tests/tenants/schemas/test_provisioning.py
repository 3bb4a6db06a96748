"""Provisioning: no incomplete tenant is served, and a failed run can be repeated."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import IntegrityError
from django_redis import get_redis_connection

from tenants.context import connection, tenant_scope
from tenants.exceptions import InvalidTenant, ProvisioningFailed, TenantNotServing, UnknownTenant
from tenants.jobs import JobKind
from tenants.models import Domain, Tenant
from tenants.operations import unprotected_relations
from tenants.postgres_tools import poll
from tenants.redis_keys import rate_limit_key, session_key
from tenants.schemas import provisioning
from tenants.serving import require_serving
from tests import database

pytestmark = pytest.mark.slow


def schema_exists(tenant: Tenant) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regnamespace(%s) IS NOT NULL", [tenant.schema_name])
        return bool(cursor.fetchone()[0])


def test_a_new_tenant_serves_from_its_own_schema(make_tenant: database.MakeTenant) -> None:
    tenant = make_tenant("brand-new", name="Brand New", domain="brand.example")
    assert tenant.state == "active"
    assert tenant.name == "Brand New"
    assert tenant.schema_name == f"t_{tenant.id.hex}"
    assert [domain.domain for domain in tenant.domains.all()] == ["brand.example"]
    assert require_serving(tenant.id) == tenant
    with tenant_scope(tenant.id), connection.cursor() as cursor:
        assert unprotected_relations(cursor, f"^{tenant.schema_name}$") == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"slug": "Acme"}, "slug: Use lower-case letters, digits and inner hyphens, at most 63."),
        ({"slug": "acme\n"}, "slug: Use lower-case letters"),
        ({"slug": "a" * 64}, "at most 63 characters .it has 64."),
        ({"slug": ""}, "slug: This field cannot be blank."),
        ({"slug": "acme", "name": "x" * 201}, "name: Ensure this value has at most 200"),
        ({"slug": "acme", "domain": "acme.example:80"}, "domain: Give a lower-case host name"),
        ({"slug": "acme", "domain": "localhost"}, "domain: localhost is a public host"),
        (
            {"slug": "acme", "domain": "tenant-a.localhost"},
            "domain: This host serves a tenant already.",
        ),
        ({"slug": "tenant-a"}, "tenant 'tenant-a' exists already"),
    ],
)
def test_invalid_slug_is_refused_without_leftovers(
    tenant_a: Tenant, arguments: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidTenant, match=message):
        provisioning.create_tenant(**arguments)
    assert Tenant.objects.count() == 2
    assert Domain.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_the_application_cannot_provision_and_the_owner_can_finish() -> None:
    with pytest.raises(ProvisioningFailed, match="permission denied for function") as caught:
        provisioning.create_tenant(slug="begun")
    assert "run create_tenant begun again" in str(caught.value)
    tenant = Tenant.objects.get(slug="begun")
    assert tenant.state == "provisioning"
    with pytest.raises(TenantNotServing, match="tenant 'begun' is provisioning"):
        require_serving(tenant.id)
    with database.as_owner():
        finished = provisioning.create_tenant(slug="begun")
    assert finished.id == tenant.id
    assert require_serving(tenant.id).state == "active"


@pytest.mark.django_db(transaction=True)
def test_tenant_with_a_failed_migration_does_not_serve_until_finished(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*arguments: object, **changes: object) -> None:
        raise RuntimeError("the disk is full\nand more")

    with database.as_owner():
        with monkeypatch.context() as patch:
            patch.setattr("tenants.schemas.migrating._reached_migrations", fail)
            with pytest.raises(
                ProvisioningFailed, match=r"RuntimeError: the disk is full\. Remove"
            ):
                provisioning.create_tenant(slug="half", domain="half.example")
        tenant = Tenant.objects.get(slug="half")
        assert tenant.state == "provisioning"
        with pytest.raises(InvalidTenant, match="exists already, with another domain"):
            provisioning.create_tenant(slug="half", domain="other.example")
        assert provisioning.create_tenant(slug="half", domain="half.example").state == "active"


@pytest.mark.django_db(transaction=True)
def test_deletion_removes_schema_registration_and_cache_of_the_tenant_only(
    tenant_a: Tenant,
) -> None:
    with database.as_owner():
        tenant = provisioning.create_tenant(slug="doomed")
        cache = get_redis_connection("default")
        kept = rate_limit_key(tenant_a.id, "rest")
        for key in (kept, rate_limit_key(tenant.id, "rest"), session_key(tenant.id, "*")):
            cache.set(key, 1)
        provisioning.delete_tenant(tenant)
        assert not schema_exists(tenant)
        assert not Tenant.objects.filter(slug="doomed").exists()
        assert not Domain.objects.filter(domain="doomed.localhost").exists()
        assert cache.keys("*") == [kept.encode()]
        assert schema_exists(tenant_a)
    with pytest.raises(UnknownTenant, match=str(tenant.id)):
        require_serving(tenant.id)


@pytest.mark.django_db(transaction=True)
def test_a_deletion_waits_for_a_worker_that_holds_a_job() -> None:
    """A worker locks its job's row, then writes to the tenant's tables."""
    with database.as_owner():
        tenant = provisioning.create_tenant(slug="worked-on")
    with tenant_scope(tenant.id):
        JobKind("held-in-tests", do="", queue="", max_attempts=1).enqueue_many([uuid4()])
    url = database.url_of("owner", tenant.server)
    with psycopg.connect(url) as worker, psycopg.connect(url, autocommit=True) as watcher:
        worker.execute("SELECT set_config('app.current_tenant', %s, false)", [str(tenant.id)])
        held = worker.execute("SELECT pg_backend_pid() FROM tenants_job FOR UPDATE").fetchone()
        waiting = "SELECT FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))"

        def write_when_waited_for() -> bool:
            waited = poll(lambda: watcher.execute(waiting, held).fetchone() is not None, seconds=20)
            worker.execute(f"DELETE FROM {tenant.schema_name}.auth_user")
            worker.commit()
            return waited

        with ThreadPoolExecutor(1) as thread, database.as_owner():
            written = thread.submit(write_when_waited_for)
            provisioning.delete_tenant(tenant)
            assert written.result()
    assert not Tenant.objects.filter(slug="worked-on").exists()


@pytest.mark.django_db(transaction=True)
def test_a_deletion_that_fails_leaves_a_suspended_tenant(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(tenant: Tenant) -> int:
        raise ConnectionError("no cache")

    with database.as_owner():
        tenant = provisioning.create_tenant(slug="sturdy")
        with monkeypatch.context() as patch:
            patch.setattr("tenants.schemas.provisioning.clear_tenant_cache", fail)
            with pytest.raises(ConnectionError, match="no cache"):
                provisioning.delete_tenant(tenant)
        assert schema_exists(tenant)
        assert Tenant.objects.get(slug="sturdy").state == "suspended"
        provisioning.delete_tenant(tenant)
        assert not schema_exists(tenant)


def test_postgres_refuses_a_schema_that_is_not_named_after_the_id(db: None) -> None:
    with pytest.raises(IntegrityError, match="tenant_schema_is_named_after_its_id"):
        Tenant.objects.bulk_create([Tenant(slug="x", name="X", schema_name="elsewhere")])


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
