"""The two admin sites: operators see no tenant's content, and tenants are isolated."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tenants.admin.sites import operator_site
from tenants.context import tenant_scope
from tenants.models import Tenant

OPERATORS_HOST = "localhost"
PASSWORD = "correct horse battery"


def login(host: str, username: str) -> Client:
    client = Client(headers={"host": host})
    client.post("/admin/login/", {"username": username, "password": PASSWORD})
    return client


@pytest.fixture
def operator(db: None) -> Client:
    User.objects.create_superuser("olga", password=PASSWORD)
    return login(OPERATORS_HOST, "olga")


@pytest.fixture
def people(tenant_a: Tenant, tenant_b: Tenant) -> Callable[[Tenant], Client]:
    """Create an admin with the same name and password in each tenant. Log one of them in."""
    for tenant in (tenant_a, tenant_b):
        with tenant_scope(tenant.id):
            User.objects.create_superuser("ada", f"ada@{tenant.slug}.example", PASSWORD)
    return lambda tenant: login(f"{tenant.slug}.localhost", "ada")


def test_operators_see_tenants_and_their_own_users(operator: Client) -> None:
    assert operator.get("/admin/").status_code == 200
    listed = {model._meta.object_name for model in operator_site._registry}
    assert listed == {"Tenant", "User", "Group", "OperatorEvent"}


def form(slug: str, domain: str) -> dict[str, str]:
    return {"slug": slug, "name": "New", "domain": domain}


def test_public_host_cannot_be_assigned_to_a_tenant(operator: Client) -> None:
    answer = operator.post("/admin/tenants/tenant/add/", form("new", "localhost"))
    assert "localhost is a public host" in answer.content.decode()
    assert not Tenant.objects.filter(slug="new").exists()


def test_an_operator_cannot_delete_a_tenant_in_the_browser(
    operator: Client, tenant_a: Tenant
) -> None:
    answer = operator.post(f"/admin/tenants/tenant/{tenant_a.id}/delete/", {"post": "yes"})
    assert answer.status_code == 403
    assert Tenant.objects.filter(id=tenant_a.id).exists()


def test_an_operator_is_unknown_to_a_tenant(operator: Client, tenant_a: Tenant) -> None:
    answer = operator.get("/admin/", headers={"host": "tenant-a.localhost"})
    assert answer.status_code == 302
    assert answer["Location"] == "/admin/login/?next=/admin/"


def test_a_tenants_admin_logs_in_at_home_alone(
    people: Callable[[Tenant], Client], tenant_a: Tenant
) -> None:
    ada = people(tenant_a)
    page = ada.get("/admin/")
    assert page.status_code == 200
    listed = {app["app_label"] for app in page.context["app_list"]}
    assert "auth" in listed
    assert "tenants" not in listed
    assert ada.get("/admin/tenants/tenant/").status_code == 404
    # Her session cookie on other hosts:
    for host in ("tenant-b.localhost", OPERATORS_HOST):
        assert ada.get("/admin/", headers={"host": host}).status_code == 302
    assert login(OPERATORS_HOST, "ada").get("/admin/").status_code == 302


def test_a_person_is_deactivated_and_not_deleted(
    people: Callable[[Tenant], Client], tenant_a: Tenant
) -> None:
    ada = people(tenant_a)
    with tenant_scope(tenant_a.id):
        bob = User.objects.create_user("bob", password=PASSWORD, is_staff=True)
    page = f"/admin/auth/user/{bob.pk}/"
    assert ada.post(f"{page}delete/", {"post": "yes"}).status_code == 403
    fields = {"username": "bob", "role": "auditor"}
    assert ada.post(f"{page}change/", fields).status_code == 302
    with tenant_scope(tenant_a.id):
        assert not User.objects.get(username="bob").is_active
    assert login("tenant-a.localhost", "bob").get("/admin/").status_code == 302


def test_a_tenants_admin_adds_a_person_and_the_log_keeps_it(
    people: Callable[[Tenant], Client], tenant_a: Tenant, tenant_b: Tenant
) -> None:
    ada = people(tenant_a)
    answer = ada.post("/admin/auth/user/add/", {"username": "eve", "role": "auditor"})
    assert answer.status_code == 302, answer.context["errors"]
    with tenant_scope(tenant_a.id):
        eve = User.objects.get(username="eve")
    history = ada.get(f"/admin/auth/user/{eve.pk}/history/", follow=True)
    (event,) = history.context["cl"].result_list
    assert (event.action, event.actor) == ("create", "ada")
    with tenant_scope(tenant_b.id):
        assert not User.objects.filter(username="eve").exists()
